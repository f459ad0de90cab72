"""The site of results: submissions checked, joined by question and world, with history, contamination and links that hold."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import addition
from addition import t2t
from t2t_core.errors import T2TError
from t2t_core.evaluation.stats import unpaired, wilson
from t2t_leaderboard import submission
from t2t_leaderboard.joined import contamination, join

OURS = Path(__file__).parents[2] / "leaderboard" / "results"
BENCH = ("bench", "--testbed", "addition", "--limit", 5)


@pytest.fixture(autouse=True)
def _addition() -> None:
    addition.register()


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three submissions to one question on two days, one to a twin, one with two answers to each instance."""
    addition.register()
    place = tmp_path_factory.mktemp("site")
    t2t(*BENCH, "--policy", "adder", "--policy", "adder:off=12", "--policy", "adder:off=3", "--out", place / "bench")
    t2t(*BENCH, "--policy", "adder:off=12", "--twin", 1, "--out", place / "twin")
    t2t(*BENCH, "--policy", "adder", "--samples", 2, "--out", place / "twice")
    results = place / "results"
    for policy, name, day in (("adder:off=12", "wrong", "01"), ("adder", "right", "03"), ("adder:off=3", "near", "02")):
        submission.make(place / "bench", name, results, policy, f"2026-08-{day}")
    submission.make(place / "twin", "wrong-twin", results, None, "2026-08-04")
    submission.make(place / "twice", "twice", results, None, "2026-08-05")
    (results / "README.md").write_text("not a submission")
    return results


def built(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def leads_hold(out: Path) -> int:
    """Every link of every page leads to a page that is there, and to an element of it where it names one."""
    count = 0
    for page in out.rglob("*.html"):
        for link in re.findall(r'href="([^"]+)"', page.read_text()):
            name, _, fragment = link.partition("#")
            target = (page.parent / unquote(name)).resolve() if name else page
            assert target.is_file(), (page.name, link)
            assert not fragment or "=" in fragment or f'id="{fragment}"' in target.read_text(), (page.name, link)
            count += 1
    return count


def test_a_site_joins_what_was_asked_alike_and_its_links_hold(sent: Path, tmp_path: Path) -> None:
    result = t2t("site", sent, "--out", tmp_path / "site")
    assert result.return_value == 0 and "pages in" in result.stdout
    files = built(tmp_path / "site")
    assert {"index.html", "history.html", "world-addition.html"} <= set(files) and len(files) == 3 + 5
    board = files["world-addition.html"].decode()
    titles = re.findall(r"<h2[^>]*>([^<]*)</h2>", board)
    told = ", the first 5 of each column"
    assert titles == ["one digit: the first 5 of each column", f"one digit: {told[2:]}, 2 answers each",
                      f"one digit: twin 1{told}", "How to read this"]  # fmt: skip
    rows = re.findall(r"<tbody>.*?</tbody>", board, re.DOTALL)[0]
    assert re.findall(r'class="">([a-z-]+)</span>', rows) == ["right", "near", "wrong"]
    assert "pass@2" in board and leads_hold(tmp_path / "site") > 30
    t2t("site", sent, "--out", tmp_path / "again")
    assert built(tmp_path / "again") == files, "the same submissions, the same bytes"


def test_the_history_tells_the_best_of_its_day(sent: Path, tmp_path: Path) -> None:
    t2t("site", sent, "--out", tmp_path)
    history = (tmp_path / "history.html").read_text()
    first = history.split("<section")[1]
    order = re.findall(r'scope="row"[^>]*>\s*([a-z-]+)', first)
    assert order == ["right", "near", "wrong"], "newest first"
    assert "the best so far" in first and first.count(">one digit</td>") == 2, "the last one is no better than near in valid"
    seals = [json.loads(path.read_text())["seal"][:16] for path in sent.glob("*/metadata.json")]
    assert all(seal in history for seal in seals)


def test_a_twin_tells_whether_the_frozen_set_was_remembered(sent: Path, tmp_path: Path) -> None:
    (estimate,) = contamination(join([sent]))
    assert (estimate.name, estimate.table, estimate.seed) == ("wrong", "one digit", 1)
    assert estimate.difference.value == pytest.approx(estimate.frozen.value - estimate.twin.value)
    assert estimate.difference.low < estimate.difference.value < estimate.difference.high
    t2t("site", sent, "--out", tmp_path)
    index = (tmp_path / "index.html").read_text()
    assert "Frozen sets and twins" in index and "no difference seen (seed 1)" in index


def test_the_difference_of_two_independent_rates_is_newcombes() -> None:
    """Newcombe 1998, Statistics in Medicine 17, table II, method 10: 56/70 - 48/80 and 9/10 - 3/10."""
    for (a, m, b, n), low, high in (((56, 70, 48, 80), 0.0524, 0.3339), ((9, 10, 3, 10), 0.1705, 0.8090)):
        difference = unpaired(wilson(a / m, m), wilson(b / n, n))
        assert (difference.value, difference.low, difference.high) == pytest.approx((a / m - b / n, low, high), abs=1e-4)


def spoilt(place: Path, change: Any) -> None:
    metadata = json.loads((place / "metadata.json").read_text())
    change(metadata)
    (place / "metadata.json").write_text(json.dumps(metadata))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(policy="gpt-9"),
        lambda m: m["tables"]["one digit"]["total"]["valid"].update(value=99.9),
        lambda m: m.update(format=7),
        lambda m: m.pop("seal"),
    ],
)
def test_what_does_not_pass_is_named_and_not_shown(sent: Path, tmp_path: Path, change: Any) -> None:
    results = shutil.copytree(sent, tmp_path / "results")
    spoilt(results / "2026-08-02_near", change)
    result = t2t("site", results, "--out", tmp_path / "site")
    assert result.return_value == 1 and "not shown: 2026-08-02_near: " in result.stdout
    index = (tmp_path / "site" / "index.html").read_text()
    assert "1 did not pass the check" in index and "Not shown" in index
    assert ">near</span>" not in (tmp_path / "site" / "world-addition.html").read_text()
    assert not list((tmp_path / "site" / "answers").glob("*near*"))


def test_without_submissions_there_is_no_site(tmp_path: Path) -> None:
    with pytest.raises(T2TError, match="there is no submission"):
        t2t("site", tmp_path, "--out", tmp_path / "site")
    with pytest.raises(T2TError, match="there is no such folder"):
        t2t("site", tmp_path / "nowhere", "--out", tmp_path / "site")


@pytest.mark.thorough
def test_the_site_of_our_own_submissions_can_be_built(tmp_path: Path) -> None:
    """The submissions in the repository pass their check, on both worlds, with a twin beside the frozen sets."""
    assert t2t("site", OURS, "--out", tmp_path).return_value == 0
    assert {"world-mapf-frozenlake.html", "world-tictactoe.html"} <= set(built(tmp_path)) and leads_hold(tmp_path) > 50
    assert len(contamination(join([OURS]))) == 3
    for page in tmp_path.rglob("*.html"):
        assert "Content-Security-Policy" in page.read_text() and " on" + "click" not in page.read_text()
