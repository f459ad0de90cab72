"""Every setting of every designer, context module, policy and trainer has an effect: another value than the default changes what
happens. The names themselves say which settings they accept, so the test fails for a new setting without a line here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lake
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief, RoundState, TrialRun
from t2t_core.plugins import installed, load
from t2t_core.records import Response, Round, Sampling, Scored, Task
from t2t_envs.frozen_lake import Configuration, generate
from t2t_plugins.policies.endpoint.providers import PROVIDERS

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("policies", "designers", "contexts", "trainers", "testbeds")
FIRST = {g: {"data_ratio": 0.5, "hole_ratio": 0.1 * int(g), "wait_ratio": 0.5} for g in ("3", "4")}
LAKE = installed().testbeds.make("mapf-frozenlake")
Effect = Callable[[], Any]


def known(kind: str, name: str) -> set[str]:
    """The settings a name says it has when it refuses one. What `llm` does not know goes to its model; it has those of
    `base`. A control that wraps a designer has none of its own."""
    spec = {"llm": "base:", "shuffled": "shuffled:fixed,", "mislabelled": "mislabelled:fixed,"}.get(name, f"{name}:")
    with pytest.raises(T2TError, match="no setting") as error:
        installed().registries[kind].make(f"{spec}qqqqqqqq=1")
    listed = re.search(r"known(?: settings)?: (.*)", error.value.cause)
    assert listed, f"{kind} {name} does not say which settings it has: {error.value.cause}"
    return set(listed[1].split(", ")) - {"none"}


# --- designers


def state(rounds: int = 2, badly: int = 1) -> RoundState:
    """After rounds in which the first group did well and the second badly."""
    bed = lake.Lake()
    past = [Round(i, FIRST, lake.breakdown(9, badly)) for i in range(rounds)]
    failed = [Scored(n, 0, Response("0" * k), bed.verify(n, "0")) for k in (1, 2, 3) for n in [lake.Number(f"n{k}", "3", k, k)]]
    facts = {"rounds": 4, "round_index": rounds - 1}
    return RoundState(bed, past, failed, facts, {"algorithm": "none"}, bed.knobs(None))


def lakes(rounds: int = 2) -> RoundState:
    """The facts of two validations of frozen lakes, cell by cell."""

    def cells(valid: int) -> dict[str, Any]:
        named = {f"{n}x{n} holes={n} no-wait": (20, 20 - 2 * (n - 3)) for n in range(3, 11)}
        named |= {"3x3 holes=1 wait": (20, 10 + valid), "4x4 holes=6 no-wait": (20, 1)}
        return {"groups": {}, "cells": {n: {"answers": a, "valid": v, "optimal": 0} for n, (a, v) in named.items()}}

    return RoundState(LAKE, [Round(i, FIRST, cells(i)) for i in range(rounds)], bookkeeping={"rounds": 4})


def taught(rounds: int = 2) -> RoundState:
    """The same with what the trainings counted: more was learnt on small maps at first, later on larger ones."""

    def counted(index: int) -> dict[str, Any]:
        cells = {}
        for place, cell in enumerate(LAKE.cells(LAKE.request(1))[::7]):
            facts = {"groups": 5 + place, "answers": 8 * (5 + place), "reward": 0.5, "tokens": 9, "valid": 0.9 - 0.02 * place}
            late = abs(place - 4 * index) / 12
            cells[cell.name] = {"group": cell.group, **facts, "advantage": 0.8 - 0.7 * late, "dead": late}
        return {"cells": cells}

    seen = lakes(rounds)
    return replace(seen, rounds=[replace(past, training=counted(past.index)) for past in seen.rounds])


def apart(spec: str, other: str, facts: Callable[[], RoundState] = taught) -> Effect:
    def check() -> None:
        assert propose(spec, facts()).parsed != propose(other, facts()).parsed

    return check


class Talker:
    """A policy that fails as often as it is told, then proposes; it keeps what it was asked."""

    def __init__(self, failures: int = 0, brief: str = "prose") -> None:
        self.failures, self.brief, self.asked = failures, brief, []

    def respond(self, tasks: Any, sampling: Any) -> Any:
        self.asked.append((tasks[0].prompt, sampling))
        failed = len(self.asked) <= self.failures
        yield 0, Response("" if failed else '{"3": {"data_ratio": 1}}', 3, 3, error="503" if failed else None)

    def describe(self) -> Mapping[str, Any]:
        return {"deterministic": True, "batch_size": None, "brief": self.brief}


def propose(designer: str, facts: RoundState, talker: Talker | None = None) -> Any:
    policy = (lambda checkpoint: talker) if talker else None
    wide = {**FIRST, **{str(n): dict(FIRST["3"]) for n in range(5, 11)}} if facts.testbed is LAKE else FIRST
    request = facts.testbed.request(100)
    made = Brief("the brief", facts, lake.Setting(wide), request, 7, compact=("failures",), policy=policy)
    return installed().designers.make(designer).propose(made)


def differs(designer: str, setting: str, value: str, facts: Callable[[], RoundState]) -> Effect:
    def check() -> None:
        usual, other = (propose(spec, facts()).parsed for spec in (designer, f"{designer}:{setting}={value}"))
        assert usual != other and usual == propose(designer, facts()).parsed

    return check


def asks(designer: str) -> dict[str, Effect]:
    """What a designer that asks a model has: how often it tries, in which form, and how the model samples."""

    def asked(setting: str, talker: Talker) -> Any:
        if designer != "llm":
            return propose(f"{designer}:{setting}", state(), talker)
        installed().policies.entries.pop("talker", None)
        installed().policies.add("talker", lambda argument, settings: talker)
        try:
            return propose(f"llm:talker,{setting}", state())
        finally:
            del installed().policies.entries["talker"]

    def attempts() -> None:
        assert asked("attempts=5", Talker(4)).parsed and not asked("attempts=2", Talker(4)).parsed

    def brief() -> None:
        for form, prompt in (("prose", "the brief"), ("compact", "design\nconfig\n")):
            talker = Talker(brief="compact" if form == "prose" else "prose")
            asked(f"brief={form}", talker)
            assert talker.asked[0][0].startswith(prompt)

    def sampled(setting: str, expected: Sampling) -> Effect:
        def check() -> None:
            talker = Talker()
            asked(setting, talker)
            assert talker.asked[0][1] == expected != Sampling()

        return check

    def finish() -> None:
        class Cut(Talker):
            def respond(self, tasks: Any, sampling: Any) -> Any:
                self.asked.append((tasks[0].prompt, sampling))
                text = "<think>" if len(self.asked) == 1 else '{"3": {"data_ratio": 1}}'
                yield 0, Response(text, 3, 3, finish_reason="length" if len(self.asked) == 1 else "stop")

        assert asked("finish=on", Cut()).parsed and not asked("finish=off", Cut()).parsed

    return {
        "attempts": attempts,
        "finish": finish,
        "brief": brief,
        "temperature": sampled("temperature=0.7", Sampling(temperature=0.7)),
        "max_tokens": sampled("max_tokens=99", Sampling(max_tokens=99)),
        "thinking": sampled("thinking=off", Sampling(thinking=False)),
        "top_p": sampled("top_p=0.5", Sampling(top_p=0.5)),
        "top_k": sampled("top_k=20", Sampling(top_k=20)),
        "min_p": sampled("min_p=0.05", Sampling(min_p=0.05)),
    }


def tries() -> dict[str, Effect]:
    """What the probe asks of its trials."""

    def tried(spec: str) -> list[tuple[Any, int]]:
        asked: list[tuple[Any, int]] = []

        def trial(configuration: Any, instances: int) -> TrialRun:
            asked.append((configuration, instances))
            return TrialRun({"groups": {}}, 1, 1)

        made = Brief("the brief", state(), lake.Setting(FIRST), state().testbed.request(100), 7, trial=trial)
        installed().designers.make(spec).propose(made)
        return asked

    def instances() -> None:
        assert {count for _, count in tried("probe")} == {64} and {count for _, count in tried("probe:instances=9")} == {9}

    def step() -> None:
        first, usual, wide = tried("probe")[0], tried("probe")[1:], tried("probe:step=1")[1:]
        assert first == tried("probe:step=1")[0] and usual != wide
        assert {group["data_ratio"] for group in wide[0][0].values()} == {0.0, 1.0}

    return {"instances": instances, "step": step}


SAMPLING = {"temperature", "max_tokens", "thinking", "top_p", "top_k", "min_p"}  # taken before a designer's own settings are read
DESIGNERS: dict[str, dict[str, Any]] = {
    "random": {},
    "fixed": {},
    "uniform": {},
    "base": asks("base"),
    "checkpoint": asks("checkpoint"),
    "llm": asks("llm"),
    "shuffled": {},
    "mislabelled": {},
    "schedule": {},
    "probe": tries(),
    "sec": {"rate": apart("sec", "sec:rate=0.9"), "temperature": apart("sec", "sec:temperature=2")},
    "dump": {"temperature": apart("dump", "dump:temperature=2")},
    "adarft": {
        "reward": apart("adarft", "adarft:reward=0.9"),
        "step": apart("adarft", "adarft:step=0.01"),
        "sensitivity": apart("adarft", "adarft:sensitivity=0.01"),
        "top": apart("adarft", "adarft:top=0.6"),
        "uniform": apart("adarft", "adarft:uniform=0.5"),
    },
    "thompson": {"memory": apart("thompson", "thompson:memory=1"), "uniform": apart("thompson", "thompson:uniform=0.9")},
    "e2h": {
        "(argument)": apart("e2h:gaussian", "e2h:cosine"),
        "levels": apart("e2h", "e2h:levels=2"),
        "sigma": apart("e2h", "e2h:sigma=3"),
        "beta": apart("e2h", "e2h:beta=3"),
    },
    "success-window": {
        "mastered": apart("success-window", "success-window:mastered=0.1"),
        "width": apart("success-window:mastered=0.1", "success-window:mastered=0.1,width=1"),
        "levels": apart("success-window", "success-window:levels=2"),
    },
    "accel": {"edits": apart("accel", "accel:edits=1"), "step": apart("accel", "accel:step=5")},
    "comfort-zone": {"top": apart("comfort-zone", "comfort-zone:top=0.6")},
    "too-hard": {"top": apart("too-hard", "too-hard:top=0.6")},
    "rule": {
        "(argument)": "tests/plugins/test_designers.py::test_the_rule_on_failures_reads_what_went_wrong_and_not_how_often",
        "floor": differs("rule", "floor", "0.9", lambda: state(badly=4)),
        "step": differs("rule", "step", "0.2", state),
        "high": differs("rule", "high", "0.95", state),
        "low": differs("rule", "low", "0.05", state),
    },
    "easy-to-hard": {"rest": differs("easy-to-hard", "rest", "0.9", lakes)},
    "learnability": {
        "top": differs("learnability", "top", "0.6", lakes),
        "uniform": differs("learnability", "uniform", "0", lakes),
    },
    "learning-progress": {"uniform": differs("learning-progress", "uniform", "1", lakes)},
    "level-replay": {
        "temperature": differs("level-replay", "temperature", "0.1", lakes),
        "staleness": differs("level-replay", "staleness", "1", lakes),
    },
}


# --- contexts


def renders(spec: str, other: str) -> Effect:
    def check() -> None:
        first, second = (installed().contexts.make(variant).render(state(), False) for variant in (spec, other))
        assert first != second

    return check


CONTEXTS: dict[str, dict[str, Effect]] = {
    "F": {"examples": renders("F", "F:examples=1")},
    "G": {},
    "H": {"last": lambda: _shorter("H", "H:last=1"), "(argument)": renders("H", "H:no_round_0")},
    "S": {},
    "T": {"(argument)": renders("T", "T:full")},
    **{f"V{n}": {} for n in range(1, 7)},
}


def _shorter(spec: str, other: str) -> None:
    first, second = (installed().contexts.make(variant).render(state(4), False) for variant in (spec, other))
    assert first.count("Round ") == 3 and second.count("Round ") == 1


# --- policies


def answers(spec: str) -> list[str | None]:
    drawn = generate(Configuration.uniform(0.2, 0.5), 40, num_agents=4, seed=4)
    tasks = [Task(i.id, 0, "", i.unlabelled(), n) for n, i in enumerate(drawn)]
    responses = dict(installed().policies.make(spec).respond(tasks, Sampling()))
    return [responses[i].error or responses[i].text for i in range(len(tasks))]


def answers_otherwise(name: str, setting: str) -> Effect:
    def check() -> None:
        assert answers(name) != answers(f"{name}:{setting}")

    return check


def vllm_gets(setting: str, expected: Any) -> Effect:
    """vLLM's own engine has no place in a test: what it is started with is what counts."""

    def check() -> None:
        import sys
        from importlib.machinery import ModuleSpec
        from types import ModuleType

        made: list[dict[str, Any]] = []
        module = ModuleType("vllm")
        module.__spec__ = ModuleSpec("vllm", None)
        module.LLM = lambda **options: made.append(options) or SimpleNamespace()  # type: ignore[attr-defined]
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "vllm", module)
            installed().policies.make(f"vllm:m,{setting}")._inside._load()
        name = setting.partition("=")[0]
        assert made == [{"model": "m", name: expected}]

    return check


HF = "tests/plugins/test_hf.py"
ENDPOINT = "tests/plugins/test_endpoint.py"
TRAINED = "tests/plugins/test_trainer_settings.py"
OF_HF: dict[str, Effect | str] = {
    "lora": f"{HF}::test_an_adapter_changes_the_answers",
    "trust_remote_code": f"{HF}::test_code_that_comes_with_a_checkpoint_runs_only_where_the_user_says_so_by_name",
    **dict.fromkeys(
        ("engine", "dtype", "device", "batch_size", "cache_gb", "threads"), f"{TRAINED}::test_every_setting_of_local_models"
    ),
}
OF_ENDPOINTS: dict[str, Effect | str] = {
    "concurrency": f"{ENDPOINT}::test_requests_run_at_once_up_to_the_limit",
    "attempts": f"{ENDPOINT}::test_what_is_no_answer_is_an_error_and_never_a_wrong_answer",
    "backoff": f"{ENDPOINT}::test_a_failure_that_passes_is_forgotten",
    "max_wait": f"{ENDPOINT}::test_retry_after_is_honoured_and_capped",
    "give_up": f"{ENDPOINT}::test_a_dead_server_ends_the_evaluation_and_keeps_what_came",
    "base_url": f"{ENDPOINT}::test_an_answer_with_its_tokens",
    "proxy": "tests/plugins/test_endpoint_network.py::test_a_proxy_is_used",
    "api_key_env": "tests/plugins/test_endpoint_keys.py::test_the_key_is_sent_and_never_shown",
    "timeout": f"{ENDPOINT}::test_a_server_that_never_ends_meets_the_deadline",
    "max_bytes": f"{ENDPOINT}::test_a_huge_body_is_not_read",
    **dict.fromkeys(
        (*SAMPLING - {"thinking"}, "limit_field", "thinking_switch", "reasoning_effort", "extra_body"),
        f"{ENDPOINT}::test_the_request_body",
    ),
    **dict.fromkeys(("price_in", "price_out", "prices"), f"{ENDPOINT}::test_prices_from_a_file"),
}
POLICIES: dict[str, dict[str, Any]] = {
    "answers": {},
    "independent": {},
    "minimax": {"p": "tests/envs/tictactoe/test_ttt_testbed.py::test_players_are_as_strong_as_they_say"},
    "first-free": {},
    "ppo": {"greedy": "tests/baselines/test_stepwise.py::test_a_greedy_agent_takes_the_likeliest_step"},
    "sb3": {
        "trust_code": "tests/baselines/test_stepwise.py::test_a_zip_of_sb3_is_loaded_by_those_who_trust_it",
        "algorithm": "tests/baselines/test_stepwise.py::test_a_zip_of_another_algorithm",
        "layers": "tests/baselines/test_stepwise.py::test_a_zip_of_sb3_plays_from_its_weights_alone",
    },
    "step": dict.fromkeys(
        ("trust_code", "observation", "view", "max_size"),
        "tests/baselines/test_stepwise.py::test_a_python_object_plays_through_the_library_and_by_name",
    ),
    "cbs": {"max_nodes": answers_otherwise("cbs", "max_nodes=1")},
    "prioritized": {"orders": answers_otherwise("prioritized", "orders=1")},
    "pibt": {"max_steps": answers_otherwise("pibt", "max_steps=2")},
    "random": {"max_steps": answers_otherwise("random", "max_steps=2")},
    "hf": OF_HF,
    "tiny": OF_HF,
    "vllm": {
        "lora": f"{HF}::test_vllm_that_cannot_start_and_an_adapter_that_is_none_are_one_clear_sentence",
        "trust_remote_code": vllm_gets("trust_remote_code=true", True),
        "dtype": vllm_gets("dtype=float32", "float32"),
        "tensor_parallel_size": vllm_gets("tensor_parallel_size=2", 2),
        "gpu_memory_utilization": vllm_gets("gpu_memory_utilization=0.4", 0.4),
        "max_model_len": vllm_gets("max_model_len=64", 64),
        "enforce_eager": vllm_gets("enforce_eager=true", True),
    },
    **dict.fromkeys(PROVIDERS, OF_ENDPOINTS),
}
TRAINERS: dict[str, Any] = {
    "ppo": "tests/baselines/test_stepwise.py::test_every_setting_of_ppo_does_something",
    "sb3": "tests/baselines/test_stepwise.py::test_every_setting_of_sb3_does_something",
    "none": {},
    "grpo": "tests/plugins/test_grpo.py::test_every_setting_does_something",
    "trl-grpo": f"{TRAINED}::test_every_setting_of_grpo",
    "trl-sft": f"{TRAINED}::test_every_setting_of_sft",
}
TABLES: dict[str, Mapping[str, Any]] = {
    "policies": POLICIES,
    "designers": DESIGNERS,
    "contexts": CONTEXTS,
    "trainers": TRAINERS,
    "testbeds": {"mapf-frozenlake": {}, "tictactoe": {}},
}
CASES = [
    (f"{name} {setting}", effect)
    for table in (POLICIES, DESIGNERS, CONTEXTS)
    for name, settings in table.items()
    for setting, effect in settings.items()
    if callable(effect)
]


@pytest.mark.parametrize(("case", "effect"), CASES, ids=[case for case, _ in CASES])
def test_a_setting_does_something(case: str, effect: Effect) -> None:
    effect()


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_and_every_setting_has_its_line(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        if provider.key_variable:
            monkeypatch.setenv(provider.key_variable, "sk-0123456789abcdef")
    # Afresh and of this distribution: other tests, and what else is installed, bring names of their own.
    names = {entry.name for entry in load().registries[kind] if entry.distribution.startswith("t2t-core ")}
    assert names == set(TABLES[kind]), "a name without a line in this file"
    for name, lines in TABLES[kind].items():
        if isinstance(lines, str) or kind == "testbeds":
            continue  # trainers compare their own settings with what they walk; testbeds take none at all
        missing = known(kind, name) - set(lines) - (SAMPLING if kind == "designers" else set())
        assert not missing, f"{kind} {name}: no test shows what {missing} does"
        assert set(lines) - known(kind, name) <= SAMPLING | {"(argument)"}, f"{kind} {name} has lines for what it does not take"


def test_what_is_shown_elsewhere_is_there() -> None:
    lines = [lines for table in TABLES.values() for lines in table.values()]
    named = {line for some in lines for line in ([some] if isinstance(some, str) else some.values()) if isinstance(line, str)}
    for place in named:
        file, _, test = place.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), place


def test_a_variant_takes_nothing() -> None:
    for spec in ("V6:no_round_0", "V1:examples=1"):
        with pytest.raises(T2TError):
            installed().contexts.make(spec)
