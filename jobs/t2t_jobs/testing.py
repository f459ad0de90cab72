"""The check for task families, which their authors call in their own tests; `t2t_core.testing` has those for other plugins:

from t2t_core.plugins import load
from t2t_jobs.testing import check_family

def test_my_family(tmp_path):
    check_family(load().families.make("mine"), tmp_path)
"""

from __future__ import annotations

from pathlib import Path

from t2t_core.errors import T2TError
from t2t_core.seeding import Stream
from t2t_core.store import folders
from t2t_core.testing.base import calling, require, short
from t2t_jobs import hidden
from t2t_jobs.family import Family
from t2t_jobs.job import FILE, document, make_job
from t2t_jobs.probe import probe

DRAWS = 20  # jobs drawn within the bounds


def check_family(family: Family, folder: Path) -> None:
    """Check the contract of a task family:

    - the family, its bases and its bounds have descriptions for agents;
    - the start job, on every base, and the best known job pass the probe;
    - whatever is drawn within the bounds is within them, and every bound names a key that jobs have;
    - the hidden evaluation can be drawn, the same for the same seed and another one for another seed;
    - there are development examples, the same every time.

    Nothing is trained, and no base is measured.

    Args:
        family: what your factory makes.
        folder: an empty folder, for the jobs that are probed.
    """
    require(isinstance(family, Family), f"{short(family)} is no t2t_jobs.family.Family")
    for name in ("name", "title", "description"):
        text = getattr(family, name)
        require(isinstance(text, str) and text.strip(), f"{name} is {short(text)}", next="agents and people read it")
    for name, base in family.bases.items():
        require(base.description.strip(), f"base {name} has no description", next="an agent chooses by it")
    for key, bound in family.bounds.items():
        require(bound.description.strip(), f"the bound of {key} has no description", next="an agent edits by it")
    _measured(family)
    _probed(family, folder)
    _examples(family)


def _measured(family: Family) -> None:
    with calling("world()"):
        testbed = family.world()
    require(family.evaluation.parts, "the hidden evaluation has no part")
    rates = {metric.name for metric in testbed.metrics}
    for part in family.evaluation.parts:
        require(part.metric in rates, f"the world has no rate {part.metric}", cause=f"it has {', '.join(sorted(rates))}")
        require(part.limit > 0, f"the part {part.set} has no instances", cause=f"limit={part.limit}")
    with calling("drawing the hidden evaluation"):
        for part, instances in hidden.drawn(family, 1):
            require(instances, f"nothing of {part.set} is in {', '.join(part.columns)}", next="name columns of that set")
        first = hidden.identities(family, 1)
    require(hidden.identities(family, 1) == first, "the hidden evaluation of one seed differs when it is drawn again")
    require(hidden.identities(family, 2) != first, "every episode has the same hidden evaluation", cause="twin() ignores it")


def _probed(family: Family, folder: Path) -> None:
    stream = Stream.of(0, "check_family", family.name)
    jobs = {"the job to start from": {}, "the best job known": dict(family.best)}
    jobs |= {f"the job on the base {name}": {"base": name} for name in family.bases}
    for what, changes in jobs.items():
        failures = _failures(family, folder, changes)
        require(not failures, f"{what} is refused: {failures[0] if failures else ''}")
    for _ in range(DRAWS):
        changes = {key: bound.draw(stream) for key, bound in family.bounds.items()}
        outside = [key for key, bound in family.bounds.items() if bound.fault(changes[key])]
        require(not outside, f"a value drawn for {outside[0] if outside else ''} is out of its bound")
        unread = [failure for failure in _failures(family, folder, changes) if failure.what.endswith("may not be edited")]
        require(not unread, f"a bound names what no job has: {unread[0] if unread else ''}")


def _failures(family: Family, folder: Path, changes: dict[str, object]) -> list[T2TError]:
    with calling(f"probing a job with {short(changes)}"):
        folders.make_folder(folder)
        folders.write_atomic(folder / FILE, document(make_job(family, changes).values))
        return list(probe(folder, family)[1])


def _examples(family: Family) -> None:
    with calling("examples()"):
        shown = family.examples(2)
    require(len(shown) == 2, f"examples(2) gave {len(shown)}")
    for example in shown:
        require(example.prompt.strip() and example.answer.strip(), f"a development example is empty: {short(example)}")
    require(family.examples(2) == shown, "examples(2) differs when it is called again", next="draw it from a fixed seed")
