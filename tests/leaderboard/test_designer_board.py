"""The leaderboard of designers: which designers are ranked, by what, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.report import html, markdown
from t2t_core.store import folders
from t2t_core.study.comparing import ArmResult, Difference, StudyResult
from t2t_leaderboard.designers import Entry, entries, leaderboard, read_studies

ARM = ArmResult(
    arm="fixed",
    designer="fixed",
    scores=[50.0, 52.0],
    mean=51.0,
    low=38.3,
    high=63.7,
    interquartile_mean=51.0,
    area_over_updates=45.0,
    area_over_tokens=44.0,
    worst_quarter=10.0,
    forgetting=1.0,
    tokens=2_000_000.0,
    updates=72.0,
    design_tokens=0.0,
    design_usd=0.0,
    designs_failed=0,
    same_as=[],
    gain=None,
    gain_low=None,
    gain_high=None,
    behaviour={"cells_rewritten": 0.5},
)
GATE = Difference("gate", "a", "b", 6.0, 4.0, 8.0, [6.0], 0.01, None, 2.0, 0.9, 1.0, 0, "better")


def study(world: str = "lakes", leverage: bool | None = True, **gains: float) -> StudyResult:
    designed = [replace(ARM, arm=name, designer=name, gain=g, gain_low=g - 1, gain_high=g + 1) for name, g in gains.items()]
    return StudyResult("A study", world, "random", "0" * 64, 1.5, [1, 2], leverage, [GATE], [ARM, *designed], [])


def kept(folder: Path, result: StudyResult) -> Path:
    folder.mkdir()
    folders.write_json(folder / "study.json", result)
    return folder


def test_the_highest_gain_per_token_stands_first() -> None:
    cheap = study(rule=1.8, sec=3.0)
    dear = replace(ARM, arm="dear", designer="llm:x", gain=4.0, gain_low=3.0, gain_high=5.0, design_tokens=2_000_000.0)
    rows = entries([replace(cheap, arms=[*cheap.arms, dear])])["lakes", "random"]
    assert [row.arm.arm for row in rows] == ["sec", "dear", "rule"], "4 points for 4 million tokens are less than 3 for 2"
    assert Entry(cheap, dear).per_million.value == pytest.approx(1.0)
    assert (Entry(cheap, dear).per_million.low, Entry(cheap, dear).per_million.high) == pytest.approx((0.75, 1.25))


def test_only_worlds_with_a_lever_rank() -> None:
    for leverage, said in ((True, None), (False, "No leverage at this budget"), (None, "No gate was planned")):
        text = markdown.render(leaderboard([study(leverage=leverage, rule=2.0)]))
        assert ("rank" in text.split("\n## ")[1]) is (leverage is True)
        assert said is None or said in text


def test_a_study_without_a_lever_takes_no_rank_from_one_with() -> None:
    """Two plans for one world and start: a small one that could not tell designers apart, and a large one that could."""
    small, large = study(leverage=False, rule=9.0), replace(study(rule=2.0, sec=1.0), plan="1" * 64)
    text = markdown.render(leaderboard([small, large]))
    assert "designers are ranked, in 1 of 1 worlds and starts" in text
    ranked, others = text.split("## ")[1].split("No leverage")
    assert [line.split("|")[1].strip(" *") for line in ranked.splitlines() if line.startswith("|")][2:] == ["rule", "sec"]
    assert "rule" in others and "rank" not in others
    both = markdown.render(leaderboard([small, large, study("other", rule=1.0)])).split("## What each is good at")[1]
    assert "| no lever" not in both.split("##")[0]


def test_controls_have_no_rank() -> None:
    made = study(rule=2.0, sec=1.0)
    controls = ("fixed", "schedule:hard.json", "shuffled:rule", "mislabelled:rule:failures", "too-hard")
    arms = [replace(ARM, arm=f"c{n}", designer=name, gain=9.0, gain_low=8.0, gain_high=10.0) for n, name in enumerate(controls)]
    text = markdown.render(leaderboard([replace(made, arms=[*arms, *made.arms])])).split("## ")[1]
    rows = [[cell.strip(" *") for cell in line.split("|")[1:3]] for line in text.splitlines() if line.startswith("|")][2:]
    assert [rank for _, rank in rows] == [*["control"] * len(controls), "1", "2"]


def test_what_the_gate_compared_stands_beside_who_is_ranked_or_is_not() -> None:
    for leverage in (True, False):
        text = markdown.render(leaderboard([study(leverage=leverage, rule=2.0)]))
        assert "Gate: a minus b +6.0 [+4.0 to +8.0]." in text.replace("\\", "")


def test_a_designers_gains_stand_side_by_side_over_the_challenges() -> None:
    """There is no figure where there is no lever, and a challenge that a designer has not done does not count as zero."""
    lakes, forgets = study(rule=2.0, sec=3.0), study("forgetting", rule=-4.0)
    dull = study("dull", leverage=False, rule=0.5)
    text = markdown.render(leaderboard([lakes, forgets, dull]))
    table = text.split("## What each is good at")[1].split("##")[0]
    rows = {cells[1]: cells[2:5] for line in table.splitlines() if len(cells := [c.strip(" *") for c in line.split("|")]) > 4}
    assert rows["designer"] == ["lakes, random", "forgetting, random", "dull, random"]
    assert rows["rule"][0].startswith("+2.0") and rows["rule"][1].startswith("-4.0") and rows["rule"][2] == "no lever"
    assert rows["sec"][0].startswith("+3.0") and rows["sec"][1:] == ["–", "–"]
    assert "What each is good at" not in markdown.render(leaderboard([lakes]))


def test_a_page_and_a_table_come_from_folders(tmp_path: Path) -> None:
    places = [kept(tmp_path / "a", study(rule=2.0)), kept(tmp_path / "b", study("tic-tac-toe", rule=9.0))]
    result = CliRunner().invoke(cli, ["bench-designers", *map(str, places), "--out", str(tmp_path / "site")])
    assert result.exit_code == 0, result.exception
    page = (tmp_path / "site" / "designers.html").read_text()
    assert "tic-tac-toe" in page and "<script" not in page and "rule" in (tmp_path / "site" / "designers.md").read_text()
    assert html.render(leaderboard(read_studies(places))) == page
    ours = Path(__file__).parents[2] / "leaderboard" / "results" / "2026-11-30_tiny-tictactoe"
    given = [option for place in places for option in ("--studies", str(place))]
    result = CliRunner().invoke(cli, ["site", str(ours), "--out", str(tmp_path / "all"), *given])
    assert result.exit_code == 0, result.exception
    assert "gain per million" in (tmp_path / "all" / "designers.html").read_text()
    assert all('href="designers.html"' in (tmp_path / "all" / f"{name}.html").read_text() for name in ("index", "history"))


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    for arguments in (["bench-designers"], ["bench-designers", str(tmp_path)], ["bench-designers", "--designer", "rule"]):
        assert isinstance(CliRunner().invoke(cli, arguments).exception, T2TError)
    folder = kept(tmp_path / "a", study(rule=2.0))
    again = kept(tmp_path / "b", study(rule=2.0))
    with pytest.raises(T2TError, match="twice"):
        read_studies([folder, again])
    edited: dict[str, Any] = json.loads((folder / "study.json").read_text())
    edited["arms"][0]["tokens"] = "many"
    (folder / "study.json").write_text(json.dumps(edited))
    with pytest.raises(T2TError, match="tokens"):
        read_studies([folder])
    with pytest.raises(T2TError, match="beside"):
        leaderboard([study()])
