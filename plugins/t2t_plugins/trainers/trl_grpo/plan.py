"""Predicts how much GPU memory, disk and time a training by `trl-grpo` takes, and which settings would make it fit.

The prediction is arithmetic over the model's shape and the settings. tests/plugins/test_plan.py compares it with what a CPU can
measure. What only a GPU has (vLLM, CUDA's own memory, speeds) is assumed, and the plan says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingOrder
from t2t_core.report import markdown
from t2t_core.report.document import Column, Row, Table
from t2t_core.run.gpus import Gpus
from t2t_plugins.trainers.shapes import Shape, shape_of
from t2t_plugins.trainers.trl_grpo.settings import WHERE, Settings

PROMPT = 600  # tokens of the longest prompt, assumed: nothing is drawn yet
TILE = 4096 * 32_768 * 2  # the most bytes of logits that TRL has at once: tokens x vocabulary of a tile, in bfloat16
SET_ASIDE = 2e9  # bytes for CUDA, NCCL and fragments (assumed)
ENGINE = 2e9  # bytes that vLLM takes besides weights and cache (assumed)
TOY = 50_000_000  # models with fewer parameters need no GPU
PHASES = ("sampling", "reference", "training")
GB = 1e9


@dataclass(frozen=True)
class Speed:
    """Assumed figures of one GPU: useful FLOP and bytes per second, and US dollars per hour."""

    name: str
    flops: float
    bandwidth: float
    usd: float


LARGE = Speed("an H100 at 40 % of its bfloat16 FLOPs and 60 % of its bandwidth", 0.4 * 989e12, 0.6 * 3.35e12, 2.5)
SMALL = Speed("an RTX 4090 at 40 % of its bfloat16 FLOPs and 60 % of its bandwidth", 0.4 * 165e12, 0.6 * 1.0e12, 0.5)


@dataclass(frozen=True)
class Part:
    """Bytes of something on each GPU, and the phases of an update in which it is there."""

    name: str
    bytes: float
    phases: tuple[str, ...] = PHASES


@dataclass(frozen=True)
class Plan:
    """What a training takes, given the model's shape, the settings and the gigabytes of each GPU."""

    shape: Shape
    settings: Settings
    gigabytes: float

    @property
    def tokens(self) -> int:
        """Tokens of one backward pass, if all responses are as long as allowed."""
        return self.settings.micro * (PROMPT + self.settings.max_tokens)

    def parts(self) -> Iterator[Part]:
        """What each GPU holds."""
        s, shape = self.settings, self.shape
        split = s.processes if s.sharding in ("fsdp2", "zero3") else 1
        yield Part("weights", self._weights / split + self._added)
        if self._over_float32 and not (s.lora and s.recompute):  # autocast keeps what it has converted
            yield Part("weights in bfloat16", 2.0 * shape.parameters, ("training",))
        yield Part("gradients", self._gradients, ("training",))
        yield Part("optimizer", self._optimizer)
        if s.beta and not s.lora:
            yield Part("reference", shape.parameters * self._width / split)
        if s.sharding == "fsdp2":
            layers = 2 * shape.layer * 2 + shape.layer * (2 + 4)  # this one and the next, a layer's gradients on their way
            yield Part("shards put together", 2 * shape.embedding * (1 if shape.tied else 2) + layers, ("training",))
            yield Part("reference put together", 2.0 * shape.parameters if s.beta and not s.lora else 0, ("reference",))
        yield Part("activations", self._activations, ("training",))
        head = 0 if s.lora else 4 * shape.embedding
        yield Part("logits", TILE + 4 * self.tokens * shape.hidden + head, ("training",))
        if s.engine == "vllm-colocate":
            yield Part("vLLM", s.vllm_memory * self.gigabytes * GB, ("sampling",) if s.vllm_sleep else PHASES)
        elif s.engine != "vllm-server":
            whole = 2.0 * shape.parameters if s.sharding == "fsdp2" else self._weights if s.sharding == "zero3" else 0.0
            yield Part("sampling", whole + self.tokens * shape.cache(self._products), ("sampling",))
        yield Part("set aside", SET_ASIDE)

    def most(self) -> dict[str, float]:
        """Bytes on each GPU in every phase."""
        parts = list(self.parts())
        return {phase: sum(part.bytes for part in parts if phase in part.phases) for phase in PHASES}

    def fits(self) -> bool:
        """Whether each GPU has memory enough in every phase and, if vLLM shares it, room for one sequence."""
        return max(self.most().values()) <= self.gigabytes * GB and (self.settings.engine != "vllm-colocate" or self.room >= 1)

    @property
    def room(self) -> float:
        """How many responses of full length fit into vLLM's cache at once."""
        s = self.settings
        left = s.vllm_memory * self.gigabytes * GB - 2 * self.shape.parameters / s.vllm_tensor_parallel - ENGINE
        return left / (self.shape.cache() / s.vllm_tensor_parallel * (PROMPT + s.max_tokens))

    # --- bytes

    @property
    def _width(self) -> int:
        """Bytes in which a weight is kept."""
        return 2 if self.settings.dtype == "bfloat16" else 4

    @property
    def _products(self) -> int:
        return 4 if self.settings.dtype == "float32" else 2

    @property
    def _over_float32(self) -> bool:
        """Whether autocast computes products in bfloat16 over unsharded float32 weights."""
        return self.settings.sharding == "none" and self.settings.dtype in ("auto", "mixed")

    @property
    def _halved(self) -> bool:
        """Whether DeepSpeed keeps weights and gradients in bfloat16, and float32 weights with the optimizer."""
        return self.settings.sharding.startswith("zero") and self._products == 2

    @property
    def _weights(self) -> float:
        return self.shape.parameters * (2.0 if self._halved else self._width)

    @property
    def _trained(self) -> int:
        return self.shape.adapters(self.settings.lora) if self.settings.lora else self.shape.parameters

    @property
    def _added(self) -> float:
        return 4.0 * self._trained if self.settings.lora else 0.0

    @property
    def _gradients(self) -> float:
        s = self.settings
        if s.sharding == "none":  # plain data parallelism sends them from buffers of their own
            return self._trained * self._width * (2.0 if s.processes > 1 else 1.0)
        return self._trained * (2.0 if self._halved else self._width) / s.processes

    @property
    def _optimizer(self) -> float:
        """AdamW's two moments, each as wide as the weights, and with ZeRO also its float32 weights."""
        each = 12 if self._halved else 2 * (4 if self.settings.lora else self._width)
        return float(each * self._trained) / (1 if self.settings.sharding == "none" else self.settings.processes)

    @property
    def _activations(self) -> float:
        s, shape = self.settings, self.shape
        layer = shape.kept(self._over_float32) * (2 if s.dtype == "float32" else 1)
        if not s.recompute:
            return float(self.tokens * layer * shape.layers)
        stream = shape.hidden * (4 if self._over_float32 or s.dtype == "float32" else 2)
        return float(self.tokens * (stream * shape.layers + 2 * layer))  # one layer again, and its gradients


# --- disk and time


def disk(plan: Plan) -> tuple[float, float]:
    """Bytes that each round leaves (its checkpoint), and the bytes it needs in addition while it trains: two saved states, since
    the old one is removed only when the new one is complete."""
    checkpoint = float(plan.shape.parameters * plan._width)
    trained = plan._trained
    return checkpoint, 2 * ((4.0 * trained if plan.settings.lora else checkpoint) + 8.0 * trained)


def seconds(plan: Plan, speed: Speed) -> tuple[float, float]:
    """The most seconds that an update takes for sampling and for training, if all responses are as long as allowed."""
    s, shape = plan.settings, plan.shape
    responses = s.prompts * s.group
    length = PROMPT + s.max_tokens
    products = 6 + (2 if s.recompute else 0) + (2 if s.beta else 0)
    training = responses * length * products * shape.parameters / (s.processes * speed.flops)
    each = responses / s.processes
    at_once = min(each, max(1.0, plan.room)) if s.engine == "vllm-colocate" else min(each, s.micro)
    step = (2 * shape.parameters + at_once * length / 2 * shape.cache()) / speed.bandwidth
    return each / at_once * s.max_tokens * step, training


# --- the plan as text


def plan_text(settings: Settings, order: TrainingOrder, gpus: Gpus | None) -> str:
    """The plan as Markdown.

    Raises:
        T2TError: the training does not fit the GPUs; the error names the settings that would make it fit.
    """
    checkpoint = str(order.checkpoint)
    shape = shape_of(checkpoint)
    if gpus is None and (shape is None or shape.parameters < TOY):
        return ""
    if shape is None:
        return f"No plan: the shape of {checkpoint} is not known here; with the checkpoint's folder at hand there is one."
    machines = int(settings.accelerate.get("num_machines", 1))
    if gpus and settings.processes > gpus.count * machines:
        raise T2TError(
            f"processes={settings.processes} want a GPU each, and there are {gpus.count * machines}",
            where=WHERE,
            next=f"set training.processes={gpus.count * machines}",
        )
    plan = Plan(shape, settings, gpus.gigabytes if gpus else 80.0)
    if gpus and not plan.fits():
        raise T2TError(
            f"this training does not fit GPUs of {gpus.gigabytes:.0f} GB",
            where=f"{WHERE}, {checkpoint}",
            cause=_why(plan),
            next=remedy(plan),
        )
    processes = f"{settings.processes} process" + ("es" if settings.processes > 1 else "")
    where = str(gpus) if gpus else "no GPU here; shares of one of 80 GB (--gpus 4x80 plans for others)"
    head = f"Plan for {checkpoint}, {shape.parameters / 1e9:.2f} G parameters, {processes}; {where}"
    return "\n".join([head, "", table(plan), "", *_notes(plan, order)])


def table(plan: Plan) -> str:
    """A table with the GB of every part in every phase of an update."""
    rows = [
        Row([part.name, *(f"{part.bytes / GB:.1f}" if phase in part.phases else "" for phase in PHASES)])
        for part in plan.parts()
        if part.bytes
    ]
    rows.append(Row([f"of {plan.gigabytes:.0f}", *(f"{plan.most()[phase] / GB:.1f}" for phase in PHASES)]))
    columns = [Column("GB on each GPU", words=True), *(Column(phase) for phase in PHASES)]
    return markdown.table(Table(columns, rows))


def _notes(plan: Plan, order: TrainingOrder) -> list[str]:
    s, shape = plan.settings, plan.shape
    speed = LARGE if plan.gigabytes >= 40 else SMALL
    stays, meanwhile = disk(plan)
    sampling, training = seconds(plan, speed)
    updates = s.updates(order.samples)
    hours = updates * (sampling + training) / 3600
    rounds = order.rounds
    cost = rounds * hours * s.processes * speed.usd
    notes = [f"assumed: prompts of at most {PROMPT} tokens; {SET_ASIDE / GB:g} GB for CUDA, NCCL and fragments"]
    if s.engine == "vllm-colocate":
        weights = 2 * shape.parameters / s.vllm_tensor_parallel
        each = shape.cache() * (PROMPT + s.max_tokens) / s.vllm_tensor_parallel
        notes += [
            f"vLLM: {weights / GB:.1f} GB of weights in bfloat16, {ENGINE / GB:g} GB assumed for itself; its cache holds "
            f"{int(plan.room)} responses of full length at once, {each / GB:.2f} GB each"
        ]
    notes += [
        f"disk: {stays / GB:.1f} GB stay of every round, {meanwhile / GB:.1f} GB more while it trains",
        f"time: at most {hours:.1f} h a round of {updates} updates ({sampling:.0f} s of sampling, {training:.0f} s of training "
        f"each), {rounds} rounds {rounds * hours:.1f} h, {cost:.0f} USD; validation, design and bench come on top",
        f"assumed for it: every response has {s.max_tokens} tokens, {speed.name}, {speed.usd:g} USD a GPU hour",
    ]
    return [f"- {note}" for note in notes]


def _why(plan: Plan) -> str:
    most = plan.most()
    phase = max(most, key=lambda name: most[name])
    if most[phase] <= plan.gigabytes * GB:
        return f"vLLM's share of {plan.settings.vllm_memory:g} does not hold its weights and one response of full length"
    large = sorted((p for p in plan.parts() if phase in p.phases), key=lambda part: -part.bytes)
    listed = ", ".join(f"{part.name} {part.bytes / GB:.1f}" for part in large if part.bytes >= 0.05 * GB)
    return f"{most[phase] / GB:.1f} GB while {phase}: {listed}"


def remedy(plan: Plan) -> str:
    """The fewest changes of settings that make the training fit; cheaper changes come first."""
    s = plan.settings
    changes: list[Mapping[str, object]] = []
    changes += [{"recompute": True}] if not s.recompute else []
    changes += [{"micro_batch": m} for m in (8, 4, 2, 1) if m < s.micro and not s.part % (m * s.processes)]
    if s.engine == "vllm-colocate":
        changes += [{"vllm_sleep": True}] if not s.vllm_sleep else []
        changes += [{"vllm_memory": m} for m in (0.3, 0.45, 0.6, 0.2) if m != s.vllm_memory]
    changes += [{"sharding": "fsdp2"}] if s.processes > 1 and s.sharding != "fsdp2" else []
    changes += [{"lora": 32}] if not s.lora and s.engine != "fast" else []
    changes += [{"dtype": "bfloat16"}] if s.dtype != "bfloat16" and s.lora else []
    for count in range(1, 5):
        for some in itertools.combinations(changes, count):
            named = {name: value for change in some for name, value in change.items()}
            if len(named) == count and replace(plan, settings=replace(s, **named)).fits():  # type: ignore[arg-type]
                return "set " + " and ".join(f"training.{name}={_toml(value)}" for name, value in named.items())
    return "take more GPUs (training.processes, training.sharding=fsdp2) or a smaller model: no setting alone makes it fit"


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
