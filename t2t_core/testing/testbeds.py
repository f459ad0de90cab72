"""check_testbed: a testbed's configurations, Project, drawing and instances; its answers and sets have modules beside this."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from t2t_core.cells import CELLS, Cells, share_knob
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Place, Projection
from t2t_core.testing.answers import check_answers
from t2t_core.testing.base import as_json, calling, lines_of, mapping, require, short
from t2t_core.testing.declarations import check_declarations, check_words
from t2t_core.testing.sets import check_sets

GARBAGE: tuple[Any, ...] = (
    *(None, True, -1, 10**400, float("nan"), float("inf"), -1e308, 1e308, "", "0.5", "\x00\x1b[2J", [], [1, 2], {}, {"a": {}}),
    *({1: 2}, {None: None}, {"": float("nan")}, "x" * 10_000, b"bytes", object(), {"a": [{"b": [[[]]]}]}),
)


def check_testbed(testbed: AnyTestbed, *, count: int = 12, solve: Callable[[Any], str] | None = None) -> None:
    """The contract of `hookspecs.Testbed`.

    Project never fails and leaves what is right as it is; whatever it passes, generate fills exactly and the same for the
    same seed; instances and configurations survive JSON; prompts show no label; verify takes any text; sets are what they
    say; everything is declared, and rewards lie in the declared range.

    Args:
        testbed: what your factory makes.
        count: instances per draw.
        solve: an optimal answer's text for an instance, so that right answers are checked too.
    """
    _names(testbed)
    request = _request(testbed, count)
    _configurations(testbed, request)
    _project(testbed, request, count)
    instances = _generate(testbed, request, count)
    _instances(testbed, instances)
    _excluded(testbed, instances, count)
    check_answers(testbed, instances, solve)
    check_sets(testbed, instances)


def _names(testbed: AnyTestbed) -> None:
    check_words(testbed)
    names = [metric.name for metric in testbed.metrics]
    require(names and len(set(names)) == len(names), f"metric names are not distinct: {names}")
    for metric in testbed.metrics:
        require(metric.kind in ("rate", "mean"), f"the metric {metric.name} is of kind {metric.kind!r}", next='"rate" or "mean"')
    for option in testbed.options():
        with calling(f"the default of --{option.name}"):
            option.parse(option.default)
        for text in ("", "\x00", "-1", "nonsense,,", "9" * 5000):
            with calling(f"--{option.name} {short(text)}", T2TError):
                option.parse(text)


def _request(testbed: AnyTestbed, count: int) -> Any:
    with calling("request()"):
        request = testbed.request(count)
    with calling("request(exclude=frozenset())"):
        testbed.request(count, exclude=frozenset())
    check_declarations(testbed, request)
    return request


def _dict(configuration: Any) -> str:
    return as_json(dict(mapping(configuration.to_dict(), "configuration.to_dict()")), "configuration.to_dict()")


def _configurations(testbed: AnyTestbed, request: Any) -> None:
    with calling("random_configuration()"):
        first, again, other = (testbed.random_configuration(request, seed) for seed in (0, 0, 1))
    require(
        _dict(first) == _dict(again), "random_configuration() differs for the same seed", cause="it draws from a global stream"
    )
    require(_dict(first) != _dict(other), "random_configuration() is the same for two seeds", cause="it does not use its seed")
    with calling("read_configuration(configuration.to_dict())"):
        back = testbed.read_configuration(first.to_dict())
    require(_dict(back) == _dict(first), "read_configuration() is not the inverse of to_dict()")
    for garbage in GARBAGE:
        with calling(f"read_configuration({short(garbage)})", T2TError):
            testbed.read_configuration(garbage)
    share = share_knob(testbed.knobs(request))
    halved = {group: {**values, share: values[share] / 2} for group, values in first.to_dict().items()}
    with calling("read_configuration() of shares that sum to 0.5", T2TError):
        testbed.read_configuration(halved)
        require(False, "read_configuration() takes shares that sum to 0.5", next="t2t_core.projection.read_values refuses them")


def _proposals(configuration: Mapping[str, Any]) -> Iterator[Any]:
    """Garbage as such, under every key, and in the place of every single number."""
    yield from GARBAGE
    for garbage in GARBAGE:
        yield dict.fromkeys(configuration, garbage)
        for name, value in configuration.items():
            yield {**configuration, name: garbage}
            if isinstance(value, Mapping):
                for knob in value:
                    yield {**configuration, name: {**value, knob: garbage}}
            break  # one group stands for all


def _joint_cells(testbed: AnyTestbed, request: Any, configuration: Any) -> Iterator[Any]:
    """What a curriculum over cells proposes: all of them alike, and each alone in its group."""
    if testbed.joint_cells and testbed.cells(request):
        before = configuration.to_dict()
        cells = Cells(testbed, testbed.knobs(request), before, testbed.cells(request))
        yield cells.proposal(dict.fromkeys(cells.names(), 1.0))
        for cell in cells.cells[:: max(1, len(cells) // 8)]:
            yield cells.proposal({cell.name: 1.0})
        group = next(iter(before))  # it stands for all
        yield from ({**before, group: {**before[group], CELLS: garbage}} for garbage in (*GARBAGE, [{}], [None]))


def _project(testbed: AnyTestbed, request: Any, count: int) -> None:
    previous = testbed.random_configuration(request, 0)
    before = _dict(previous)
    projected: set[str] = set()
    proposals = [*_joint_cells(testbed, request, previous), *_proposals(copy.deepcopy(previous.to_dict()))]
    for number, proposal in enumerate(proposals):
        with calling(f"project({short(proposal)})"):
            result = testbed.project(proposal, previous, request)
        if not isinstance(result, Projection):
            require(False, f"project() returned {type(result).__name__}, not a Projection")
        _fixed_point(testbed, result, request)
        require(_dict(previous) == before, f"project({short(proposal)}) changed the previous configuration")
        as_json([[c.knob, c.used, c.reason] for c in result.changes], "the changes of a projection")
        text = _dict(result.configuration)
        if text not in projected and number % 20 == 0:
            with calling(f"generate() from what project({short(proposal)}) passed"):
                made = testbed.generate(result.configuration, request, 1)
            require(len(made) == count, f"generate() made {len(made)} of {count} from what project({short(proposal)}) passed")
        projected.add(text)


def _fixed_point(testbed: AnyTestbed, result: Projection[Any], request: Any) -> None:
    """A configuration that satisfies the constraints passes unchanged."""
    settled = result.configuration
    again = testbed.project(settled.to_dict(), settled, request)
    require(
        _dict(again.configuration) == _dict(settled) and not again.changes,
        f"project() changes what it has just projected: {[c.knob for c in again.changes][:3]}",
        cause="its corrections are not stable, for example a renormalisation that drifts",
    )


def _generate(testbed: AnyTestbed, request: Any, count: int) -> Sequence[Any]:
    configuration = testbed.random_configuration(request, 3)
    with calling("generate()"):
        first, again, other = (testbed.generate(configuration, request, seed) for seed in (5, 5, 6))
    require(len(first) == count, f"generate() made {len(first)} instances instead of {count}")
    require(lines_of(first) == lines_of(again), "generate() differs for the same seed")
    require(lines_of(first) != lines_of(other), "generate() is the same for two seeds")
    require(len({i.id for i in first}) == count, "two generated instances have the same id")
    report = getattr(first, "report", None)
    if report is not None:
        with calling("generate().report.to_dict()"):
            as_json(report.to_dict(), "generate().report.to_dict()")
    made: Sequence[Any] = first
    return made


def _excluded(testbed: AnyTestbed, instances: Sequence[Any], count: int) -> None:
    """What a request excludes is not drawn, and without a word the protected sets are excluded."""
    with calling("identity()"):
        identities = [testbed.identity(instance) for instance in instances]
    require(
        len(set(identities)) > 1,
        f"identity() is the same for {len(identities)} drawn instances",
        cause="two different tasks must differ in it",
    )
    request = testbed.request(count, exclude=frozenset(identities[:2]))
    configuration = testbed.random_configuration(request, 3)
    with calling("generate() where two instances are excluded"):
        configuration = testbed.project(configuration.to_dict(), configuration, request).configuration
        drawn = testbed.generate(configuration, request, 5)
    again = [instance.id for instance in drawn if testbed.identity(instance) in identities[:2]]
    require(not again, f"generate() draws what request.exclude forbids: {short(again)}", next="look at request.exclude")
    for name in testbed.protected_sets():
        with calling(f"load_set({name!r})"):
            kept = {testbed.identity(instance) for instance in testbed.load_set(name).instances}
        drawn_there = [i.id for i, identity in zip(instances, identities, strict=True) if identity in kept]
        require(
            not drawn_there,
            f"generate() draws instances of the protected set {name}: {short(drawn_there)}",
            next="a request excludes the protected sets unless exclude= says otherwise",
        )


def _instances(testbed: AnyTestbed, instances: Sequence[Any]) -> None:
    for instance, line in zip(instances, lines_of(instances), strict=True):
        with calling("read_instance(instance.to_dict())"):
            back = testbed.read_instance(instance.to_dict())
        require(lines_of([back]) == [line], "read_instance() is not the inverse of to_dict()")
        with calling("unlabelled()"):
            bare = testbed.unlabelled(instance)
            again = lines_of([testbed.unlabelled(bare)])
            require(again == lines_of([bare]), "unlabelled() finds a label in what it has unlabelled")
        for format in testbed.prompt_formats:
            with calling(f"prompt(format={format!r})"):
                text, blind = testbed.prompt(instance, format), testbed.prompt(bare, format)
            require(isinstance(text, str) and text.strip(), f"the prompt in format {format!r} is empty")
            require(text == blind, f"the prompt in format {format!r} depends on a label", cause="it shows an optimum or a flag")
        place = testbed.place(instance)
        texts = isinstance(place, Place) and all(isinstance(p, str) for p in (place.table, place.column, place.cell, place.group))
        require(texts, f"place() gives no Place of texts but {short(place)}")
        require(place.group in testbed.groups, f"place() gives the group {short(place.group)}", cause=f"groups: {testbed.groups}")
        _same(testbed, instance, bare)
        _rollouts(testbed, instance)
    for garbage in GARBAGE:
        with calling(f"read_instance({short(garbage)})", T2TError):
            testbed.read_instance(garbage)


def _same(testbed: AnyTestbed, instance: Any, bare: Any) -> None:
    """The identity belongs to the task, so it survives JSON and does not look at labels."""
    with calling("identity()"):
        identity = testbed.identity(instance)
        others = (testbed.identity(bare), testbed.identity(testbed.read_instance(instance.to_dict())))
    require(isinstance(identity, bytes) and identity, f"identity() gives {short(identity)}, not bytes")
    require(set(others) == {identity}, "identity() depends on a label or on the object", cause="it is of the task alone")
    renamed: list[Any] = []
    with calling("read_instance() of another id", T2TError):  # an id may say what the instance is
        renamed.append(testbed.read_instance({**instance.to_dict(), "id": f"{instance.id}_again"}))
    for other in renamed:
        require(testbed.identity(other) == identity, "identity() depends on the id", cause="it is of the task alone")


def _rollouts(testbed: AnyTestbed, instance: Any) -> None:
    """Every rollout of a group is asked the same, and plays something that is an instance."""
    format = testbed.prompt_formats[0]
    for number in (0, 1, 7):
        with calling(f"rollout(number={number})"):
            played = testbed.rollout(instance, number)
            lines_of([played])
            asked = testbed.prompt(testbed.unlabelled(played), format)
        same = asked == testbed.prompt(testbed.unlabelled(instance), format)
        require(same, f"rollout(number={number}) asks something else than the instance", cause="a group shares its question")
