"""The Markdown and HTML of a bench folder: what they show must follow from the answers, or `t2t verify` says so."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import addition
from addition import t2t
from t2t_core.errors import T2TError
from t2t_leaderboard import rescoring, submission
from t2t_leaderboard.pages import PAGES

BENCH = ("bench", "--testbed", "addition", "--policy", "adder", "--policy", "adder:off=3", "--limit", 5, "--out")


@pytest.fixture(autouse=True)
def _addition() -> None:
    addition.register()


@pytest.fixture(scope="module")
def benched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    addition.register()
    folder = tmp_path_factory.mktemp("bench") / "out"
    t2t(*BENCH, folder)
    return folder


@pytest.fixture
def out(benched: Path, tmp_path: Path) -> Path:
    return shutil.copytree(benched, tmp_path / "out")


def edit(path: Path, change: Callable[[str], str]) -> str:
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    return path.read_text()


def restamp(out: Path, **fields: Any) -> None:
    path = out / "verification.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("100.00", "100.01", 1),
        lambda text: text.replace("adder", "gpt-9", 1),
        lambda text: text + "<!-- t2t-core 9.9.9 -->\n",
        lambda text: re.sub("verified.{1,2} 20", "verified: 20,000", text, count=1),
        lambda text: "",
    ],
)
def test_a_page_that_the_answers_do_not_give_is_reported_and_left(out: Path, name: str, change: Callable[[str], str]) -> None:
    forged = edit(out / name, change)
    for _ in range(2):
        result = t2t("verify", out)
        assert result.return_value == 1 and "NOT verified: 1 problem" in result.stdout
        assert f"{out / name}: line" in result.stdout and "from the answers; changed, or left by" in result.stdout
        assert (out / name).read_text() == forged, "it is what was found wrong: nothing writes over it unasked"
    (other,) = set(PAGES) - {name}
    assert "NOT VERIFIED" in (out / other).read_text().replace("\\", ""), "the page that can be trusted shows the status"
    assert not json.loads((out / "verification.json").read_text())["verified"]


@pytest.mark.parametrize("name", PAGES)
def test_bench_writes_a_changed_page_anew_and_so_does_verify_once_it_is_deleted(benched: Path, out: Path, name: str) -> None:
    for again in (lambda: t2t(*BENCH, out), lambda: (out / name).unlink()):
        edit(out / name, lambda text: text.replace("100.00", "99.99"))
        assert t2t("verify", out).return_value == 1
        again()
        assert t2t("verify", out).return_value == 0
        assert {n: (out / n).read_bytes() for n in PAGES} == {n: (benched / n).read_bytes() for n in PAGES}


def test_a_missing_page_shows_nothing_false_and_is_written(benched: Path, out: Path) -> None:
    for name in (*PAGES, "verification.json"):
        (out / name).unlink()
    assert t2t("verify", out, "--no-write").return_value == 0 and not (out / "leaderboard.md").exists()
    assert t2t("verify", out).return_value == 0
    for name in (*PAGES, "verification.json"):
        assert (out / name).read_bytes() == (benched / name).read_bytes()


def test_a_page_of_another_version_is_not_called_changed_but_not_vouched_for(out: Path) -> None:
    restamp(out, version="0.0.9")
    assert t2t("verify", out).return_value == 0, "where that version lays it out alike there is nothing to say"
    restamp(out, version="0.0.9")
    edit(out / "leaderboard.html", lambda text: text.replace("<header>", '<header class="old">'))
    shown = t2t("verify", out, "--no-write").stdout
    assert "written by t2t-core 0.0.9, says verification.json" in shown and "only that version can tell" in shown
    assert "NOT verified: 1 problem" in shown and "t2t bench writes it anew" in shown and "changed, or left" not in shown


def test_a_page_of_an_earlier_layout_is_written_anew_and_no_cover_for_a_forged_one(benched: Path, out: Path) -> None:
    """In folders with an earlier page layout, the answers verify, and the pages are rewritten to show the figures again."""
    record = json.loads((out / "verification.json").read_text())
    del record["layout"]
    for forged in ("<p>another layout</p>", "100.01"):
        (out / "verification.json").write_text(json.dumps(record))
        (out / "leaderboard.html").write_text(forged)
        shown = t2t("verify", out, "--no-write")
        assert shown.return_value == 0 and "leaderboard.html: laid out by an earlier version, not compared" in shown.stdout
        assert (out / "leaderboard.html").read_text() == forged
        shown = t2t("verify", out)
        assert shown.return_value == 0 and "written anew" in shown.stdout
        assert {n: (out / n).read_bytes() for n in PAGES} == {n: (benched / n).read_bytes() for n in PAGES}
    restamp(out, layout=99)
    edit(out / "leaderboard.html", lambda text: text + " ")
    assert t2t("verify", out).return_value == 1, "a later version's page is not ours to write over"


def test_a_forged_status_does_not_make_a_page_true(out: Path) -> None:
    """Forging verification.json as well gains nothing: it is believed only if today's check agrees, or if it reports a fault."""
    from t2t_leaderboard import board, pages
    from t2t_leaderboard.folder import read_bench

    made = board.build(read_bench(out))
    record = rescoring.verify(out).record()
    for forged in ({"answers": 10**9}, {"version": "1) the best of all ("}, {"rows": 7}, {"problems": ["none"]}):
        pages.write(out, made, replace(record, **forged))
        assert rescoring.verify(out).problems, forged
    row = made.tables[0].measured[0]
    total = row.table.total | {"valid": structs.replace(row.table.total["valid"], value=12.3)}
    forged_row = structs.replace(row, table=structs.replace(row.table, total=total))
    made = structs.replace(made, tables=[structs.replace(made.tables[0], measured=[forged_row])])
    pages.write(out, made, replace(record, verified=False, problems=["a figure"]))
    assert len(rescoring.verify(out).problems) == 2


def test_the_outcome_of_an_earlier_fault_gives_way_to_the_next(benched: Path, out: Path) -> None:
    """A fault in the answers, found and mended, leaves pages that say so; they are the suite's own and are written over."""
    answers = next(out.glob("rows/*/answers.jsonl"))
    before = answers.read_bytes()
    answers.write_bytes(before.replace(b'"text": "', b'"text": "1', 1))
    assert t2t("verify", out).return_value == 1
    shown = (out / "leaderboard.md").read_text()
    assert "NOT VERIFIED" in shown and "100.00" not in shown, "figures of answers that do not hold are not shown"
    answers.write_bytes(before)
    assert t2t("verify", out).return_value == 0
    assert {n: (out / n).read_bytes() for n in PAGES} == {n: (benched / n).read_bytes() for n in PAGES}


def test_every_command_refuses_a_folder_of_another_version(out: Path, tmp_path: Path) -> None:
    sent = submission.make(out, "x", tmp_path, "adder", "2026-07-31")
    for path in (out / "run.json", sent / "metadata.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    for command in (("verify", out), ("submit", out, "--name", "y", "--into", tmp_path), ("compare", out, out), (*BENCH, out)):
        with pytest.raises(T2TError, match="this version of the suite reads format 1"):
            t2t(*command)
    for command in (("verify", sent), ("compare", sent, sent)):
        with pytest.raises(T2TError, match="not a submission of format 1"):
            t2t(*command)


def test_pages_of_a_stranger_are_read_with_suspicion(out: Path, tmp_path: Path) -> None:
    page = out / "leaderboard.md"
    page.write_bytes(b"\xff\xfe\x1b[2J" * 1000)
    result = t2t("verify", out)
    assert result.return_value == 1 and "\x1b" not in result.stdout
    page.unlink()
    page.mkdir()
    assert "not a regular file" in t2t("verify", out, "--no-write").stdout
    page.rmdir()
    (tmp_path / "secret").write_text("secret 4711")
    page.symlink_to(tmp_path / "secret")
    shown = t2t("verify", out).stdout
    assert "leaderboard.md is a link" in shown and "4711" not in shown and page.is_symlink()
    with pytest.raises(T2TError, match="link|does not verify"):
        submission.make(out, "x", tmp_path, "adder")


def test_the_board_leads_to_every_answer_and_a_forged_one_is_found(benched: Path, out: Path) -> None:
    pages = sorted((out / "answers").glob("*.html"))
    board = (out / "leaderboard.html").read_text()
    assert len(pages) == 2 and all(f'href="answers/{page.name}#s1"' in board for page in pages)
    adder = next(page for page in pages if "off" not in page.name).read_text()
    lines = (next(out.glob("rows/adder-????????")) / "answers.jsonl").read_text().splitlines()
    assert adder.count('<details class="answer"') == len(lines) == 10
    assert all(json.loads(line)["instance"] in adder for line in lines) and "script-src 'sha256-" in adder
    edit(pages[0], lambda text: text.replace("optimal", "OPTIMAL", 1))
    shown = t2t("verify", out)
    assert shown.return_value == 1 and f"{pages[0]}: line" in shown.stdout
    pages[0].unlink()
    assert t2t("verify", out).return_value == 0 and pages[0].read_bytes() == (benched / "answers" / pages[0].name).read_bytes()


def test_pages_of_many_answers_are_written_on_demand_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from t2t_leaderboard import answer_pages

    monkeypatch.setattr(answer_pages, "MOST", 5)
    t2t(*BENCH, tmp_path / "few")
    assert not (tmp_path / "few" / "answers").exists() and "answers/" not in (tmp_path / "few" / "leaderboard.html").read_text()
    assert t2t("verify", tmp_path / "few").return_value == 0 and not (tmp_path / "few" / "answers").exists()
    t2t(*BENCH, tmp_path / "few", "--answer-pages")
    assert "The first 5 of 10" in next((tmp_path / "few" / "answers").glob("*.html")).read_text()
    assert t2t("verify", tmp_path / "few").return_value == 0


def test_a_board_of_an_earlier_version_verifies_with_the_figures_that_it_has(out: Path) -> None:
    path = out / "leaderboard.json"
    record = json.loads(path.read_text())
    record["format"] = 1
    del record["answer_pages"]
    for row in record["tables"][0]["rows"]:
        row.pop("family", None)
    path.write_text(json.dumps(record))
    restamp(out, layout=3)
    assert t2t("verify", out).return_value == 0
    record["tables"][0]["rows"][0]["total"]["valid"]["value"] = 12.3
    path.write_text(json.dumps(record))
    assert t2t("verify", out).return_value == 1
