"""`lines:NAME`: a run's figures as lines of a file in its folder, in case you want to plot them with another program."""

from __future__ import annotations

from collections.abc import Mapping

from t2t_core.hookspecs import TrackedRun


class Lines:
    """One figure per line: axis, step, name, value. A continued run appends to the file."""

    def __init__(self, argument: str, settings: Mapping[str, str]) -> None:
        self._name = argument or "figures.tsv"

    def begin(self, run: TrackedRun) -> str:
        self._path = run.folder / self._name
        return str(self._path)

    def figures(self, axis: str, step: int, figures: Mapping[str, float]) -> None:
        self._add("".join(f"{axis}\t{step}\t{name}\t{value!r}\n" for name, value in figures.items()))

    def event(self, step: int, title: str, text: str) -> None:
        self._add(f"# after round {step}: {title}\n")

    def end(self) -> None:
        """Nothing to do: every line is in the file already."""

    def _add(self, text: str) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(text)
