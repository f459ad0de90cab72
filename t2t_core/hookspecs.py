"""All hooks of the suite, on one page.

A plugin is a module named by an entry point of the group `t2t`. It implements any of the hooks below, each of which
gets a registry and adds names to it:

    # setup.cfg of your distribution                     # my_plugin.py
    [options.entry_points]                               from t2t_core.hookspecs import hookimpl
    t2t =                                                @hookimpl
        my_plugin = my_plugin                            def register_designers(registry):
                                                             registry.add("mine", "my_plugin:make", "what it does")

A target is a callable, or "module:attribute", which is imported only when somebody uses the name. The built-ins register
through the same hooks. A name is addressed as `name`, `name:argument` or `name:argument,key=value,...`; the factory gets the
argument (text, "" if there is none) and the settings (text by key). If a plugin raises, or returns something wrong, the error
names it and ends the command (t2t_core.guard).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    from t2t_core.records import (
        AgentTurn,
        ConfigurationRecord,
        Json,
        Knob,
        Proposal,
        Request,
        Response,
        Round,
        Sampling,
        Scored,
        Task,
        TrainingResult,
    )
    from t2t_core.registry import Registry
    from t2t_core.testbed import AnyTestbed, Testbed

__all__ = [
    "AnyTestbed",
    "Brief",
    "ContextModule",
    "Designer",
    "EpisodeState",
    "Exchange",
    "Hooks",
    "JobAgent",
    "Policy",
    "Pool",
    "RoundState",
    "Testbed",
    "TrackedRun",
    "Tracker",
    "Trainer",
    "TrainingJob",
    "TrainingOrder",
    "TrialRun",
    "Tried",
    "hookimpl",
    "hookspec",
]

_OF_TESTBED = ("AnyTestbed", "Testbed")


def __getattr__(name: str) -> Any:
    """What a testbed is, imported when somebody asks: every plugin imports this module, and `t2t --help` every plugin."""
    if name not in _OF_TESTBED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from t2t_core import testbed

    return getattr(testbed, name)


hookspec = pluggy.HookspecMarker("t2t")
hookimpl = pluggy.HookimplMarker("t2t")


@dataclass(frozen=True)
class RoundState:
    """Everything a context module may render. The last of `rounds` is the one just validated; `examples` are scored
    failures; `bookkeeping` and `training` are plain facts about the run; `knobs` are what a designer sets."""

    testbed: AnyTestbed
    rounds: Sequence[Round]
    examples: Sequence[Scored] = ()
    bookkeeping: Mapping[str, Json] = field(default_factory=dict)
    training: Mapping[str, Json] = field(default_factory=dict)
    knobs: Sequence[Knob] = ()


@dataclass(frozen=True)
class TrialRun:
    """The result of a short trial: the breakdown of its validation, like that of a round, and its cost: the updates, and the
    tokens of training and answers together."""

    breakdown: Mapping[str, Json]
    updates: int
    tokens: int


@dataclass(frozen=True)
class Brief:
    """What a designer gets: the whole prompt as text (task statement and context) and the same facts as records.

    `previous` is the configuration in force, that of the round which was just validated, and `request` what the next round asks
    of the generator. `seed` is for whatever the designer draws. `anew` makes the brief of another state, for controls that
    change what a designer sees. `compact` are the context's sections in their compact form, for policies too small to read
    prose. `policy` makes the run's own policy with a checkpoint: `brief.policy(brief.checkpoint)` is the current one,
    `brief.policy(brief.base)` the untrained one; None outside a run. `trial` trains a copy of the current policy on so many
    instances of a configuration, `brief.trial(configuration, 64)`, and validates it; what that takes is charged to the design. A
    designer that words its own prompt tells it to `shown` before it asks, so that the prompt is on record even where no answer
    ever comes.
    """

    text: str
    state: RoundState
    previous: ConfigurationRecord
    request: Request
    seed: int
    checkpoint: Path | None = None
    base: Path | None = None
    compact: Sequence[str] = ()
    policy: Callable[[Path | None], Policy] | None = None
    trial: Callable[[Mapping[str, Any], int], TrialRun] | None = None
    shown: Callable[[str], None] = lambda prompt: None
    anew: Callable[[RoundState], Brief] | None = None


@dataclass(frozen=True)
class TrainingOrder:
    """What a run will ask of its trainer, as far as that is known before anything is drawn: the checkpoint that training starts
    from, the testbed, the settings under [training], how many instances a round has, and how many rounds there are."""

    checkpoint: Path | None
    testbed: AnyTestbed
    settings: Mapping[str, Json]
    samples: int
    rounds: int = 1


@dataclass(frozen=True)
class TrainingJob:
    """What a trainer gets: the checkpoint it starts from, instances, the testbed (prompt, verifier, reward), its settings,
    the folder for its new checkpoint and a seed. What an interrupted training continues from belongs into `updates` in that
    folder: it is removed once the round is whole, unless the result says to keep it. `resume_from` is the folder of the round
    before, if there is one. `stop` tells whether the run was asked to stop (SIGTERM).
    `reward` holds the weights of the testbed's reward terms that the run changes; the others keep their defaults."""

    checkpoint: Path | None
    instances: Sequence[Any]
    testbed: AnyTestbed
    settings: Mapping[str, Json]
    folder: Path
    seed: int
    round_index: int = 0
    resume_from: Path | None = None
    progress: Callable[[Mapping[str, Json]], None] | None = None
    reward: Mapping[str, float] = field(default_factory=dict)
    stop: Callable[[], bool] = lambda: False


class Policy(Protocol):
    """A batch of conversations in, the next turn of each out. Solvers, local models and endpoints all look the same.

    registry.add("same", "my_plugin:Same", "always the same answer")
    class Same:
        def __init__(self, argument, settings): ...
        def respond(self, tasks, sampling):
            for position, task in enumerate(tasks):
                yield position, Response(text=...)

    A factory with the attribute `shared_settings`, e.g. ("base_url", "concurrency"), gets the options of that name of
    `t2t bench` as settings. One with the attribute `transport`, e.g. ("base_url", "timeout"), names its settings that say how
    it is asked and not what: they may change on resume (t2t_core.transport). A policy that holds a GPU or processes
    has a method `close()`, which returns when it has let go of them; it may be asked again afterwards. A policy whose answers
    cost money has a method `spend_at_most(usd)`, called before each `respond` under a budget: it sends nothing that could go
    beyond it, and raises `BudgetSpent` where nothing more fits. A policy with something to tell at the end of an evaluation (how
    its servers did) has a method `notes()`, which returns lines of text.
    A factory with the attribute `talks = False` makes policies that act and cannot be asked for text: no run lets them
    design.
    A policy that plays a checkpoint of its own has an attribute `checkpoint`, the path: a run whose settings name the
    policy there (`checkpoint = "tiny"`) starts its training from it.
    """

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        """Yield (position in `tasks`, response) as answers come, in any order, every position exactly once. A failed
        request is a Response with `error`; an exception ends the whole evaluation (T2TError for what a user can mend).

        `tasks` may grow while you answer: the next turn of a conversation is appended when its answer has been yielded. A
        policy that keeps several requests in flight looks at `len(tasks)` again after each answer, so that a conversation that
        has ended makes room for the next, and has an attribute `open_at_once`, how many conversations keep it busy; one that
        looks once is asked again for the rest."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Facts for the record, as JSON: at least `deterministic` (same task, same answer) and `batch_size` (how many tasks
        it likes at once, None: all). Models add `model`, their name, by which a board groups families, and their versions;
        under `transport` stands whatever may change from one start to the next (addresses, time-outs, prices). `prompt_format`
        is the wording of the question that the policy was taught, asked where nobody names another; `brief` the form of a
        designer's prompt: "prose", or "compact" for one that was taught that form. A `caveat` (a few words, "toy policy")
        stands beside the policy's name on every board. Never a key."""
        ...


class Designer(Protocol):
    """Reads the brief of a round and proposes the next configuration of the generator. Any LLM policy can be a designer
    (`llm:...`). If it has an attribute `settings` (name -> value), `t2t run --dry-run` prints them; if it has an engine of its
    own, its method `close()` is called after each design. If it asks the run's own policy (`brief.policy`), it has
    `asks_own_policy = True`, so that a run whose policy cannot talk refuses it before anything is trained. Its factory may have
    `transport`, like a policy's.

    registry.add("shy", lambda argument, settings: Shy(), "proposes what is already there")
    class Shy:
        def propose(self, brief):
            return Proposal(raw="", parsed=brief.previous.to_dict())
    """

    def propose(self, brief: Brief) -> Proposal:
        """The next configuration, as proposed: Project enforces the bounds and names what it corrects. An exception, or a return
        that is no `Proposal`, makes the design "failed", and the configuration stays."""
        ...


class ContextModule(Protocol):
    """The state of the rounds in, a section of the designer's context out, or None if it has nothing to say.

    With `compact` the section is a few lines of plain words and whole percents, for a policy too small to read prose. A
    factory may also return text such as "F,G,H:no_round_0": its name then stands for those modules (V1..V6 are made so).
    A module that wants something of the answer has an attribute `request`, one sentence added to the answer's format; one with an
    attribute `settings` (name -> value) has them printed by `t2t run --dry-run`.

    registry.add("W", lambda argument, settings: Weather(), "the weather")
    class Weather:
        title = "Weather"
        def render(self, state, compact):
            return "sunny"
    """

    title: str

    def render(self, state: RoundState, compact: bool) -> str | None:
        """The section's text without its title; None or "" leaves the section out."""
        ...


class Trainer(Protocol):
    """A policy's checkpoint, instances and a reward in; a new checkpoint and its metrics out. Knows nothing of designers.

    Settings stand in a run's file under [training]. Seven attributes are optional: `policies`, the names of those
    that can play what it trains, where not every policy can (a run with another is refused); `defaults` (setting -> value)
    and `constants` (name -> value, what no setting changes), which `t2t run --dry-run` prints; `facts` (name -> text: the
    algorithm, the reward), which the context T:full tells; `check(order)`, which raises T2TError for what `train` would
    refuse (called in a dry run too); `ready(order)`, which raises T2TError where something it needs is not available on this
    machine; and `plan(order, gpus)`, the text of what it takes of each GPU (`t2t_core.run.gpus.Gpus`, None if there are
    none), which raises T2TError if that does not fit and which the dry run and the start of a run print. All three get a
    `TrainingOrder` before a run begins.
    One with the attribute `stops_when_asked = True` looks at `job.stop()` now and then: where that is true it saves what an
    interrupted training continues from and raises KeyboardInterrupt. Any other is interrupted wherever it stands.

    registry.add("none", lambda argument, settings: NoTrainer(), "evaluate and design only")
    class NoTrainer:
        def train(self, job):
            return TrainingResult(checkpoint=job.checkpoint)
    """

    def train(self, job: TrainingJob) -> TrainingResult:
        """Train on `job.instances` and write the checkpoint into `job.folder`. Called again for the same folder, it continues.

        Raises T2TError for a user's mistake; KeyboardInterrupt once `job.stop()` is true and what it needs to continue is saved.
        """
        ...


@dataclass(frozen=True)
class TrackedRun:
    """The run whose figures a tracker gets: an `id` that stays the same when the run is stopped and continued, its name (after
    its folder, "runs/paper-0"), its folder, and every setting it uses, as nested tables."""

    id: str
    name: str
    folder: Path
    settings: Mapping[str, Any]


class Tracker(Protocol):
    """Shows a run's figures to whoever watches it, as `report_to` asks (TensorBoard, W&B, ...). Nothing is read back from it.

    Figures have an axis: "update" (steps count the updates of all rounds so far; an interrupted training tells some again) or
    "round" (from 0). `begin` comes first, in every session of the run, and may return a line that says where to look; a T2TError
    from it ends the run, while any later fault is noted and the run goes on without the tracker.

    registry.add("lines", lambda argument, settings: Lines(), "prints them", needs=["module_it_imports"])
    class Lines:
        def begin(self, run): self.name = run.name
        def figures(self, axis, step, figures): print(self.name, axis, step, figures)
        def event(self, step, title, text): print(self.name, "round", step, title, text)
        def end(self): pass
    """

    def begin(self, run: TrackedRun) -> str | None:
        """A session of the run begins. May return a line that says where to look; a T2TError ends the run."""
        ...

    def figures(self, axis: str, step: int, figures: Mapping[str, float]) -> None:
        """Finite numbers by name. A name may have parts ("valid/GROUP"), and no name is the beginning of another."""
        ...

    def event(self, step: int, title: str, text: str) -> None:
        """What happened after that round, as Markdown: for example a design and what it changed."""
        ...

    def end(self) -> None:
        """The session has ended or was stopped: nothing more comes, and what came is kept."""
        ...


class Pool(Protocol):
    """Starts workers that take the jobs of a queue folder (`t2t worker`), somewhere that sees the folder.

    registry.add("cluster", "my_plugin:Cluster", "workers of our cluster, cluster:PARTITION")
    class Cluster:
        def __init__(self, argument, settings): ...
        def start(self, queue): ...  # submit `t2t worker --queue QUEUE`; idle ones end by themselves
        def stop(self): ...
    """

    def start(self, queue: Path) -> None:
        """Bring the pool to its size: start the missing workers on that queue folder. Called repeatedly while jobs wait, so it
        must be cheap, and must not start more workers than the pool should have."""
        ...

    def stop(self) -> None:
        """Stop the workers that it started; their unfinished jobs go back into the queue."""


@dataclass(frozen=True)
class Exchange:
    """One turn of an episode: what the agent said and did, and the result of each of its calls, in order."""

    turn: AgentTurn
    results: Sequence[str]


@dataclass(frozen=True)
class Tried:
    """What an earlier episode of the same agent on the same family came to: its job's values by dotted key, as far as they differ
    from the job it started from, and its reward; `score` is the trained model's, None if there is none."""

    values: Mapping[str, Json]
    reward: float
    score: float | None = None


@dataclass(frozen=True)
class EpisodeState:
    """All that a job agent sees of its episode. It holds no score of the hidden evaluation except those that a tool reported.

    Args:
        family: what the job has to teach: bases, bounds and budget (`t2t_jobs.family.Family`).
        task: the same in words.
        exchanges: the turns so far.
        failures: what was wrong with the last submission, each with `what`, `where`, `cause` and `next`.
        submissions, tokens, turns: how many are left.
        past: earlier episodes of this agent on this family, where it is let learn from them.
        seed: for whatever is random in this episode.
        final: the budget for trying is spent: the agent submits what it considers best.
    """

    family: Any
    task: str
    exchanges: Sequence[Exchange] = ()
    failures: Sequence[Any] = ()
    submissions: int = 1
    tokens: int = 0
    turns: int = 1
    past: Sequence[Tried] = ()
    seed: int = 0
    final: bool = False


class JobAgent(Protocol):
    """Writes a training job by calling tools, turn by turn, until a submission is valid or its budget is spent.

    registry.add("start", lambda argument, settings: Start(), "submits the job that it finds")
    class Start:
        def act(self, state):
            return AgentTurn("as it is", [ToolCall("1", "submit_job", "{}")])
        def describe(self):
            return {}

    It keeps nothing between two turns: what it does follows from the state, so that an interrupted episode continues where it
    stopped.

    Three methods are optional. `act_all(states)` returns the next turn of each of several episodes, in their order; an agent
    has it if one call for many is quicker than a call for each (a model that answers in batches). Where it is missing, and
    where answers cost money, `act` is called for one episode at a time. `spend_at_most(usd)` is called before each `act` by an
    agent's caller if answers cost money: the agent then sends nothing that could go beyond it, and raises `BudgetSpent` where
    nothing more fits. `close()` lets go of a GPU or processes once no episode needs the agent.
    """

    def act(self, state: EpisodeState) -> AgentTurn:
        """The next turn: a text, calls of tools, or both."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Facts for the record, as JSON: the model and its versions, if there is one."""
        ...


class Hooks:
    """All hooks. Implement any of them; each gets the registry of its kind."""

    @hookspec
    def register_testbeds(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Testbed`."""

    @hookspec
    def register_policies(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Policy`."""

    @hookspec
    def register_designers(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Designer`."""

    @hookspec
    def register_contexts(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `ContextModule`."""

    @hookspec
    def register_trainers(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Trainer`."""

    @hookspec
    def register_trackers(self, registry: Registry) -> None:
        """registry.add(name, factory, summary, needs); the factory returns a `Tracker`."""

    @hookspec
    def register_commands(self, registry: Registry) -> None:
        """registry.add("hello", "my_plugin.cli:hello", "one line for `t2t --help`"); the target is a click command."""

    @hookspec
    def register_presets(self, registry: Registry) -> None:
        """registry.add("tiny", path-returning factory, summary): a settings file of `t2t run`."""

    @hookspec
    def register_families(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `t2t_jobs.family.Family`: what a job agent is to teach."""

    @hookspec
    def register_pools(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `Pool` of workers."""

    @hookspec
    def register_agents(self, registry: Registry) -> None:
        """registry.add(name, factory, summary); the factory returns a `JobAgent`."""
