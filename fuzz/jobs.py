"""Targets for what an agent writes: the file of a job, and tool calls in plain text."""

from __future__ import annotations

import functools

from fuzz.common import linear, scratch, text_of
from t2t_core.plugins import installed
from t2t_core.records import Response
from t2t_jobs.family import Family, value_at
from t2t_jobs.job import FILE, Failure, document, read_job
from t2t_jobs.probe import probe
from t2t_jobs.protocol import MOST_CALLS, PlainText
from t2t_jobs.tools import Submitted, Toolbox
from t2t_jobs.workspace import Workspace


@functools.cache
def _families() -> tuple[Family, ...]:
    return tuple(installed().families.make(name) for name in ("draw-optimal", "pairs"))


def job(data: bytes) -> None:
    """`job.toml` of a family of either world: everything wrong with it is reported, and what is accepted reads back."""
    folder = scratch() / "job"
    folder.mkdir(exist_ok=True)
    for family in _families():
        (folder / FILE).write_bytes(data)
        written, failures = probe(folder, family)
        assert all(isinstance(failure, Failure) and failure.what for failure in failures)
        assert written is not None or failures, "no job, and nothing wrong with it"
        if written is None:
            continue
        outside = [key for key, bound in family.bounds.items() if bound.fault(value_at(written.values, key)) is not None]
        assert not outside, f"{outside} is out of bounds and stands in the job"
        (folder / FILE).write_text(document(written.values))
        again, left = read_job(folder, family)
        assert again is not None and again.values == written.values and not left, "an accepted job does not read back"


def calls(data: bytes) -> None:
    """A reply in plain text, and what its calls do to a workspace."""
    text = text_of(data)
    workspace = Workspace(None, {FILE: "rounds = 1\n"})
    tools = Toolbox(workspace, lambda: {"small": 0.1}, lambda: Submitted("queued", True, True))
    called = PlainText().calls(Response(text))
    assert len(called) <= MOST_CALLS
    for call in called:
        assert tools.run(call).text is not None
    assert sum(len(content.encode()) for content in workspace.files.values()) <= 256 << 10
    linear(lambda long: PlainText().calls(Response(long)), text)
