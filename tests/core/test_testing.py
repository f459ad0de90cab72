"""The checks for plugin authors: a correct plugin passes, and each kind of fault is named."""

import itertools
import json
import random
import time
from dataclasses import replace

import pytest

import lake
from t2t_core.errors import T2TError
from t2t_core.plugins import load
from t2t_core.projection import read_values
from t2t_core.records import Cell, Change, Message, Metric, Option, Projection, Proposal, Response, TrainingResult
from t2t_core.testing import CheckFailed, check_context, check_designer, check_policy, check_testbed, check_trainer

PLUGINS = load()


class Pond(lake.Lake):
    """The pretend testbed, strict about its inputs."""

    def options(self):
        def parse(text):
            if text not in ("2", "3"):
                raise T2TError("two or three")
            return [int(text)]

        return (Option("agents", "how many", "2", parse),)

    def read_configuration(self, data):
        values = read_values(data, lake.GROUPS, self.knobs(None), self.group)
        return lake.Setting({group: {knob: float(number) for knob, number in knobs.items()} for group, knobs in values.items()})

    def read_instance(self, data):
        try:
            return super().read_instance(data)
        except (KeyError, TypeError, IndexError) as error:
            raise T2TError("no instance") from error

    def load_set(self, name):
        if name != "2agents":
            raise T2TError("no such set")
        return super().load_set(name)

    def verify(self, instance, text, format=""):
        return super().verify(instance, text if len(text) < 100 else "long")

    def protected_sets(self):
        return ("2agents",)

    def project(self, proposal, previous, request):
        values, changes = previous.to_dict(), []
        for group, knobs in values.items():
            asked = proposal.get(group) if isinstance(proposal, dict) else None
            for name, top in (("data_ratio", 1.0), ("hole_ratio", 0.5), ("wait_ratio", 1.0)):
                new = asked.get(name) if isinstance(asked, dict) else None
                knobs[name] = new if type(new) is float and 0 <= new <= top else knobs[name]
                if knobs[name] is not new:
                    changes.append(Change(f"{group}.{name}", None, knobs[name], "missing or out of bounds"))
        total = sum(knobs["data_ratio"] for knobs in values.values())
        for group, knobs in values.items():
            before = previous.to_dict()[group]["data_ratio"]
            if abs(total - 1) > 1e-9:  # a division of what sums to one would drift
                knobs["data_ratio"] = knobs["data_ratio"] / total if total else before
        return Projection(lake.Setting(values), changes)


def answer(instance):
    return str(instance.answer)


def whole(data):
    """Shares that sum to 1/2, doubled: what a testbed does that accepts any sum."""
    try:
        doubled = 1.9 < 1 / sum(values["data_ratio"] for values in data.values()) < 2.1
        return {g: {**v, "data_ratio": 2 * v["data_ratio"]} for g, v in data.items()} if doubled else data
    except (AttributeError, KeyError, TypeError, ZeroDivisionError, OverflowError):
        return data


def broken(method, make):
    """A Pond one of whose methods is what `make` makes of it."""
    return type("Broken", (Pond,), {method: make(getattr(Pond, method))})()


def test_a_good_testbed_passes():
    check_testbed(Pond(), solve=answer)


@pytest.mark.thorough
def test_the_built_in_testbed_passes():
    from t2t_envs.frozen_lake import format_answer, solve

    check_testbed(PLUGINS.testbeds.make("mapf-frozenlake"), solve=lambda i: format_answer(solve(i).paths))


def raising(method):
    def call(self, *arguments):
        raise KeyError("boom")

    return call


def protected_first(made, request):
    """The first instance is one of the protected set, unless that very one is excluded."""
    first = replace(made[0], number=3 + int(made[0].group == "4"), answer=3 + int(made[0].group == "4"))
    return [made[0] if f"{first.group} {first.number}".encode() in request.exclude else first, *made[1:]]


TURN = itertools.count().__next__


@pytest.mark.parametrize(
    ("method", "make", "match"),
    [
        ("project", raising, r"project\(None\) raised KeyError"),
        ("project", lambda old: lambda s, p, c, r: "no", "not a Projection"),
        ("project", lambda old: lambda s, p, c, r: Projection(c, [Change("x", 1, 2, "why")]), "just projected"),
        ("project", lambda old: lambda s, p, c, r: Projection(s.random_configuration(r, TURN())), "just projected"),
        ("generate", lambda old: lambda s, c, r, seed: old(s, c, r, seed)[:-1], "made 11 of 12"),
        ("generate", lambda old: lambda s, c, r, seed: old(s, c, r, TURN()), "differs for the same seed"),
        ("generate", lambda old: lambda s, c, r, seed: old(s, c, r, 0), "the same for two seeds"),
        ("generate", lambda old: lambda s, c, r, seed: [replace(i, id="x") for i in old(s, c, r, seed)], "the same id"),
        ("random_configuration", lambda old: lambda s, r, seed: old(s, r, 0), "does not use its seed|same for two seeds"),
        ("read_configuration", lambda old: lambda s, d: lake.Setting({}), "not the inverse"),
        ("read_configuration", lambda old: lambda s, d: lake.Setting(dict(d)), "read_configuration.* raised"),
        ("read_configuration", lambda old: lambda s, d: old(s, whole(d)), "takes shares that sum to 0.5"),
        ("prompt", lambda old: lambda s, i, f: f"{i.number} {i.answer}", "depends on a label"),
        ("prompt", lambda old: lambda s, i, f: "", "is empty"),
        ("unlabelled", lambda old: lambda s, i: replace(i, id=i.id + "x"), "unlabelled|label"),
        ("verify", lambda old: lambda s, i, t, f="": old(s, i, t) if t.isascii() else 1 / 0, "ZeroDivisionError"),
        ("verify", lambda old: lambda s, i, t, f="": replace(old(s, i, t), valid=True), "valid=True with checks"),
        ("verify", lambda old: lambda s, i, t, f="": replace(old(s, i, t), cost=1), "has a cost and is not valid"),
        ("verify", lambda old: lambda s, i, t, f="": replace(old(s, i, t), optimal=False), "not optimal"),
        ("verify", lambda old: lambda s, i, t, f="": old(s, i, "x"), "a solution is not valid"),
        ("reward_terms", lambda old: lambda s, i, v: {"right": 2.0}, r"not in \[0.0, 1.0\]"),
        ("breakdown", lambda old: lambda s, scored: {"total": {}}, "no groups, cells"),
        ("breakdown", lambda old: lambda s, scored: {"mean": 1 / len(scored)}, "ZeroDivisionError"),
        ("place", lambda old: lambda s, i: ("a", "b"), "no Place"),
        ("place", lambda old: lambda s, i: replace(old(s, i), group="nowhere"), "gives the group"),
        ("identity", lambda old: lambda s, i: repr(i.answer).encode(), "depends on a label"),
        ("identity", lambda old: lambda s, i: i.number, "not bytes"),
        ("knobs", lambda old: lambda s, r: old(s, r)[1:], "role share are \\[\\]"),
        ("knobs", lambda old: lambda s, r: old(s, r)[:2], "has the knobs"),
        ("knobs", lambda old: lambda s, r: [replace(k, harder=7) for k in old(s, r)], "harder=7"),
        ("cells", lambda old: lambda s, r: [Cell("a", "9", {"hole_ratio": 0, "wait_ratio": 0})], "of the group '9'"),
        ("reward_terms", lambda old: lambda s, i, v: {"luck": 1.0}, "not in the rubric"),
        ("group_of", lambda old: lambda s, text: None, "is not the group itself"),
        ("load_set", lambda old: lambda s, n: lake.Lake.load_set(s, n), "nobody named"),
        ("load_set", lambda old: lambda s, n: replace(old(s, n), sha256="abc"), "SHA-256"),
        ("twin", raising, r"twin\('2agents', 1\) raised KeyError"),
        ("twin", lambda old: lambda s, n, seed: s.load_set(n), "is the set itself"),
        ("twin", lambda old: lambda s, n, seed: s.load_set(n).instances, "not an InstanceSet"),
        ("reported", raising, "reported.* raised KeyError"),
        ("reported", lambda old: lambda s, n, c: [{"policy": "x", "source": "y", "total": {"luck": {}}}], "names .*luck"),
        ("reported", lambda old: lambda s, n, c: [{"cells": {}}], "has no policy, source"),
        ("rollout", raising, r"rollout\(number=0\) raised KeyError"),
        ("rollout", lambda old: lambda s, i, n: replace(i, number=i.number + n), "asks something else"),
        ("generate", lambda old: lambda s, c, r, seed: old(s, c, replace(r, exclude={b""}), seed), "request.exclude forbids"),
        ("generate", lambda old: lambda s, c, r, seed: protected_first(old(s, c, r, seed), r), "of the protected set 2agents"),
        ("identity", lambda old: lambda s, i: b"x", "is the same for 12 drawn instances"),
        ("identity", lambda old: lambda s, i: i.id.encode(), "depends on the id"),
        ("place", lambda old: lambda s, i: replace(old(s, i), cell=5), "no Place of texts"),
        ("breakdown", lambda old: lambda s, scored: {"total": 5, "groups": 5, "cells": 5}, "lacks the counts"),
        ("group_of", lambda old: lambda s, text: {g: g for g in s.groups}[text], r"group_of\(''\) raised KeyError"),
        ("group_of", lambda old: lambda s, text: text, "neither a group nor None"),
        ("options", lambda old: lambda s: (Option("agents", "", "2", int),), "raised ValueError"),
    ],
)
def test_a_broken_testbed_is_named(method, make, match):
    with pytest.raises(CheckFailed, match=match):
        check_testbed(broken(method, make), solve=answer)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("tools", ["even"]), ("tools", 5), ("commands", {"generate": 5}), ("commands", {"shout": "a:b"})),
        *(("baselines", "random"), ("preset", 5), ("observed", ["x"]), ("constants", 5)),
        *(("length_term", "no"), ("groups_rise", 1), ("joint_cells", "yes")),
        *(("reader", 0), ("turns", True), ("memoryless", "plain"), ("remedies", {"right": {"hole_ratio": 2}}), ("rubric", {})),
        *(("reward_range", (1, 0)), ("metrics", [Metric("valid", 5, "rate", lambda v, r: 1)]), ("checks", ["right", "right"])),
    ],
)
def test_a_declaration_of_the_wrong_kind_is_named(name, value):
    with pytest.raises(CheckFailed, match=rf"{name}|the metric 'valid' has the title 5"):
        check_testbed(type("Broken", (Pond,), {name: value})(), solve=answer)


@pytest.mark.parametrize("name", ["cells", "share"])
def test_a_knob_may_not_be_called_as_a_key_of_joint_cells(name):
    def knobs(self, request):
        return [*Pond.knobs(self, request)[:2], replace(Pond.knobs(self, request)[2], name=name)]

    with pytest.raises(CheckFailed, match=f"a knob is called {name}"):
        check_testbed(type("Broken", (Pond,), {"knobs": knobs, "joint_cells": True})(), solve=answer)


class Echo(Pond):
    """Plays in turns: it repeats what was said, and the last message counts."""

    turns = 3

    def reply(self, instance, messages, format):
        return [Message("user", messages[-1].content)]

    def verify(self, instance, answer, format=""):
        return super().verify(instance, answer[-1].content)


def test_a_testbed_played_in_turns_passes_and_its_faults_are_named():
    check_testbed(Echo(), solve=answer)
    for reply, match in (
        (lambda s, i, m, f: [Message("user", str(TURN()))], "differs from one time"),
        (lambda s, i, m, f: ["hello"], "not a Message"),
        (lambda s, i, m, f: [Message("assistant", "I win")] and 1 / 0, "ZeroDivisionError"),
    ):
        with pytest.raises(CheckFailed, match=match):
            check_testbed(type("Broken", (Echo,), {"reply": reply})(), solve=answer)


@pytest.mark.parametrize("name", ["groups", "checks", "rubric", "group"])
def test_a_declaration_that_is_missing_is_named(name):
    with pytest.raises(CheckFailed, match=name):
        check_testbed(type("Broken", (Pond,), {name: ()})())


class Policy:
    def __init__(self, respond=None, **described):
        self.told, self.described = respond, {"deterministic": True, "batch_size": None, **described}

    def describe(self):
        return self.described

    def respond(self, tasks, sampling):
        if self.told:
            yield from self.told(tasks)
        else:
            yield from ((p, Response(task.prompt)) for p, task in enumerate(tasks))


def each(make):
    return lambda tasks: ((p, make(task)) for p, task in enumerate(tasks))


def test_a_good_policy_passes():
    check_policy(Policy(), Pond())
    check_policy(Policy(lambda tasks: reversed([(p, Response(t.instance_id)) for p, t in enumerate(tasks)])), Pond())
    check_policy(Policy(each(lambda task: Response(str(random.random()))), deterministic=False), Pond())
    check_policy(Policy(each(lambda task: Response("", error="HTTP 500", finish_reason="error"))), Pond())


@pytest.mark.parametrize("name", ["cbs", "prioritized", "pibt", "independent", "random"])
def test_the_solver_policies_pass(name):
    check_policy(PLUGINS.policies.make(name), PLUGINS.testbeds.make("mapf-frozenlake"))


@pytest.mark.parametrize(
    ("policy", "match"),
    [
        (Policy(deterministic="yes"), "not True or False"),
        (Policy(batch_size=0), "batch_size"),
        (Policy(prices={1j}), "not JSON"),
        (Policy(prompt_format=3), "prompt_format is no text"),
        (Policy(brief="poem"), 'neither "prose" nor "compact"'),
        (Policy(model=["a", "b"]), "model is no text"),
        (type("Placed", (Policy,), {"checkpoint": 3})(), "checkpoint is 3, which is no path"),
        (Policy(lambda tasks: iter([])), "24 of 24 tasks unanswered"),
        (Policy(lambda tasks: ((p, Response("")) for p in range(len(tasks) - 1))), "unanswered"),
        (Policy(lambda tasks: ((0, Response("")) for _ in tasks)), "position 0 twice"),
        (Policy(lambda tasks: ((p + 1, Response("")) for p in range(len(tasks)))), "position 24 of 24"),
        (Policy(lambda tasks: ((t.instance_id, Response("")) for t in tasks)), "not an instance's id|of 24 tasks"),
        (Policy(lambda tasks: (Response("") for _ in tasks)), "yield"),
        (Policy(lambda tasks: ((p, "text") for p in range(len(tasks)))), "a str, not a Response"),
        (Policy(lambda tasks: iter([(0, Response(""))])), r"respond\(\[\]\) yielded|position 0 of 0"),
        (Policy(each(lambda task: Response(None))), "text is NoneType"),
        (Policy(each(lambda task: Response("", completion_tokens=-1))), "completion_tokens"),
        (Policy(each(lambda task: Response("", finish_reason="done"))), "finish_reason"),
        (Policy(each(lambda task: Response("", error="no"))), 'finish reason "stop"'),
        (Policy(each(lambda task: 1 / 0)), "ZeroDivisionError"),
        (Policy(each(lambda task: Response(str(random.random())))), "asked again"),
        (Policy(each(lambda task: Response(str(TURN())))), "asked again"),
        (Policy(lambda tasks: ((p, Response(str(p))) for p, _ in enumerate(tasks))), "reverse order"),
        (Policy(lambda tasks: ((p, Response(str(len(tasks)))) for p, _ in enumerate(tasks))), "asked alone"),
        (Policy(each(lambda task: Response(str(task.instance.answer)))), "given a labelled instance"),
    ],
)
def test_a_broken_policy_is_named(policy, match):
    with pytest.raises(CheckFailed, match=match):
        check_policy(policy, Pond())


def test_a_key_in_describe_is_found(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-12345678")
    with pytest.raises(CheckFailed, match="value of MY_API_KEY") as error:
        check_policy(Policy(header="Bearer sk-12345678"), Pond())
    assert "sk-1234" not in str(error.value)


class Designer:
    def __init__(self, propose):
        self.propose = propose


def test_what_a_designer_says_of_itself_is_looked_at():
    designer = Designer(lambda brief: Proposal("", None))
    designer.asks_own_policy = "sometimes"
    with pytest.raises(CheckFailed, match="asks_own_policy is 'sometimes', which is neither True nor False"):
        check_designer(designer, Pond())


@pytest.mark.parametrize("name", ["random", "fixed", "rule"])
def test_the_built_in_designers_pass(name):
    check_designer(PLUGINS.designers.make(name), Pond())
    check_designer(PLUGINS.designers.make(name), PLUGINS.testbeds.make("mapf-frozenlake"))


def edit(brief):
    brief.state.rounds[0].breakdown["total"] = {}
    return Proposal("", None)


@pytest.mark.parametrize(
    ("propose", "match"),
    [
        (lambda brief: {"3": {}}, "dict, not a Proposal"),
        (lambda brief: Proposal(None, None), "raw is no text"),
        (lambda brief: Proposal("", "30 %"), "parsed is str"),
        (lambda brief: Proposal("", None, notes="one"), "notes"),
        (lambda brief: Proposal("", None, summary=3), "summary"),
        (lambda brief: Proposal("", None, responses=["x"]), "responses"),
        (lambda brief: brief.state.rounds[1] and Proposal("", None), "after 1 rounds raised IndexError"),
        (edit, "changed its brief"),
    ],
)
def test_a_broken_designer_is_named(propose, match):
    with pytest.raises(CheckFailed, match=match):
        check_designer(Designer(propose), Pond())


class Module:
    title = "Weather"

    def __init__(self, render, **attributes):
        self.render = render
        self.__dict__.update(attributes)


@pytest.mark.parametrize("name", ["F", "G", "H", "S", "T"])
def test_the_built_in_context_modules_pass(name):
    check_context(PLUGINS.contexts.make(name), Pond())


@pytest.mark.parametrize(
    ("module", "match"),
    [
        (Module(lambda state, compact: 3), "returned int"),
        ("F,G", "names of other modules"),
        (Module(lambda state, compact: "", title=""), "title"),
        (Module(lambda state, compact: "", request=1), "request"),
        (Module(lambda state, compact: str(time.perf_counter_ns())), "another text each time"),
        (Module(lambda state, compact: state.rounds[0].summary.strip()), "on one round raised AttributeError"),
        (Module(lambda state, compact: str(state.examples[0])), "no examples.* raised IndexError"),
        (Module(lambda state, compact: str(state.bookkeeping["round_index"])), "no examples.* raised KeyError"),
        (Module(lambda state, compact: state.rounds[-1].breakdown.pop("cells", None) and "x"), "each time|changed the state"),
    ],
)
def test_a_broken_context_module_is_named(module, match):
    with pytest.raises(CheckFailed, match=match):
        check_context(module, Pond())


class Trainer:
    def __init__(self, train):
        self.train = train


def writes(job):
    job.folder.mkdir()
    (job.folder / "model").write_text("new")
    job.progress({"update": 1})
    return TrainingResult(job.folder, {"loss": 0.5, "updates": [1, 2]}, 12, 3, 400)


def spoils(job):
    (job.checkpoint / "model").write_text("spoilt")
    return TrainingResult(None)


def strays(job):
    (job.folder.parent / "cache").write_text("x")
    return TrainingResult(None)


def test_good_trainers_pass(tmp_path):
    check_trainer(PLUGINS.trainers.make("none"), Pond(), tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "model").write_text("old")
    result = check_trainer(Trainer(writes), Pond(), tmp_path, checkpoint=tmp_path / "old")
    assert result.updates == 3 and json.dumps(dict(result.metrics))


@pytest.mark.parametrize(
    ("train", "match"),
    [
        (lambda job: None, "NoneType, not a TrainingResult"),
        (lambda job: TrainingResult(job.folder), "does not exist"),
        (lambda job: TrainingResult(None, {"loss": float("nan")}), "not JSON|diverged"),
        (lambda job: TrainingResult(None, samples=-1), "samples"),
        (lambda job: TrainingResult(None, tokens=1.5), "tokens"),
        (lambda job: job.progress("half") or TrainingResult(None), "progress"),
        (lambda job: 1 / 0, "ZeroDivisionError"),
        (spoils, "changed the checkpoint"),
        (strays, "beside its folder: cache"),
    ],
)
def test_a_broken_trainer_is_named(train, match, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "model").write_text("old")
    with pytest.raises(CheckFailed, match=match):
        check_trainer(Trainer(train), Pond(), tmp_path, checkpoint=tmp_path / "old")


@pytest.mark.parametrize(
    ("method", "result", "match"),
    [
        ("plan", lambda: [1], "cannot be counted: it is a list"),
        ("plan", lambda: object(), "is another one the second time"),
        ("picture", lambda: None, "is NoneType, not text"),
        ("picture", lambda: "<svg>", "is no XML"),
        ("picture", lambda: "<svg/>", "is a <svg>, not an <svg> with its xmlns"),
        ("picture", lambda: f'<svg xmlns="http://www.w3.org/2000/svg" id="i{TURN()}"/>', "another one the second time"),
        ("picture", lambda: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_plan_that_cannot_be_counted_and_a_picture_that_is_none_are_named(method, result, match):
    made = type("Broken", (Pond,), {method: lambda self, *arguments, **named: result()})()
    with pytest.raises(CheckFailed, match=match):
        check_testbed(made, solve=answer)
