"""`ppo:FOLDER`: a policy trained by the trainer `ppo`, for the board."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.records import Response, Sampling, Task
from t2t_core.settings import integer, one_of, read_settings
from t2t_core.text import one_line

from . import ppo
from .playing import MAX_SIZE, StepPolicy, from_predict

FORMS = ("dict", "planes", "flat", "image", "padded")
WHERE = "policy ppo"


class PpoPolicy:
    """Plays each lake with the network of a folder (weights as safetensors, architecture as JSON: nothing is unpickled).

    Args:
        argument: the folder; "" for an untrained network.
        settings: `greedy=true` takes the likeliest action instead of drawing one. Drawing lets agents
            pass each other that would otherwise block each other for ever.
    """

    talks = False

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        values = read_settings(settings or {}, WHERE, {"greedy": one_of(("true", "false"))})
        self.greedy = values.get("greedy", "false") == "true"
        self.folder = Path(argument) if argument else None
        if self.folder is not None and not (self.folder / ppo.ARCHITECTURE).is_file():
            told = f"there is no policy of ppo in {self.folder}"
            raise T2TError(told, where=f"{WHERE}:{argument}", next="t2t run --preset ppo trains one")
        ppo.needs_torch(WHERE)
        self._policy: StepPolicy | None = None

    def _made(self) -> StepPolicy:
        if self._policy is None:
            network, view = self._network()
            facts = {"policy": "ppo", "view": view, "hidden": network["actor"].in_features, "greedy": self.greedy}
            if self.folder is None:
                facts["caveat"] = "untrained"
            environment = {"observation": "padded", "max_size": MAX_SIZE}
            self._policy = StepPolicy(ppo.act_by(network, view, self.greedy), environment, facts)
        return self._policy

    def _network(self) -> tuple[Any, int]:
        if self.folder is not None:
            return ppo.load(self.folder)
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(0)
            return ppo.start_of(None, ppo.Settings())

    def describe(self) -> Mapping[str, Any]:
        return self._made().describe()

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        return self._made().respond(tasks, sampling)


class ImportedPolicy:
    """A Python object with `predict(observation)`, imported by name: `step:MODULE:ATTRIBUTE,trust_code=true`.

    `predict` returns an action per agent, or a pair that begins with them, as Stable-Baselines3 does. If the attribute is a class
    or a function without `predict`, it is called to make the object.

    Args:
        argument: MODULE:ATTRIBUTE.
        settings: `trust_code=true`, because importing runs the module's code; `observation`, `view` and `max_size` of the
            environment that it plays in.
    """

    talks = False

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        readers = {"trust_code": one_of(("true", "false")), "observation": one_of(FORMS)}
        readers |= {"view": integer(0, MAX_SIZE), "max_size": integer(3, 32)}
        values = read_settings(settings or {}, "policy step", readers)
        module, _, name = argument.partition(":")
        if not module or not name:
            raise T2TError("name what plays as MODULE:ATTRIBUTE", where="policy step", next="step:my_agent:agent,trust_code=true")
        if values.pop("trust_code", "false") != "true":
            raise T2TError(
                f"importing {module} runs its code", where="policy step", next="add trust_code=true where you know who wrote it"
            )
        made: Any = getattr(_imported(module), name, None)
        made = made() if callable(made) and not callable(getattr(made, "predict", None)) else made
        if isinstance(made, type):
            made = made()
        if not callable(getattr(made, "predict", None)):
            raise T2TError(f"{argument} has no predict(observation)", where="policy step")
        facts = {"policy": argument, "caveat": "runs its own code"}
        self._policy = StepPolicy(from_predict(made.predict), values, facts, deterministic=False)

    def describe(self) -> Mapping[str, Any]:
        return self._policy.describe()

    def respond(self, tasks: Sequence[Task], sampling: Sampling) -> Iterator[tuple[int, Response]]:
        return self._policy.respond(tasks, sampling)


def _imported(name: str) -> Any:
    """The user's module, also from the working directory, where an installed command (unlike `python -m`) does not look."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)  # after what is installed
    try:
        return import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever the user's own code raises
        missing = isinstance(error, ModuleNotFoundError) and error.name in (name, name.partition(".")[0])
        what = f"importing {name} failed: {type(error).__name__}: {one_line(error, 200)}"
        raise T2TError(
            f"there is no module {name}" if missing else what,
            where="policy step",
            next=f"run t2t where {name.partition('.')[0]}.py lies, or put its folder into PYTHONPATH" if missing else "",
        ) from error
