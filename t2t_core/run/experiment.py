"""The ingredients of a run: a settings file (TOML), its overrides, and the checked result that goes into `run.json`.

testbed = "guessing"              # names as `t2t plugins` lists them
policy = "hf:{checkpoint}"        # {checkpoint} is filled with the current checkpoint
checkpoint = "Qwen/Qwen3-4B"      # where training starts; "" if the policy has none
trainer = "trl-grpo"
designer = "checkpoint"
context = "V6"
rounds = 3
seed = 0
report_to = "auto"                # trackers of its figures, "wandb:MY-PROJECT tensorboard"; "auto": TensorBoard where installed
replica = 0                       # another number: the same round 0, other instances and other chance in training afterwards
configuration = "first.json"      # of round 0: a file beside this one, or a table [configuration.GROUP]; without it, random
[generation]                      # samples: instances a round; the rest goes to the testbed's request
[training]                        # to the trainer, as it stands
[reward]                          # weights of the testbed's reward terms, by name; the others keep theirs
[validation]                      # set, limit, prompt_format, temperature, top_p, top_k, min_p, max_tokens, thinking
[evaluation]                      # limit, the testbed's options (spans = "near"), instances = "own.jsonl"; empty: no bench
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

from msgspec import Meta

from t2t_core import seeding
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed, ContextModule, Designer, Policy, Trainer
from t2t_core.plugins import installed
from t2t_core.records import Sampling
from t2t_core.registry import Spec
from t2t_core.settings import refuse_secrets
from t2t_core.store import folders, schema
from t2t_core.store.schema import Count

_MAX_FILE = 1 << 20
_LATER = ("configuration", "reward", "replica", "report_to")
_MAX_DEPTH = 6  # of the tables in a settings file
MAX_SEED = 2**63 - 1
_AtLeast1 = Annotated[int, Meta(ge=1)]


class ValidationTable(TypedDict, total=False):
    """What may stand under [validation]."""

    set: str
    limit: Count
    prompt_format: str
    temperature: Annotated[float, Meta(ge=0, le=10)]
    top_p: Annotated[float, Meta(gt=0, le=1)]
    top_k: Count
    min_p: Annotated[float, Meta(ge=0, le=1)]
    max_tokens: _AtLeast1
    thinking: Literal["default", "on", "off"]


class GenerationTable(TypedDict):
    """What must stand under [generation]; the rest of it goes to the testbed."""

    samples: _AtLeast1


class EvaluationTable(TypedDict, total=False):
    """What may stand under [evaluation] beside the testbed's options."""

    limit: Count
    instances: str


class _Tables(TypedDict, total=False):
    generation: Required[GenerationTable]
    validation: ValidationTable
    evaluation: EvaluationTable


@dataclass(frozen=True)
class Experiment:
    """A run's settings, resolved and checked. Fields are those of the file; see the module's text."""

    testbed: str
    policy: str
    checkpoint: str = ""
    trainer: str = "none"
    designer: str = "fixed"
    context: str = "V6"
    rounds: Annotated[int, Meta(ge=1, le=10_000)] = 3
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] = 0
    replica: Annotated[int, Meta(ge=0, le=10_000)] = 0
    design_seconds: Annotated[float, Meta(gt=0)] = 3600.0
    report_to: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    generation: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    reward: Mapping[str, float] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON; what earlier versions did not know is left out if it is empty or 0, so that their runs go on."""
        return {name: value for name, value in asdict(self).items() if value or name not in _LATER}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "settings") -> Experiment:
        """Check names and types; T2TError for an unknown, missing or nonsensical value, with the nearest name."""
        _refuse_odd(data, where)
        specs = {name: vars(Spec.parse(str(data[name]))) for name in ("testbed", "policy", "trainer", "designer") if name in data}
        refuse_secrets({**data, **specs}, where)
        _refuse_unknown(data, [f.name for f in fields(cls)], where)
        for name in ("testbed", "policy"):
            if not data.get(name):
                raise T2TError(f"the settings name no {name}", where=where, next=f'add {name} = "..."')
        made = schema.check(data, cls, where, cause="")
        _refuse_unknown(made.validation, list(ValidationTable.__annotations__), f"{where}, [validation]")
        schema.check(data, _Tables, where, cause="")
        if made.checkpoint and "{checkpoint}" not in made.policy:
            raise T2TError(
                "the policy would never use the trained checkpoint",
                where=f"{where}, policy {ascii(made.policy)[:80]}",
                next='write {checkpoint} into it, for example policy = "hf:{checkpoint}", or set checkpoint = ""',
            )
        return made

    def key(self, purpose: str, index: int) -> int:
        """The key of the round's randomness: it depends on the replica in every round but the first."""
        return seeding.key(self.seed, purpose, index, *((self.replica,) if self.replica and index else ())) >> 1

    @property
    def samples(self) -> int:
        """Instances generated per round."""
        samples: int = self.generation.get("samples", 0)
        return samples

    @property
    def sampling(self) -> Sampling:
        """How the policy answers in validation and bench: greedily unless told otherwise (our choice)."""
        names = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
        given = {name: self.validation[name] for name in names if name in self.validation}
        given["thinking"] = {"on": True, "off": False}.get(self.validation.get("thinking", "default"))
        return Sampling(**given)

    def start(self) -> Path | None:
        """The checkpoint training starts from, None if the policy has none. It is a folder, the id of a model on a hub, or the
        name of a registered policy that has its own (its attribute `checkpoint`)."""
        spec = Spec.parse(self.checkpoint)
        if spec.name in installed().policies:
            brought = getattr(installed().policies.make(spec), "checkpoint", None)
            if brought is None:
                raise T2TError(
                    f"the policy {spec.name} brings no checkpoint", where="checkpoint", next="name a folder or a model's id"
                )
            return Path(brought)
        if not self.checkpoint:
            return None
        folder = Path(self.checkpoint).expanduser()
        if not folder.exists() and (self.checkpoint.startswith((".", "/", "~")) or self.checkpoint.count("/") > 1):
            raise T2TError(
                f"there is no folder {ascii(self.checkpoint)[1:-1][:200]}",
                where="checkpoint",
                cause="it is not a model id on a hub either, which has one slash: Qwen/Qwen3-4B",
            )
        return folder

    def check_designer(self, designer: Designer) -> None:
        """Raise T2TError if the run's own policy is to design and cannot talk."""
        name = Spec.parse(self.policy).name
        if getattr(designer, "asks_own_policy", False) and not getattr(installed().policies.find(name).load(), "talks", True):
            raise T2TError(
                f"the policy {name} cannot design: its replies are actions and no text",
                where=f"designer {self.designer}",
                next="let rule, random, a curriculum (learnability, level-replay, ...) or llm:POLICY design",
            )

    def make_policy(self, checkpoint: Path | None) -> Policy:
        """The run's policy with that checkpoint."""
        spec = Spec.parse(self.policy)
        text = str(checkpoint) if checkpoint is not None else ""
        filled = {key: value.replace("{checkpoint}", text) for key, value in spec.settings.items()}
        argument = spec.argument.replace("{checkpoint}", text)
        policy: Policy = installed().policies.make(replace(spec, argument=argument, settings=filled))
        return policy


def resolved(
    experiment: Experiment,
    testbed: AnyTestbed,
    trainer: Trainer,
    designer: Designer | None,
    context: Mapping[str, ContextModule],
) -> dict[str, Any]:
    """Every value that a run uses, as nested tables: its configuration with the trainer's defaults filled in, the constants
    that no setting changes, and the settings of the designer and of the context's modules, keyed by the text that named
    them."""
    constants = {**getattr(trainer, "constants", {}), **getattr(testbed, "constants", {})}
    training = dict(getattr(trainer, "defaults", {}))
    _merge(training, experiment.training)
    modules = {f"context {spec.partition(':')[0]}": dict(getattr(module, "settings", {})) for spec, module in context.items()}
    design = dict(getattr(designer, "settings", {}))
    reward = {**testbed.rubric, **experiment.reward}
    own = experiment.to_dict() | {"replica": experiment.replica, "configuration": experiment.configuration or "random"}
    return own | {"training": training, "reward": reward, "constants": constants, "design": design, **modules}


def _other_trainer(data: dict[str, Any], trainer: object) -> None:
    """The settings under [training] belong to one trainer. If a higher layer names another one, it starts from its own
    defaults."""
    if trainer and data.get("trainer") and Spec.parse(str(trainer)).name != Spec.parse(str(data["trainer"])).name:
        data.pop("training", None)


def resolve(
    preset: str, file: Path | None, overrides: Sequence[str], options: Mapping[str, Any], below: Mapping[str, Any]
) -> Experiment:
    """`below` (a forked run's settings), then a preset over it, then a file, then `key=value` overrides
    (`training.epochs=2`), then the command's own options."""
    data: dict[str, Any] = {}
    for layer in (below, read_preset(preset) if preset else {}, read_layer(file) if file else {}):
        _other_trainer(data, layer.get("trainer"))
        if "configuration" in layer:
            data.pop("configuration", None)  # `configuration` is one value, whatever its table looks like
        _merge(data, layer)
    _other_trainer(data, options.get("trainer"))
    for text in overrides:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise T2TError(f"--set wants key=value, not {ascii(text)[:80]}", next="for example --set training.epochs=2")
        _set(data, key.strip().split("."), _value(value), text)
    _inline(data, Path())
    _merge(data, {key: value for key, value in options.items() if value is not None})
    return Experiment.from_dict(data, str(file) if file else f"preset {preset}")


def resolve_tables(preset: str, settings: Mapping[str, Any], where: str) -> Experiment:
    """A preset with settings over it, both in the form of a settings file."""
    data, layer = read_preset(preset) if preset else {}, dict(settings)
    _inline(layer, Path())
    _other_trainer(data, layer.get("trainer"))
    if "configuration" in layer:
        data.pop("configuration", None)
    _merge(data, layer)
    return Experiment.from_dict(data, where)


def read_preset(name: str) -> dict[str, Any]:
    """A preset's settings, without its pointer to published values."""
    settings = read_layer(Path(installed().presets.make(name)))
    settings.pop("published", None)
    return settings


def read_layer(path: Path) -> dict[str, Any]:
    """A run's settings file, with the file that it names for round 0's configuration inlined."""
    settings = read_toml(path)
    _inline(settings, path.parent)
    return settings


def _inline(data: dict[str, Any], folder: Path) -> None:
    """Replace a file named as `configuration` by its table, so that a run depends on nothing outside its folder."""
    named = data.get("configuration")
    if not isinstance(named, str):
        return
    if not named:
        data.pop("configuration")
        return
    path = folder / Path(named).expanduser()
    if not path.is_file():
        raise T2TError("there is no such configuration file", where=f'configuration = "{path}"')
    data["configuration"] = read_toml(path) if path.suffix == ".toml" else folders.read_json(path)


def read_published(name: str) -> dict[str, Any]:
    """The values that a publication gives, in the form of settings: the file, beside the preset's, that the preset names
    as `published`; empty if it names none."""
    path = Path(installed().presets.make(name))
    published = read_toml(path).get("published")
    return read_toml(path.with_name(str(published))) if published else {}


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file; T2TError with the line where it is none."""
    try:
        return tomllib.loads(folders.read_bytes(path, _MAX_FILE).decode())
    except RecursionError:
        raise T2TError("the file is not a configuration", where=str(path), cause="it is nested too deeply") from None
    except ValueError as error:  # of TOML, of UTF-8, or a number of thousands of digits
        raise T2TError("the file is no TOML", where=str(path), cause=str(error)[:300]) from None


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(below.get(key), dict):
            below[key] = dict(below[key])  # a table of another layer, or of a plugin, stays unchanged
            _merge(below[key], value)
        else:
            below[key] = dict(value) if isinstance(value, Mapping) else value


def _set(data: dict[str, Any], path: list[str], value: Any, text: str) -> None:
    *tables, last = path
    for table in tables:
        data = data.setdefault(table, {})
        if not isinstance(data, dict):
            raise T2TError(f"{table} is a value, not a table", where=f"--set {text[:80]}")
    data[last] = value


def _value(text: str) -> Any:
    """A TOML value, or the text itself where it is none (`--set designer=rule` needs no quotes)."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _refuse_odd(value: Any, where: str, at: str = "", depth: int = 0) -> None:
    """T2TError for what no setting can be, and no JSON file could keep: NaN, infinities, dates, integers of more than 128 bits,
    tables in tables in tables."""
    if isinstance(value, Mapping | list) and depth < _MAX_DEPTH:
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, item in items:
            _refuse_odd(item, where, f"{at}.{name}" if at else str(name), depth + 1)
        return
    number = isinstance(value, int | float) and -(2.0**128) < value < 2.0**128
    if not (number or value is None or isinstance(value, str)):
        nested = isinstance(value, Mapping | list)
        fault = "is nested too deeply" if nested else f"has a value that no setting can have ({type(value).__name__})"
        raise T2TError(f"{ascii(at)[1:-1][:80]} {fault}", where=where)


def _refuse_unknown(data: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in data:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            cause = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise T2TError(f"there is no setting {ascii(name)[:60]}", where=where, cause=cause)
