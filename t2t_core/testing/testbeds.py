"""check_testbed"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from t2t_core import contract
from t2t_core.cells import CELLS, Cells, share_knob
from t2t_core.conversation import judge, play
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import InstanceSet, Message, Place, Projection, Response, Scored, Verdict
from t2t_core.reward import reward
from t2t_core.testing.base import as_json, calling, finite, mapping, require, short
from t2t_core.testing.declarations import check_declarations, check_words
from t2t_core.testing.showing import check_shown

GARBAGE: tuple[Any, ...] = (
    *(None, True, -1, 10**400, float("nan"), float("inf"), -1e308, 1e308, "", "0.5", "\x00\x1b[2J", [], [1, 2], {}, {"a": {}}),
    *({1: 2}, {None: None}, {"": float("nan")}, "x" * 10_000, b"bytes", object(), {"a": [{"b": [[[]]]}]}),
)
HOSTILE_TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "\x1b[2J\x1b]0;x\x07",
        "\ud800",
        "\u202e\u2066\ufeff",
        "]]>",
        "<answer>",
        "</answer>",
        "<answer></answer>" * 1000,
    ),
    *("<answer>" * 5000, "(" * 100_000, "[" * 100_000, "9" * 100_000, "-" * 100_000, "\n" * 100_000, "Part 1: " * 20_000),
    *(
        "Part 1: (0,0)",
        "Part 1: (" + "9" * 5000 + ",0)",
        "Part " + "1" * 5000 + ": (0,0)",
        "Part -1: (0,0)",
        "Part 1: (nan,inf)",
    ),
    *(
        "<think>" * 1000,
        "</think>",
        "```\n" * 1000,
        "{" * 50_000,
        '{"a": ' * 10_000,
        "\r\n\r\n\t",
        "\u0661\u0662",
        "\U0001f600" * 1000,
    ),
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
    _verify(testbed, instances, solve)
    _sets(testbed, instances)


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


def _lines(instances: Sequence[Any]) -> list[str]:
    return [as_json(i.to_dict(), "instance.to_dict()") for i in instances]


def _generate(testbed: AnyTestbed, request: Any, count: int) -> Sequence[Any]:
    configuration = testbed.random_configuration(request, 3)
    with calling("generate()"):
        first, again, other = (testbed.generate(configuration, request, seed) for seed in (5, 5, 6))
    require(len(first) == count, f"generate() made {len(first)} instances instead of {count}")
    require(_lines(first) == _lines(again), "generate() differs for the same seed")
    require(_lines(first) != _lines(other), "generate() is the same for two seeds")
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
    for instance, line in zip(instances, _lines(instances), strict=True):
        with calling("read_instance(instance.to_dict())"):
            back = testbed.read_instance(instance.to_dict())
        require(_lines([back]) == [line], "read_instance() is not the inverse of to_dict()")
        with calling("unlabelled()"):
            bare = testbed.unlabelled(instance)
            require(_lines([testbed.unlabelled(bare)]) == _lines([bare]), "unlabelled() finds a label in what it has unlabelled")
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


def _verify(testbed: AnyTestbed, instances: Sequence[Any], solve: Callable[[Any], str] | None) -> None:
    scored = []
    for instance in instances[:4]:
        texts = [*HOSTILE_TEXTS, *([solve(instance)] if solve else [])]
        for text in texts:
            messages = _conversation(testbed, instance, text)
            with calling(f"verify({short(text)})"):
                verdict = judge(testbed, instance, messages)
            _verdict(testbed, verdict, short(text))
            _reward(testbed, instance, verdict, short(text))
            scored.append(Scored(instance, 0, Response(text), verdict, messages))
            check_shown(testbed, scored[-1])
        if solve:
            right = scored[-1].verdict
            require(right.valid, f"a solution is not valid: {right.failure} fails", cause=f"the answer was {short(texts[-1])}")
            require(right.optimal is not False, "an optimal solution is not optimal", cause="the stored optimum is wrong")
    _figures(testbed, scored)


def _verdict(testbed: AnyTestbed, verdict: Any, text: str) -> None:
    if not isinstance(verdict, Verdict):
        require(False, f"verify({text}) returned {type(verdict).__name__}, not a Verdict")
    require(
        verdict.checks and all(isinstance(v, bool) for v in verdict.checks.values()), f"the checks of {text} are not booleans"
    )
    require(
        list(verdict.checks) == list(testbed.checks),
        f"the checks of {text} are {list(verdict.checks)}",
        cause=f"declared are {list(testbed.checks)}",
    )
    as_json([dict(fault.where) for fault in verdict.faults.values()], f"where the faults of {text} are")
    require(all(map(finite, mapping(verdict.figures, "figures").values())), f"the figures of {text} are {short(verdict.figures)}")
    require(verdict.valid is all(verdict.checks.values()), f"{text} is valid={verdict.valid} with checks {dict(verdict.checks)}")
    require(verdict.valid or not verdict.optimal, f"{text} is optimal and not valid")
    require(verdict.valid or verdict.cost is None, f"{text} has a cost and is not valid")
    require(all(name for name in verdict.faults), f"a fault of {text} has no name")


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
            _lines([played])
            asked = testbed.prompt(testbed.unlabelled(played), format)
        same = asked == testbed.prompt(testbed.unlabelled(instance), format)
        require(same, f"rollout(number={number}) asks something else than the instance", cause="a group shares its question")


def _conversation(testbed: AnyTestbed, instance: Any, text: str) -> tuple[Message, ...]:
    """What is said where the policy says the same every time; the environment's part is checked."""
    format = testbed.prompt_formats[0]
    with calling(f"reply() to {short(text)}"):
        first, again = (play(testbed, instance, format, lambda seen: Message("assistant", text)) for _ in range(2))
    require(first == again, f"reply() to {short(text)} differs from one time to the next", cause="it draws from a global stream")
    for message in first:
        require(isinstance(message.content, str), f"reply() to {short(text)} gives a message whose content is no text")
    return first


def _reward(testbed: AnyTestbed, instance: Any, verdict: Verdict, text: str) -> None:
    with calling(f"reward_terms() of {text}"):
        terms = testbed.reward_terms(instance, verdict)
    unknown = [name for name in terms if name not in testbed.rubric]
    require(not unknown, f"the reward terms {unknown} of {text} are not in the rubric")
    low, high = testbed.reward_range
    value = reward(testbed, instance, verdict)
    require(finite(value) and low - 1e-9 <= value <= high + 1e-9, f"the reward of {text} is {value}, not in [{low}, {high}]")


def _figures(testbed: AnyTestbed, scored: Sequence[Scored]) -> None:
    for metric in testbed.metrics:
        for item in scored:
            with calling(f"the metric {metric.name}"):
                value = metric.value(item.verdict, item.response)
            require(value is None or finite(value), f"the metric {metric.name} gives {short(value)}")
            require(metric.kind == "mean" or value in (None, 0, 1), f"the rate {metric.name} gives {short(value)}, not 0 or 1")
    for some in ([], scored):
        with calling(f"breakdown() of {len(some)} answers"):
            breakdown = mapping(testbed.breakdown(some), "the breakdown")
        as_json(dict(breakdown), "the breakdown")
        missing = [part for part in ("total", "groups", "cells") if part not in breakdown]
        require(not missing, f"the breakdown has no {', '.join(missing)}", next="hookspecs.Testbed.breakdown says what it holds")
        wrong = contract.wrong("testbed", "breakdown", breakdown)
        require(wrong is None, f"breakdown() gives {short(dict(breakdown))}, {wrong}")


def _set(name: str, loaded: Any) -> None:
    require(isinstance(loaded, InstanceSet), f"the set {name} is {type(loaded).__name__}, not an InstanceSet")
    require(len(loaded.instances) > 0, f"the set {name} is empty")
    require(len({i.id for i in loaded.instances}) == len(loaded.instances), f"two instances of the set {name} have the same id")
    hexadecimal = len(loaded.sha256) == 64 and set(loaded.sha256) <= set("0123456789abcdef")
    require(hexadecimal, f"the set {name} has no SHA-256 but {short(loaded.sha256)}")


def _reported(testbed: AnyTestbed, name: str, loaded: InstanceSet) -> None:
    """The rows that a publication printed name columns and metrics that there are."""
    columns = list(dict.fromkeys(testbed.place(instance).column for instance in loaded.instances))
    metrics = {metric.name for metric in testbed.metrics}
    with calling(f"reported({name!r})"):
        rows = list(testbed.reported(name, columns))
    for row in rows:
        as_json(dict(mapping(row, f"a reported row of {name}")), f"a reported row of {name}")
        lacking = [key for key in ("policy", "source") if not isinstance(row.get(key), str)]
        require(not lacking, f"a reported row of {name} has no {', '.join(lacking)}")
        figures = {**mapping(row.get("cells", {}), "cells of a reported row"), "total": row.get("total", {})}
        unknown = [column for column in figures if column not in (*columns, "total")]
        for figure in figures.values():
            unknown += [metric for metric in mapping(figure, "a reported cell") if metric not in metrics]
        require(not unknown, f"a reported row of {name} names {short(unknown)}, which is neither a column nor a metric")
    with calling(f"reported_arms({name!r})"):
        arms = list(testbed.reported_arms(name))
    for arm in arms:
        as_json(dict(mapping(arm, f"a reported arm of {name}")), f"a reported arm of {name}")
        lacking = [key for key in ("arm", "source") if not isinstance(arm.get(key), str)]
        require(not lacking, f"a reported arm of {name} has no {', '.join(lacking)}")
        require(("designer" in arm) != ("context" in arm), f"a reported arm of {name} names one designer or one context")
        unknown = [metric for metric in mapping(arm.get("total", {}), "a reported total") if metric not in metrics]
        require(not unknown, f"a reported arm of {name} names {short(unknown)}, which is no metric")


def _sets(testbed: AnyTestbed, instances: Sequence[Any]) -> None:
    options = {option.name: option.parse(option.default) for option in testbed.options()}
    with calling("set_names() with the default options"):
        names = testbed.set_names(options)
    with calling("protected_sets()"):
        protected = testbed.protected_sets()
    with calling("load_set() of an unknown name", T2TError):
        testbed.load_set("no such set")
        require(False, "load_set() knows a set that nobody named", next="raise T2TError with the known names")
    for name in dict.fromkeys([*names, *protected]):
        with calling(f"load_set({name!r})"):
            loaded = testbed.load_set(name)
        _set(name, loaded)
        with calling(f"shared(instances, those of {name})"):
            counts = testbed.shared(instances, loaded.instances)
        sound = all(type(count) is int and count >= 0 for count in mapping(counts, "shared()").values())
        require(sound, f"shared() does not count: {short(counts)}", next='return e.g. {"layouts": 3}')
        _reported(testbed, name, loaded)
    smallest = min(dict.fromkeys([*names, *protected]), key=lambda name: len(testbed.load_set(name).instances), default=None)
    if smallest is not None:  # it stands for all: a twin may take its time
        with calling(f"twin({smallest!r}, 1)"):
            twin = testbed.twin(smallest, 1)
        _set(f"twin of {smallest}", twin)
        columns, others = (
            {(place.table, place.column) for place in map(testbed.place, each.instances)}
            for each in (twin, testbed.load_set(smallest))
        )
        require(columns == others, f"the twin of {smallest} has the columns {short(sorted(columns))}, not those of the set")
        fresh = _lines(twin.instances) != _lines(testbed.load_set(smallest).instances)
        require(fresh, f"the twin of {smallest} is the set itself")
