"""The reader of designers' replies: every row of the table in docs/designers.md, and that no text breaks it or slows it down."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_core.loop.context import readable
from t2t_envs.frozen_lake.testbed import make
from t2t_plugins.designers.reader import MAX_CHARACTERS, MAX_SUMMARY, Form, printable_summary, read_reply

KNOBS = ("data_ratio", "hole_ratio", "wait_ratio")
IN_FORCE = {
    "3": {"data_ratio": 0.25018, "hole_ratio": 0.1, "wait_ratio": 0.5},
    "4": {"data_ratio": 0.74982, "hole_ratio": 0.2, "wait_ratio": 0.0},
}
SHOWN = {group: {knob: round(value, 3) for knob, value in knobs.items()} for group, knobs in IN_FORCE.items()}
EARLIER = {"3": dict.fromkeys(KNOBS, 0.5), "4": dict.fromkeys(KNOBS, 0.5)}
FORM = Form(("3", "4"), KNOBS, make().group_of, [(EARLIER, EARLIER), (IN_FORCE, SHOWN)])
COMPACT = Form(
    ("3", "4"), KNOBS, make().group_of, of_list=lambda values: {k: v / 100 for k, v in zip(KNOBS, values, strict=True)}
)

THREE = {"data_ratio": 0.4, "hole_ratio": 0.1, "wait_ratio": 0.3}
FOUR = {"data_ratio": 0.6, "hole_ratio": 0.2, "wait_ratio": 0.0}
BOTH = {"3": THREE, "4": FOUR}
JSON = json.dumps(BOTH)
READ: dict[str, list[str]] = {
    "one object, with prose or a code fence around it": [JSON, f"I think so.\n```json\n{JSON}\n```\nGood luck.", f"a = {JSON};"],
    "thoughts, in whatever marks, with drafts in them": [
        f'<think>{{"3": {{"data_ratio": 1}}}} no</think>{JSON}',
        f'perhaps {{"3": {{"data_ratio": 1}}}}</think>\n{JSON}',
        f"{JSON}<think>or rather " + '{"3": {"data_ratio": 1}}',
        f'<|channel|>analysis<|message|>{{"3": {{"data_ratio": 1}}}}<|end|><|start|>assistant<|channel|>final<|message|>{JSON}',
    ],
    "a closing remark with `{}` or another object that names no group": [
        f"{JSON}\nAn empty {{}} would keep it.",
        f'{JSON} {{"a": 1}}',
        f'{JSON} In force there was {{"hole_ratio": 0.2, "wait_ratio": 0.0}}.',
    ],
    "a wrapper": [
        f'{{"configuration": {JSON}, "confidence": 0.7}}',
        f'{{"name": "set", "arguments": {{"configuration": {JSON}}}}}',
        f'{{"observed": {{"3": 0.9, "4": 0.2}}, "why": {{"3": "solved"}}, "next": {JSON}}}',
        f"[{JSON}]",
    ],
    "other names of a group": [
        JSON.replace('"3"', '"3x3"').replace('"4"', '"4×4"'),
        JSON.replace('"3"', '"size 3"').replace('"4"', '"Size_4"'),
        JSON.replace('"3"', "3").replace('"4"', "4x4"),
        JSON.replace('"3"', r'"\"3\""').replace('"4"', '''"'4x4'"'''),
    ],
    "other names of a knob": [
        JSON.replace("data_ratio", "Data ratio").replace("hole_ratio", "holeRatio").replace("wait_ratio", "WAIT-RATIO"),
        JSON.replace("_ratio", ""),
        JSON.replace("hole_ratio", "Holes"),
        JSON.replace("hole_ratio", "holes_ratio").replace("data_ratio", "data_share"),
        JSON.replace("hole_ratio", "hole density").replace("data_ratio", "data_ratio (share)"),
    ],
    "percent with its sign, numbers as text": [
        JSON.replace("0.4", '"40%"').replace("0.6", "60%").replace("0.1", '"10 %"').replace("0.3", '"0.3"'),
        JSON.replace('"hole_ratio": 0.1', '"hole_percent": 10').replace('"hole_ratio": 0.2', '"hole ratio (%)": "20"'),
        "| size | data % | hole (%) | wait_ratio |\n|-|-|-|-|\n| 3 | 40 | 10% | 0.3 |\n| 4 | 60 | 20 | 0 |",
    ],
    "an object that stands as text in another, or with its quotes escaped": [
        json.dumps({"name": "propose", "arguments": JSON}),
        json.dumps({"configuration": json.dumps(BOTH, indent=1)}),
        json.dumps({group: json.dumps(values) for group, values in BOTH.items()}),
        JSON.replace('"', '\\"'),
        JSON.replace('"', "&quot;"),
    ],
    "full-width commas and colons, Markdown's escapes, invisible characters": [
        JSON.replace(", ", "，").replace(": ", "："),
        JSON.replace("_", "\\_"),
        JSON.replace('"3"', '\u200b"3"'),
        "\ufeff" + JSON,
    ],
    "trailing or missing commas": [JSON.replace("}}", ",},}"), JSON.replace(', "', ' "'), JSON.replace(', "4"', '\n"4"')],
    "comments": [JSON.replace('"4"', '// larger\n"4" /* so */'), JSON.replace('"4"', '# larger\n"4"')],
    "single or typographic quotes, keys without any": [
        JSON.replace('"', "'"),
        re.sub(r'"(\w+)"', r"“\1”", JSON),
        re.sub(r'"(\w+)"', r"\1", JSON),
    ],
    "a raw line break or control character in a text": [JSON[:-1] + ', "summary": "first\nthen\tmore"}'],
    "one object per group": [
        f'{{"3": {json.dumps(THREE)}}}\n{{"4": {json.dumps(FOUR)}}}',
        f'3x3:\n{{"3": {json.dumps(THREE)}}}\n\nand 4x4:\n{{"4": {json.dumps(FOUR)}}}',
    ],
    "a list or objects in which a field names the group": [
        json.dumps([{"size": 3, **THREE}, {"size": "4x4", **FOUR}]),
        json.dumps({"sizes": [{"map_size": 3, **THREE}, {"map_size": 4, **FOUR}]}),
        json.dumps({"size": 3, **THREE}) + "\n" + json.dumps({"size": 4, **FOUR}),
    ],
    "by knob instead of by group": [json.dumps({knob: {"3": THREE[knob], "4x4": FOUR[knob]} for knob in KNOBS})],
    "the same proposal twice, whole or in part": [
        f"{JSON}\nOnce more:\n{JSON}",
        f'{JSON}\nNote the {{"3": {{"data_ratio": 0.4}}}}.',
    ],
    "the configuration in force, or an earlier one, quoted beside the proposal": [
        f"In force is {json.dumps(SHOWN)}. I propose {JSON}",
        f"{JSON}, where {json.dumps(EARLIER)} was first",
        json.dumps({"current": SHOWN, "proposed": BOTH}),
    ],
    "text that is struck out or commented out, with drafts in it": [
        f"~~{json.dumps(EARLIER).replace('0.5', '0.7')}~~ {JSON}",
        f"<!-- {json.dumps(EARLIER).replace('0.5', '0.7')} -->\n{JSON}",
    ],
    "what stands under a name that says that it is no proposal, beside one": [
        json.dumps({name: {"3": FOUR, "4": THREE}, "proposal": BOTH})
        for name in (
            "before",
            "previous",
            "Draft",
            "delta",
            "bounds",
            "max",
            "observed",
            "fallback",
            "not used",
            "expected_valid",
        )
    ],
    "the form sketched with `...`, `<…>` or letters before the proposal": [
        f'The form is {{"3": {{...}}, ...}}.\n{JSON}',
        f'As {{"3": {{"data_ratio": <float>, "hole_ratio": <float>}}, ...}}.\n{JSON}',
        f'As {{"3": {{"data_ratio": x, "hole_ratio": y}}, "4": {{"data_ratio": z}}}}.\n{JSON}',
        f'{{"configuration": {{"3": {{"data_ratio": x}}, "4": {{"3": {{"data_ratio": 0.9}}}}}}}}\n{JSON}',
    ],
    "no object, but one Markdown table of groups and knobs": [
        "| size | data_ratio | hole_ratio | wait_ratio |\n|-|-:|-|-|\n| 3x3 | 0.4 | 0.1 | 0.3 |\n| 4x4 | 0.6 | 0.2 | 0.0 |",
        "So:\n\n| Size | Data | Hole | Wait | Why |\n|-|-|-|-|-|\n"
        "| **3** | 40% | 10% | 30 % | easy |\n| **4** | 60% | 20% | 0% | so |\nDone",
    ],
}
REFUSED: dict[str, list[str]] = {
    "no object and no table": [
        "I would rather not.",
        "",
        "{so}",
        "3: data_ratio 0.4",
        "3:\n  data_ratio: 0.4\n  hole_ratio: 0.1",
    ],
    "only objects that set no knob of a group": [
        "{}",
        '{"data_ratio": 0.4}',
        '{"note": "keep"}',
        '{"3": 0.4, "4": 0.6}',
        '{"3": "more"}',
    ],
    "an object that breaks off or is none": [
        JSON[:-2],
        JSON[:40],
        JSON.replace("0.1", "0,1"),
        JSON.replace("0.1", "low"),
        JSON.replace('"4"', '"4'),
        JSON + ' or {"3": {"data_ratio": ',
        '{"configuration": ' + JSON + ' "summary": "the "hard" ones"}',
        JSON[:-1] + ', "summary": "unfinished}',
        JSON.replace(":", "=", 1).replace("{", '{"x":', 1),
    ],
    "what stands under such a name alone": [
        json.dumps({name: BOTH}) for name in ("delta", "increase_by", "multipliers", "rejected", "min", "expected", "previous")
    ],
    "a proposal that the words behind it take back": [
        f"{JSON}\n\nActually, scratch that. Keep the current configuration.",
        f"{JSON}\nWait, that's wrong: the hole ratio of 4 should be 0.3.",
        f"{JSON}\nCorrection: set the data ratio of 4 to 0.5.",
        f"{JSON} Never mind.",
    ],
    "a number above 1 under a name without a word for a ratio": [
        JSON.replace('"hole_ratio": 0.1', '"holes": 2'),
        JSON.replace('"wait_ratio": 0.3', '"wait": 30'),
    ],
    "an abbreviated object": [
        '{"3": {"data_ratio": 0.4, "hole_ratio": 0.1, ...}, "4": {...}}',
        f'{json.dumps(SHOWN)} becomes {{"3": {{"data_ratio": 0.4}}, ...}}',
    ],
    "two proposals": [
        f"Option A: {JSON}\nOption B: {JSON.replace('0.4', '0.5')}",
        f'first {{"3": {json.dumps(THREE)}}}, no: {{"3": {json.dumps(FOUR)}}}',
        f"[{JSON}, {JSON.replace('0.4', '0.5')}]",
        json.dumps({"a": BOTH, "b": {"3": FOUR}}),
    ],
    "a key or a group that stands twice, with two values": [
        '{"3": {"data_ratio": 0.4}, "3": {"data_ratio": 0.5}}',
        '{"3": {"data_ratio": 0.4}, "3x3": {"data_ratio": 0.5}}',
        '{"3": {"data_ratio": 0.4, "data ratio": 0.5}}',
    ],
    "settings for what names no group": [
        '{"3": {"data_ratio": 0.4}, "others": {"data_ratio": 0.1}}',
        '{"3": {"data_ratio": 0.4}, "4-10": {"data_ratio": 0.1}}',
    ],
    "an object of knobs that names no group, beside a proposal": [
        f'{{"3": {json.dumps(THREE)}}}, "4": {json.dumps(FOUR)}}}',
        f'{{"3": {json.dumps(THREE)}}}\n4x4: {json.dumps(FOUR)}',
    ],
    "a group without any knob of it": [
        '{"3": {"ratios": {"data_ratio": 0.4}}, "4": {"data_ratio": 0.6}}',
        '{"3": {"data_ratio": 0.4}, "4": 0.6}',
    ],
    "a list of numbers, where an object was asked for": ['{"3": [40, 10, 30], "4": [60, 20, 0]}', '{"3": [0.4, 0.1, 0.3]}'],
    "a knob for all groups at once": ['{"data_ratio": {"3": 0.4, "4": 0.6}, "hole_ratio": 0.2}', '{"data_ratio": [0.4, 0.6]}'],
    "a knob that is no number: words, a range, a change": [
        '{"3": {"data_ratio": "much", "hole_ratio": 0.1}}',
        '{"3": {"data_ratio": [0.3, 0.5]}}',
        '{"3": {"data_ratio": {"from": 0.25, "to": 0.4}}}',
        '{"3": {"data_ratio": "+0.1"}, "4": {"data_ratio": "-0.1"}}',
        '{"3": {"data_ratio": +0.1}, "4": {"data_ratio": -0.1}}',
        '{"3": {"data_ratio": -0.1}, "4": {"data_ratio": 0.1}}',
        '{"3": {"data_ratio": "-10%", "hole_ratio": 0.1}}',
        '{"3": {"data_ratio": "~0.4"}}',
        '{"3": {"data_ratio": true}}',
        '{"data_ratio": {"3": "more", "4": 0.1}}',
    ],
    "a key that may mean a knob": [
        '{"3": {"data_ratio": 0.4, "hole_count": 2}}',
        '{"3": {"data_ratio": 0.4, "wait_weight": 0.2}}',
        *(JSON.replace('"hole_ratio": 0.1', f'"{key}": 0.1') for key in ("p_hole", "ratio_of_holes", "new_hole_ratio")),
        *(JSON.replace('"hole_ratio": 0.1', f'"{key}": 0.9') for key in ("max_hole_ratio", "non_hole_ratio", "free_ratio")),
        JSON.replace('"wait_ratio": 0.3', '"no_wait_ratio": 0.7'),
        JSON.replace('"data_ratio": 0.4', '"weight": 0.4'),
        JSON.replace('"data_ratio": 0.4', '"proportion": 0.4'),
        JSON.replace("data_ratio", "d\u0430ta_ratio"),  # a Cyrillic letter in it
    ],
    "a comment that stands for what is left out": [
        '{"3": {"data_ratio": 0.4},\n // ... other sizes\n}',
        '{"3": {"data_ratio": 0.4} /* same for the others */}',
        '{"3": {"data_ratio": 0.4} # rest unchanged\n}',
    ],
    "percent in a name and a value below 1": ['{"3": {"hole_percent": 0.2}}', "| size | hole (%) |\n|-|-|\n| 3 | 0.2 |"],
    "a table with something in it that is no number": [
        "| size | data_ratio |\n|---|---|\n| 3 | 0.4 to 0.5 |",
        "| size | data_ratio |\n|---|---|\n| 3 | 0.4 | 1 |",
    ],
    "only thoughts": [
        f'<details type="reasoning">{JSON}</details> no',
        f"Thinking...\n{JSON}\n...done thinking.\nI keep it.",
        f"<draft>{JSON}</draft>",
        f"~~{JSON}~~",
        f"<scratchpad>{JSON}",
        f"<think>{JSON}",
        f"<think>{JSON}</think>",
        f"{JSON}</think>",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in READ.items() for text in texts])
def test_what_can_mean_one_thing_is_read(kind: str, text: str) -> None:
    reading = read_reply(text, FORM)
    assert reading.data == BOTH, reading.notes


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in REFUSED.items() for text in texts])
def test_everything_else_is_unreadable_and_says_why(kind: str, text: str) -> None:
    reading = read_reply(text, FORM)
    assert reading.data is None and reading.notes and len(reading.notes[-1]) < 200, reading.data


def test_every_case_of_the_page_is_tested_and_every_test_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "designers.md").read_text()
    rows = dict(re.findall(r"^\| (.+?) \| (read|refused)", page, re.MULTILINE))
    assert rows == {**dict.fromkeys(READ, "read"), **dict.fromkeys(REFUSED, "refused")}


def test_the_proposal_that_repeats_what_was_shown_means_the_configuration_in_force() -> None:
    reading = read_reply(f"I keep it: {json.dumps(SHOWN)}", FORM)
    assert reading.data == IN_FORCE and "repeats the configuration in force" in reading.notes[-1]
    assert read_reply(json.dumps(EARLIER), FORM).data == EARLIER
    assert read_reply(f"{json.dumps(EARLIER)} or {json.dumps(SHOWN)}", FORM).data is None


def test_joint_cells_as_they_were_shown_mean_those_in_force() -> None:
    cells = [{"share": 1 / 3, "hole_ratio": 0.05, "wait_ratio": 1.0}, {"share": 2 / 3, "hole_ratio": 0.45, "wait_ratio": 0.0}]
    in_force = {**IN_FORCE, "3": {**IN_FORCE["3"], "cells": cells}}
    shown = json.loads(readable(in_force))
    assert shown["3"]["cells"][0]["share"] == 0.333
    form = replace(FORM, known=[(in_force, shown)])
    assert read_reply(json.dumps(shown), form).data == in_force
    other = {**shown, "3": {**shown["3"], "cells": cells[:1]}}
    assert read_reply(json.dumps(other), form).data == other


def test_a_part_of_a_configuration_and_unknown_sizes_are_left_to_project() -> None:
    assert read_reply('{"4": {"hole_ratio": 0.3}}', FORM).data == {"4": {"hole_ratio": 0.3}}
    reading = read_reply('{"3": {"data_ratio": 0.4, "speed": 2}, "11x11": {"data_ratio": 0.1}, "note": "x"}', FORM)
    assert reading.data == {"3": {"data_ratio": 0.4, "speed": 2}, "11": {"data_ratio": 0.1}}
    assert any("'note'" in note for note in reading.notes)
    signed = replace(FORM, signed=("data_ratio",))
    assert read_reply('{"3": {"data_ratio": -0.4, "hole_ratio": NaN}}', signed).data == {
        "3": {"data_ratio": -0.4, "hole_ratio": None}
    }
    beside = read_reply('{"3": {"hole_ratio": 0.4, "hole_count": 2, "wait_reason": "few"}}', FORM).data
    assert beside == {"3": {"hole_ratio": 0.4, "hole_count": 2, "wait_reason": "few"}}


def test_what_a_group_may_hold_beside_its_knobs() -> None:
    cells = {"3": {"cells": [{"share": 0.5, "hole_ratio": 0.1}, {"share": 0.5, "hole_ratio": 0.3}]}}
    assert read_reply(json.dumps(cells), FORM).data is None
    assert read_reply(json.dumps(cells), replace(FORM, parts=("cells",))).data == cells


def test_the_compact_form_has_as_many_numbers_as_knobs() -> None:
    assert read_reply('{ "3":[ 40 , 10 , 30 ] , "4":[ 60 , 20 , 0 ] }', COMPACT).data == BOTH
    assert read_reply('{ "3":[ 40 , 10 , 30 ] , "4":[ 60 , 20 ] }', COMPACT).data is None
    assert read_reply(JSON, COMPACT).data == BOTH


def test_of_a_reply_that_was_cut_only_a_whole_configuration_counts() -> None:
    part = f'{{"3": {json.dumps(THREE)}}}\n'
    assert read_reply(part, FORM).data == {"3": THREE}
    assert read_reply(part, FORM, cut=True).data is None
    assert read_reply(JSON + " Because", FORM, cut=True).data == BOTH


@given(
    st.dictionaries(
        st.sampled_from(["3", "4"]), st.fixed_dictionaries({}, optional={k: st.floats(0, 1) for k in KNOBS}), min_size=1
    )
)
def test_every_configuration_written_as_json_is_the_one_read(data: dict[str, Any]) -> None:
    reading = read_reply(json.dumps(data, indent=1), Form(("3", "4"), KNOBS, make().group_of))
    assert reading.data == (data if all(data.values()) else None)


PIECES = [
    "{",
    "}",
    "[",
    "]",
    '"3"',
    '"4x4"',
    ":",
    ",",
    '"data_ratio"',
    "0.5",
    "30%",
    "...",
    '"hole_ratio"',
    "\n",
    "'",
    "{}",
    "<think>",
    "</think>",
    JSON,
    json.dumps(SHOWN),
    "| 3 | 0.4 |\n",
    "| size | data_ratio |\n",
    "so ",
    "//",
    "None",
    '"summary": "x"',
]


@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
    | st.text(alphabet='{}[]":,/*\\ \n-+.eE0193NIntrufl|%', max_size=300)
)
@settings(max_examples=500)
def test_no_text_breaks_it(text: str) -> None:
    reading = read_reply(text, FORM)
    json.dumps(reading.data, allow_nan=False)
    assert (reading.data is None) <= bool(reading.notes)
    assert reading.data is None or any(FORM.group_of(group) for group in reading.data)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"a":',
        '{"3":{',
        '{"3":{"data":1}}',
        "{/*",
        "{//",
        '{"a',
        "{'a",
        '{"\\',
        '{"a":"',
        "[{",
        '{"a":1,',
        "| 3 | 4 |\n",
        "|",
        "{-",
        "<think>",
        "</think>",
        "| size | data |\n",
        '{"3":[1,',
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (MAX_CHARACTERS // len(piece))
    began = time.process_time()
    read_reply(text, FORM)
    assert time.process_time() - began < 5  # what is not linear takes minutes here


def test_of_a_long_reply_the_end_counts() -> None:
    reading = read_reply("x" * MAX_CHARACTERS + JSON, FORM)
    assert reading.data == BOTH and "only the last" in reading.notes[0]


def test_the_summary_is_one_printable_line() -> None:
    summary = read_reply(JSON[:-1] + ', "summary": "because\\u001b[31m\\n of it' + "x" * 5000 + '"}', FORM).summary
    assert summary is not None and summary.startswith("because[31m of it") and len(summary) == MAX_SUMMARY
    assert read_reply(f'{{"configuration": {JSON}, "summary": "outside"}}', FORM).summary == "outside"
    assert read_reply(JSON, FORM).summary is None and printable_summary(3) is None
