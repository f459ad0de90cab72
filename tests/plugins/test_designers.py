"""Designers: what they propose from a brief, and how a language model's failures end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

import lake
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief, RoundState
from t2t_core.plugins import installed
from t2t_core.records import ASKED_AGAIN, Response, Round
from t2t_core.testing import check_designer
from t2t_plugins.designers.llm import LanguageModelDesigner, Manner

CONFIGURATION = {
    "3": {"data_ratio": 0.25, "hole_ratio": 0.1, "wait_ratio": 0.5},
    "4": {"data_ratio": 0.75, "hole_ratio": 0.2, "wait_ratio": 0.0},
}


class Talker:
    """A policy that says these texts in turn; None is a failed call."""

    def __init__(self, texts: Sequence[str | None], form: str = "prose") -> None:
        self.texts, self.form, self.prompts = list(texts), form, []

    def respond(self, tasks: Sequence[Any], sampling: Any) -> Any:
        self.prompts += [task.prompt for task in tasks]
        text = self.texts.pop(0)
        yield 0, Response(text or "", 100, 20, error=None if text is not None else "503")

    def describe(self) -> Mapping[str, Any]:
        return {"deterministic": True, "batch_size": 1, "brief": self.form}


def brief(**changes: Any) -> Brief:
    state = RoundState(lake.Lake(), [Round(0, CONFIGURATION, lake.breakdown(9, 1))], knobs=lake.Lake().knobs(None))
    made = Brief("the brief", state, lake.Setting(CONFIGURATION), lake.Wanted(10), 7, compact=("failures\n3 90 90 right",))
    return replace(made, **changes)


def ask(talker: Talker, **settings: str) -> Any:
    return LanguageModelDesigner(lambda brief: talker, Manner.read(settings, "test")).propose(brief())


def test_a_reply_is_read_with_its_summary_and_its_mends() -> None:
    proposal = ask(Talker(['I think.\n```json\n{"3": {"data_ratio": 1,}, "summary": "small first"}\n```']))
    assert proposal.parsed == {"3": {"data_ratio": 1}}
    assert proposal.summary == "small first"
    assert proposal.notes == ("a trailing comma was dropped",)
    assert proposal.prompt == "the brief" and len(proposal.responses) == 1


def test_a_failed_call_is_made_again_and_every_call_is_on_record() -> None:
    proposal = ask(Talker([None, None, '{"3": {"data_ratio": 1}}']))
    assert proposal.parsed and [r.error for r in proposal.responses] == ["503", "503", None]
    given_up = ask(Talker([None, None]), attempts="2")
    assert given_up.parsed is None and "failed 2 times" in given_up.notes[0]


def test_a_policy_that_raises_is_a_failed_call_and_its_prompt_is_on_record() -> None:
    class Moody(Talker):
        def respond(self, tasks: Sequence[Any], sampling: Any) -> Any:
            if len(self.texts) > 2:
                self.texts.pop()
                raise MemoryError("too long")
            if len(self.texts) > 1:
                self.texts.pop()
                return iter(())
            return super().respond(tasks, sampling)

    proposal = ask(Moody(['{"3": {"data_ratio": 1}}', None, None], "compact"))
    assert [r.error for r in proposal.responses] == ["MemoryError: too long", "no answer came", None]
    assert proposal.parsed == {"3": {"data_ratio": 1}}

    class Unmade(Talker):
        def respond(self, tasks: Sequence[Any], sampling: Any) -> Any:
            self.prompts += [task.prompt for task in tasks]
            raise T2TError("there is no such model")

    unmade = Unmade([])
    with pytest.raises(T2TError, match="no such model"):
        ask(unmade)
    assert len(unmade.prompts) == 1  # asking again would not mend it
    given_up = ask(Moody(["", None, None], "compact"), attempts="2")
    assert given_up.parsed is None and given_up.prompt.startswith("design\nconfig") and "2 times" in given_up.notes[0]


class Cut(Talker):
    """Its first reply is cut off within its thoughts; `asked` is what it was asked, and how."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(texts)
        self.asked: list[Any] = []

    def respond(self, tasks: Sequence[Any], sampling: Any) -> Any:
        self.asked.append((tasks[0], sampling))
        for position, response in super().respond(tasks, sampling):
            yield position, replace(response, finish_reason="length") if len(self.asked) == 1 else response


def test_a_designer_that_was_cut_off_is_asked_for_the_json_alone() -> None:
    talker = Cut(["<think>Small lakes first, because", '{"3": {"data_ratio": 1}}'])
    proposal = ask(talker, max_tokens="9", thinking="on")
    (first, usual), (second, brief) = talker.asked
    assert proposal.parsed == {"3": {"data_ratio": 1}} and len(proposal.responses) == 2
    assert proposal.raw.startswith("<think>Small lakes") and "asked once more, for the JSON alone" in proposal.notes
    assert [m.role for m in second.messages] == ["user", "assistant", "user"] and second.messages[0].content == first.prompt
    assert usual.thinking is True and brief == replace(usual, thinking=False)
    for texts, settings, calls in ((["<think>", "still nothing"], {}, 2), (["<think>"], {"finish": "off"}, 1)):
        talker = Cut(texts)
        assert ask(talker, **settings).parsed is None and len(talker.asked) == calls


def test_an_unreadable_reply_is_a_proposal_without_a_configuration() -> None:
    proposal = ask(Talker(["I would rather not."]), finish="off")
    assert proposal.parsed is None and proposal.raw == "I would rather not." and proposal.notes


TWO = '{"3": {"data_ratio": 1}} or rather {"3": {"data_ratio": 0.5}}'


@pytest.mark.parametrize("reply", ["I would rather not.", "", TWO, "[1, 2]"])
def test_a_designer_whose_reply_cannot_be_read_is_told_why_and_asked_for_the_json_alone_once(reply: str) -> None:
    good = '{"3": {"data_ratio": 1}}'
    talker = Talker([reply, good, "a third"])
    proposal = ask(talker)
    assert proposal.parsed == {"3": {"data_ratio": 1}} and talker.texts == ["a third"]
    assert ASKED_AGAIN in proposal.notes and len(proposal.responses) == 2
    assert "## Asked once more" in proposal.prompt and proposal.notes[0].split(";")[0][:40] in proposal.prompt
    why = proposal.notes[0] if proposal.notes[0] != ASKED_AGAIN else "there is no JSON object"
    assert why.rstrip(".") in talker.prompts[1] and talker.prompts[1].endswith("in the format that was asked for.")
    assert "cut off" not in talker.prompts[1]
    again = ask(Talker([reply, "still not", good]))
    assert again.parsed is None and len(again.responses) == 2, "there is no third"


def test_nobody_gets_a_second_chance_who_cannot_be_told_anything_or_has_refused() -> None:
    good = '{"3": {"data_ratio": 1}}'
    for talker, settings in ((Talker(["nonsense", good], "compact"), {}), (Talker(["nonsense", good]), {"finish": "off"})):
        assert ask(talker, **settings).parsed is None and talker.texts == [good]

    class Refusing(Talker):
        def respond(self, tasks: Sequence[Any], sampling: Any) -> Any:
            for position, response in super().respond(tasks, sampling):
                yield position, replace(response, finish_reason="refusal")

    refusing = Refusing(["I will not.", good])
    assert ask(refusing).parsed is None and refusing.texts == [good]


def test_a_small_policy_gets_the_compact_brief_and_answers_in_percent() -> None:
    talker = Talker(['{ "3":[ 40 , 10 , 50 ] , "4":[ 60 , 20 , 5 ] }'], "compact")
    proposal = ask(talker)
    assert talker.prompts == ["design\nconfig\n3 25 10 50\n4 75 20 0\nfailures\n3 90 90 right\nanswer"]
    assert proposal.parsed == {
        "3": {"data_ratio": 0.4, "hole_ratio": 0.1, "wait_ratio": 0.5},
        "4": {"data_ratio": 0.6, "hole_ratio": 0.2, "wait_ratio": 0.05},
    }


def test_base_and_checkpoint_ask_the_runs_own_policy() -> None:
    asked = []

    def policy(checkpoint: Any) -> Talker:
        asked.append(checkpoint)
        return Talker(['{"3": {"data_ratio": 1}}'])

    for name in ("base", "checkpoint"):
        installed().designers.make(name).propose(brief(base="old", checkpoint="new", policy=policy))
    assert asked == ["old", "new"]
    with pytest.raises(T2TError, match="no run"):
        installed().designers.make("checkpoint").propose(brief())


def test_random_fixed_and_rule() -> None:
    make = installed().designers.make
    assert make("fixed").propose(brief()).parsed == CONFIGURATION
    first, again, other = (make("random").propose(brief(seed=s)).parsed for s in (1, 1, 2))
    assert first == again != other
    proposed = make("rule").propose(brief()).parsed
    assert proposed["3"]["hole_ratio"] == pytest.approx(0.15) and proposed["4"]["hole_ratio"] == pytest.approx(0.15)
    assert proposed["4"]["wait_ratio"] == 0
    assert proposed["3"]["data_ratio"] == pytest.approx(0.5)


def test_the_rule_on_failures_reads_what_went_wrong_and_not_how_often() -> None:
    """On lakes conflicts want more waits and holes fewer holes; the same valid rates, other failures, another design."""
    testbed = installed().testbeds.make("mapf-frozenlake")
    request = testbed.request(4)
    setting = testbed.read_configuration(
        {size: {"data_ratio": 1 / 8, "hole_ratio": 0.2, "wait_ratio": 0.5} for size in testbed.groups}
    )

    def proposed(name: str, **failures: int) -> Mapping[str, Any]:
        counts = {"answers": 10, "valid": 10 - sum(failures.values()), "first_failures": failures}
        past = Round(0, setting.to_dict(), {"groups": {"5": counts}})
        asked = Brief("", RoundState(testbed, [past]), setting, request, 0)
        values: Mapping[str, Any] = installed().designers.make(name).propose(asked).parsed["5"]
        return values

    rule = "rule:failures,step=2"
    conflicts, holes = proposed(rule, conflict_free=5, hole_free=1), proposed(rule, conflict_free=1, hole_free=5)
    assert (conflicts["wait_ratio"], conflicts["hole_ratio"]) == pytest.approx((0.6, 0.2))
    assert (holes["wait_ratio"], holes["hole_ratio"]) == pytest.approx((0.5, 0.1))
    both, none = proposed(rule, conflict_free=3, hole_free=3), proposed(rule)
    assert (both["wait_ratio"], both["hole_ratio"]) == pytest.approx((0.6, 0.1))
    assert (none["wait_ratio"], none["hole_ratio"]) == pytest.approx((0.5, 0.2))
    blind = [proposed("rule", conflict_free=5, hole_free=1), proposed("rule", conflict_free=1, hole_free=5)]
    assert blind[0] == blind[1]
    with pytest.raises(T2TError, match="no rule"):
        installed().designers.make("rule:guess")


def test_every_designer_has_its_name() -> None:
    curricula = {"uniform", "easy-to-hard", "learning-progress", "level-replay", "learnability"}
    assert {"random", "fixed", "base", "checkpoint", "llm", "rule", *curricula} <= {entry.name for entry in installed().designers}


@pytest.mark.parametrize(
    "spec", ["fixed:now", "rule:step=-1", "rule:steps=0.1", "base:gpt", "llm", "llm:nobody", "random:seed=3"]
)
def test_a_designer_that_makes_no_sense_is_refused(spec: str) -> None:
    with pytest.raises(T2TError):
        installed().designers.make(spec)


@pytest.mark.parametrize("name", ["random", "fixed", "rule"])
def test_the_built_in_designers_keep_the_contract(name: str) -> None:
    check_designer(installed().designers.make(name), lake.Lake())
