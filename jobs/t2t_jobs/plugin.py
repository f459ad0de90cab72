"""The plugins of this package: their names, and the code behind each."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_families(registry: Registry) -> None:
    game, lakes = "t2t_jobs.families.noughts", "t2t_jobs.families.lakes"
    registry.add("draw-optimal", f"{game}:defend", "tic-tac-toe: hold the draw against optimal play")
    registry.add("hold-second", f"{game}:second", "tic-tac-toe: move second and hold the draw, from weaker bases")
    registry.add("both-ways", f"{game}:lead", "tic-tac-toe: hold the draw moving first, and win where the opponent errs")
    registry.add("pairs", f"{lakes}:pairs", "lakes: lead two agents over maps of middling size")
    registry.add("far-pairs", f"{lakes}:far_pairs", "lakes: lead two agents over large maps")
    registry.add("trios", f"{lakes}:trios", "lakes: lead three agents over small maps (held out: it trains no agent)")


@hookimpl
def register_agents(registry: Registry) -> None:
    room = "t2t_jobs.agents"
    registry.add("random-search", f"{room}.search:RandomSearch", "a random job within the bounds; in the end the best one so far")
    registry.add(
        "successive-halving", f"{room}.search:SuccessiveHalving", "many cheap random jobs, the best of them on more samples"
    )
    registry.add("rule", f"{room}.rule:Rule", "the best base, moderately trained; what was wrong is put back")
    registry.add("llm", f"{room}.llm:llm", "any policy that talks, by tool calls or in plain text: llm:POLICY")
    registry.add("tiny", f"{room}.tiny.agent:TinyAgent", "a toy model that writes the job's text itself (tiny:FOLDER)",
                 ("torch", "transformers"))  # fmt: skip


@hookimpl
def register_commands(registry: Registry) -> None:
    registry.add("episode", "t2t_jobs.cli.episode:episode", "An agent writes a training job; it is run and scored.")
    registry.add("bench-agents", "t2t_jobs.cli.bench_agents:bench_agents", "Agents that write training jobs, side by side.")
    registry.add("train-agent", "t2t_jobs.cli.train_agent:train_agent", "Train an agent by what its jobs achieve.")
    registry.add("worker", "t2t_jobs.cli.worker:worker", "A warm process that trains the jobs of a queue.")


@hookimpl
def register_pools(registry: Registry) -> None:
    registry.add("local", "t2t_jobs.pools.local:LocalPool", "workers on this machine, local:N")
    registry.add("ray", "t2t_jobs.pools.on_ray:RayPool", "workers as tasks of a Ray cluster, ray:N", ("ray",))
