"""Accessible pages: contrast, headings, labels, keyboard, phone, print, and a policy that admits only the page's own parts.

Everything that can be checked in the HTML and the style sheets is always checked; tests that need a browser are marked."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from addition import t2t
from browsing import axe_faults, opened
from t2t_core.loop.sweep import Grid, sweep
from t2t_core.loop.whole_run import run_experiment
from t2t_core.report import frame, svg
from t2t_core.run.experiment import Experiment
from t2t_core.run.progress import Reporter

RESULTS = Path(__file__).parents[2] / "leaderboard" / "results"
SHEETS = frame.sheet("page.css") + frame.sheet("chart.css")


# --- contrast, computed from the style sheets


def variables(dark: bool) -> dict[str, str]:
    colours: dict[str, str] = {}
    for block in re.finditer(r"(@media screen and \(prefers-color-scheme: dark\) \{ )?:root \{([^}]*)\}", SHEETS):
        if block[1] is None or dark:
            colours |= dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})", block[2]))
    return colours


def mixed(first: str, other: str, share: float) -> str:
    pairs = [(int(first[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)


def contrast(first: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_wcag_says() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21) and contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_contrast_in_both_modes(dark: bool) -> None:
    known = variables(dark)
    words = ["ink", "soft", "good", "bad", "link", *(f"c{n}" for n in range(svg.COLOURS))]
    for name in (*words, "changed"):
        for ground in ("card", *(["page"] if not name.startswith("c") else [])):
            assert contrast(known[name], known[ground]) >= 4.5, (name, ground, dark)
    steps = [int(step) for step in re.findall(r"\.h\d+ \{ background: color-mix\(in srgb, var\(--heat\) (\d+)%", SHEETS)]
    assert len(steps) == 10
    for step in steps:
        heat = mixed(known["heat"], known["card"], step / 100)
        for ground in (heat, mixed(known["heat"], heat, 0.07)):  # as it lies there, and under the pointer
            assert contrast(known["ink"], ground) >= 4.5, (step, dark)
    assert contrast(known["soft"], known["card"]) >= 3, "the frame of a field"


def test_no_text_is_made_paler_than_its_colour() -> None:
    paler = re.findall(r"([^{}]+)\{[^}]*opacity[^}]*\}", SHEETS)
    assert [rule for rule in paler if "leader" not in rule and "many" not in rule] == []


# --- what the HTML says


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.labelled = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.labelled += tag in ("select", "input") and "label" in self.open
        if tag not in ("meta", "input", "img", "line", "circle", "rect", "polyline", "polygon"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def every(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


@pytest.fixture(scope="module")
def benched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two solvers, of whom one often fails, on lakes with 3 and 4 agents."""
    out = tmp_path_factory.mktemp("pages") / "out"
    t2t("bench", "--policy", "cbs", "--policy", "independent", "--agents", "3,4", "--limit", 2, "--out", out)
    return out


def pages(benched: Path) -> list[Path]:
    return [benched / "leaderboard.html", *sorted((benched / "answers").glob("independent*.html"))]


def test_headings_labels_and_tables_say_what_they_are(benched: Path) -> None:
    for path in pages(benched):
        seen = Seen(path.read_text())
        levels = [int(tag[1]) for tag, _ in seen.elements if re.fullmatch("h[1-6]", tag)]
        assert levels.count(1) == 1 and levels[0] == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))
        assert seen.every("html")[0]["lang"] == "en" and len(seen.every("main")) == len(seen.every("title")[:1]) == 1
        assert seen.labelled == len(seen.every("select", "input")) > 0
        assert all(th.get("scope") or th.get("colspan") for th in seen.every("th"))
        assert all(a.get("aria-label") and a["role"] == "img" for a in seen.every("svg"))
        assert all(image["alt"] for image in seen.every("img"))
        scrolling = [a for a in seen.every("div", "figure") if a.get("class") == "scroll" or "figure" in str(a.get("role"))]
        assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in scrolling)
        assert all(a.get("tabindex") == "0" for a in seen.every("figure"))
        ids = [a["id"] for _, a in seen.elements if "id" in a]
        assert len(ids) == len(set(ids))
        assert all(str(a["href"])[1:] in ids for a in seen.every("a") if str(a["href"]).startswith("#"))


def test_a_page_admits_exactly_its_own_style_script_and_pictures(benched: Path) -> None:
    for path in pages(benched):
        text = path.read_text()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        for tag, directive in (("style", "style-src"), ("script", "script-src")):
            (own,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
            assert f"{directive} 'sha256-{digest}';" in policy[1]
        assert ("img-src data:;" in policy[1]) == ("answers" in path.parts) and "unsafe" not in policy[1]
        seen = Seen(text)
        assert not [name for _, a in seen.elements for name in a if name.startswith("on") or name == "style"]
        assert all(str(a["src"]).startswith("data:image/svg+xml,") for a in seen.every("img"))


def test_every_answer_has_a_moving_picture_and_the_board_leads_to_its_failures(benched: Path) -> None:
    board, *answers = (path.read_text() for path in pages(benched))
    assert sum(page.count("<img ") for page in answers) == sum(page.count('<details class="answer"') for page in answers) == 30
    assert all("animateTransform" in page for page in answers)
    (link,) = set(re.findall(r'href="(answers/independent[^"]*0\.html#failure=[^"]*)"', board))
    assert link.endswith("#failure=conflict%20free") and 'data-failure="conflict free"' in answers[0]
    assert 'data-filter="table"' in board and ">agents <select" in board and ">map size <select" in board


# --- in a browser


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(browser: Any, benched: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install -e '.[browser]'")
    for path in pages(benched):
        assert axe_faults(browser, path, axe, width, scheme) == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("lake_plugins")
def test_axe_finds_nothing_on_reports_and_on_the_site(browser: Any, tmp_path: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install -e '.[browser]'")
    settings = {"testbed": "lake", "policy": "repeater", "generation": {"samples": 10}, "validation": {"set": "validation"}}
    for designer in ("rule", "fixed"):
        experiment = Experiment.from_dict(settings | {"trainer": "none", "designer": designer, "rounds": 2})
        run_experiment(experiment, tmp_path / designer, Reporter())
        t2t("report", tmp_path / designer)
    grid = Grid(["fixed", "random"], ["F"], [0, 1])
    sweep(experiment, grid, tmp_path / "sweep", Reporter())
    t2t("report", tmp_path / "sweep")
    t2t("site", RESULTS, "--out", tmp_path / "site")
    reports = [tmp_path / name / "report.html" for name in ("rule", "fixed", "sweep")]
    for path in (*reports, *sorted((tmp_path / "site").glob("*.html"))):
        for width in (1280, 390):
            assert axe_faults(browser, path, axe, width, scheme) == [], path.name


@pytest.mark.browser
def test_the_policy_lets_the_page_do_all_it_does(browser: Any, benched: Path) -> None:
    for path in pages(benched):
        page = opened(browser, path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        page.wait_for_timeout(300)
        drawn = page.evaluate("[...document.images].slice(0, 3).map((one) => one.complete && one.naturalWidth > 0)")
        assert page.told == [] and all(drawn) and (bool(drawn) == ("answers" in path.parts))
        page.context.close()


@pytest.mark.browser
def test_a_table_is_sorted_and_filtered_by_keyboard(browser: Any, benched: Path) -> None:
    page = opened(browser, benched / "leaderboard.html")
    table = page.locator("table[data-sortable]").first
    head = table.locator("thead th").last

    def totals() -> list[float]:
        cells = table.locator("tbody tr:not(.divider):not(.quoted) td:last-child")
        return [float(cell.get_attribute("data-value")) for cell in cells.all()]

    assert totals() == sorted(totals(), reverse=True)
    head.locator("button").focus()
    for order, expected in (("descending", True), ("ascending", False)):
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == order and totals() == sorted(totals(), reverse=expected)
    page.locator("select[data-filter=table]").select_option("4 agents")
    assert not page.locator("#s1").is_visible() and page.locator("#s2").is_visible()
    page.locator("select[data-filter=column]").select_option("5x5")
    heads = page.locator("#s2 table").first.locator("thead th:visible").all_inner_texts()
    assert heads == ["policy", "5x5", "total"]
    page.locator("[data-find]").fill("indep")
    assert set(page.locator("#s2 tbody tr:not(.divider):visible th").all_inner_texts()) == {"independent"}
    page.locator("[data-find]").fill("")
    page.locator("select[data-filter=column]").select_option("")
    page.locator("select[data-filter=table]").select_option("")
    assert page.locator("#s1").is_visible() and page.locator("[hidden]").count() == 0
    page.context.close()


@pytest.mark.browser
def test_a_link_to_a_failure_shows_those_answers(browser: Any, benched: Path) -> None:
    page = opened(browser, benched / "leaderboard.html")
    link = page.locator("a[href*='#failure=']").first
    count = int(link.inner_text())
    link.click()
    page.wait_for_load_state()
    assert page.locator("details.answer:visible").count() == count
    assert page.locator("select[data-filter=failure]").input_value() == "conflict free"
    page.context.close()


@pytest.mark.browser
def test_without_script_the_page_reads_whole_and_on_paper_it_is_light(browser: Any, benched: Path) -> None:
    page = opened(browser, benched / "leaderboard.html", java_script_enabled=False, color_scheme="dark")
    assert not page.locator(".filters").is_visible() and page.locator("table").first.is_visible()
    page.context.close()
    page = opened(browser, benched / "leaderboard.html", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(22, 32, 44)"
    assert not page.locator(".filters").is_visible() and not page.locator("nav").is_visible()
    page.context.close()
