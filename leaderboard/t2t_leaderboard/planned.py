"""A policy that a request names, and the row of the folder that holds its answers.

A row is identified by what was asked: the policy's spec without its transport (address, time-outs, attempts, prices;
t2t_core.transport), the sampling, and a label if the user gives one. How it was asked is recorded at each start and may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2t_core import transport
from t2t_core.errors import T2TError
from t2t_core.evaluation.evaluate import read_sampling
from t2t_core.hookspecs import Policy
from t2t_core.plugins import installed
from t2t_core.records import Sampling
from t2t_core.redaction import Redactor
from t2t_core.registry import Spec
from t2t_core.settings import refuse_secrets
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_core.text import one_line
from t2t_leaderboard.folder import Bench, Row, row_name
from t2t_leaderboard.growth import larger

_MOST = 60  # characters in a label
_CHANGES = ("policy", "sessions", "describe", "limit", "reader")  # the facts that are compared otherwise, or not at all
# What a policy says about itself that may change between two sessions of one row, besides its transport.
_PACE = ("batch_size", "concurrency", "timeout", "max_retries", "retries", "transport")


@dataclass(frozen=True)
class Planned:
    """A policy made from its spec. `typed` is the spec as the user wrote it, `text` the spec without its transport, `how` the
    names of the settings that are transport."""

    typed: str
    text: str
    label: str
    policy: Policy
    sampling: Sampling
    how: Sequence[str]

    @property
    def shown(self) -> str:
        """The row's name on the board."""
        return self.label or self.text

    def facts(self, bench: Bench, limit: int | None) -> dict[str, Any]:
        """`row.json` without its sessions, for a row that is asked up to that limit."""
        said = {name: value for name, value in self.policy.describe().items() if name != "transport"}
        return {
            "format": folders.FORMAT,
            "policy": self.text,
            **({"label": self.label} if self.label else {}),
            "sampling": self.sampling.recorded(),
            "describe": Redactor().everywhere(said),
            "limit": limit,
            "prompts_sha256": bench.prompts_sha256(limit),
            "reader": bench.testbed.reader,
        }

    def same(self, row: Row) -> bool:
        """Whether the row belongs to this policy. Rows of earlier versions have the transport in their policy."""
        return (self.asked, self.label, self.sampling) == (self._asked(row.policy), row.label, row.sampling)

    @property
    def asked(self) -> Spec:
        """The policy without the settings that only say how it is asked."""
        return self._asked(self.text)

    def _asked(self, text: str) -> Spec:
        spec = Spec.parse(text)
        return replace(spec, settings={name: value for name, value in spec.settings.items() if name not in self.how})

    def lasting(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """A row's facts without those that may change from one session to the next."""
        said, left_out = facts.get("describe"), {*_PACE, *self.how}
        kept = {name: value for name, value in facts.items() if name not in _CHANGES}
        return {**kept, "describe": {k: v for k, v in said.items() if k not in left_out} if isinstance(said, dict) else said}


def prepare(text: str, sampling: Sampling, shared: Mapping[str, str]) -> Planned:
    """Make the policy of a spec before anything is asked, so that a misspelt spec does not stop the bench half way.

    Args:
        text: the spec; its `label` names the row and is not passed to the policy.
        sampling: what the spec does not set itself.
        shared: settings passed to every policy that declares them.
    """
    text = text.strip()
    typed = Spec.parse(text)
    refuse_secrets(vars(typed), "--policy")
    label = _label(typed)
    unnamed = replace(typed, settings={name: value for name, value in typed.settings.items() if name != "label"})
    policies = installed().policies
    asked, _ = transport.separate(policies, unnamed)
    spec, own = read_sampling(unnamed, sampling)
    accepted = getattr(policies.find(spec.name).load(), "shared_settings", ())
    made = policies.make(spec, **{name: value for name, value in shared.items() if name in accepted})
    stripped = str(asked) if asked.settings != typed.settings else text
    return Planned(text, stripped, label, made, own, transport.names(policies, spec))


def greedy(entry: Planned, samples: int) -> str | None:
    """The warning if a model is asked several times in a way that always gives the same answer."""
    if samples == 1 or entry.sampling.temperature > 0 or entry.policy.describe().get("deterministic"):
        return None
    return (
        f"WARNING: {entry.shown} is asked {samples} times at temperature 0, where a model repeats itself: pass@k and majority"
        " then say no more than one answer does; --temperature 0.7, say, draws different answers"
    )


def _label(spec: Spec) -> str:
    label = spec.settings.get("label", "").strip()
    if "label" in spec.settings and (not label or label != one_line(label, _MOST)):
        raise T2TError(
            f"a label is a few plain words, at most {_MOST} characters, not {ascii(spec.settings['label'])[:80]}",
            where=f"policy {spec.name}",
            next="write label=WORDS; where extra_body= is given, before it",
        )
    return label


def refuse_twice(planned: Sequence[Planned]) -> None:
    """Raise T2TError if two policies of one request would be the same row, or two rows would have the same name."""
    for number, entry in enumerate(planned):
        for other in planned[:number]:
            if (entry.asked, entry.label, entry.sampling) == (other.asked, other.label, other.sampling):
                raise T2TError(
                    f"two policies are the same row: {one_line(other.typed)} and {one_line(entry.typed)}",
                    cause="a row is what was asked; address, time-outs, attempts and prices are how",
                    next="give one of them a name of its own: label=WORDS",
                )
            if (entry.label or other.label) and entry.shown == other.shown:
                raise T2TError(f"two rows would be called {ascii(entry.shown)[:80]}", next="give each a label of its own")


def row_folder(bench: Bench, entry: Planned) -> SafePath:
    """The folder of that policy's answers, which may not exist yet. Raises T2TError if another row has its label."""
    for row in bench.rows():
        if entry.same(row):
            return row.folder
        if (entry.label or row.label) and entry.shown == (row.label or row.policy):
            raise T2TError(
                f"another row of the folder is called {ascii(entry.shown)[:80]}",
                where=f"{row.folder} ({one_line(row.policy)})",
                next="give another label=",
            )
    return bench.folder / "rows" / row_name(entry.text, entry.sampling, entry.label)


def open_row(bench: Bench, folder: SafePath, entry: Planned, limit: int | None) -> None:
    """Make `row.json`, or check that it belongs to the same row. Adds how the row is asked this time, if that differs, and the
    limit."""
    path = folder / "row.json"
    stored = folders.read_json(path) if path.exists() else {}
    if stored:
        before = stored.get("limit", bench.settings.limit)
        folders.same_settings(entry.lasting(stored), entry.lasting(entry.facts(bench, before)), path, "row")
        limit = larger(before, limit)
    sessions, how = stored.get("sessions", []), Redactor().everywhere(dict(entry.policy.describe().get("transport", {})))
    if how and (not sessions or sessions[-1].get("transport") != how):
        sessions = [*sessions, {"started": folders.now(), "transport": how}]
    record = {**entry.facts(bench, limit), **({"sessions": sessions} if sessions else {})}
    if record != stored:
        folders.write_json(path, record)
