"""Bench folders and submissions from strangers: links, bombs, markup, escapes, edited fields. Nothing crashes, nothing runs,
nothing outside the folder changes."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import addition
from addition import t2t, without_own_script
from t2t_core.errors import T2TError
from t2t_core.seeding import Stream
from t2t_leaderboard import board, rescoring, submission
from t2t_leaderboard.folder import read_bench
from t2t_leaderboard.pages import PAGES

EVIL = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b]0;owned\x07\u202e'
BOMBS = {
    "deep": b"[" * 300_000,
    "deep object": b'{"a":' * 100_000,
    "digits": b'{"samples": ' + b"9" * 1_000_000 + b"}",
    "nan": b'{"a": NaN}',
    "exponent": b'{"a": 1e999999999}',
    "twice": b'{"a": 1, "a": 2}',
    "not utf-8": b'{"a": "\xff\xfe"}',
    "nothing": b"",
    "null bytes": b"\x00" * 1000,
}
ODD: list[Any] = [None, True, -1, 10**60, 1e300, "", "../../../etc", EVIL, [], {}, [[]], {"": None}, {"3": {"x": "y"}}]


@pytest.fixture(autouse=True)
def _addition() -> None:
    addition.register()


@pytest.fixture(scope="module")
def benched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    addition.register()
    folder = tmp_path_factory.mktemp("bench") / "out"
    t2t("bench", "--testbed", "addition", "--policy", "adder", "--limit", 4, "--out", folder)
    submission.make(folder, "adder-1", folder.parent, "adder", "2026-07-31")
    return folder


@pytest.fixture
def out(benched: Path, tmp_path: Path) -> Path:
    return shutil.copytree(benched, tmp_path / "out")


@pytest.fixture
def submitted(benched: Path, tmp_path: Path) -> Path:
    return shutil.copytree(benched.parent / "2026-07-31_adder-1", tmp_path / "2026-07-31_adder-1")


class Page(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.policies: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attributes
        if ("http-equiv", "Content-Security-Policy") in attributes:
            self.policies.append(str(dict(attributes)["content"]))


def test_a_model_named_in_markup_stays_text_everywhere(tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = t2t("bench", "--testbed", "addition", "--policy", f"adder:{EVIL}", "--limit", 4, "--out", out).output
    shown += t2t("verify", out).output
    answers = [path.read_text() for path in out.glob("answers/*.html")]
    assert len(answers) == 1
    text = without_own_script("".join([(out / "leaderboard.html").read_text(), *answers]))
    page = Page(text)
    assert "&lt;script&gt;" in text and not page.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form"}
    odd = [(name, value) for name, value in page.attributes if name.startswith("on") or name in ("style", "src", "srcdoc")]
    leads = [str(value) for name, value in page.attributes if name in ("href", "xlink:href")]
    assert not odd and all(re.match(r"#|answers/|\.\./leaderboard", lead) for lead in leads)
    assert len(page.policies) == 2
    assert all(policy.startswith("default-src 'none'") and "unsafe" not in policy for policy in page.policies)
    every = shown + text + (out / "leaderboard.md").read_text()
    assert not {"\x1b", "\x07", "\u202e"} & set(every) and "<script" not in (out / "leaderboard.md").read_text()
    assert all(row.name.isascii() and "<" not in row.name and "\x1b" not in row.name for row in (out / "rows").iterdir())


def test_answers_in_markup_reach_neither_page_nor_terminal(out: Path) -> None:
    """Answers, errors and verdicts that a stranger wrote into the files, as `t2t verify` and the page show them."""
    for path in out.glob("rows/*/*.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            line.update({"text": EVIL, "error": EVIL, "finish_reason": "error", "verdict": {EVIL: EVIL}})
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = t2t("verify", out).output
    pages = without_own_script((out / "leaderboard.html").read_text()) + (out / "leaderboard.md").read_text()
    assert "NOT verified" in shown and "<script" not in pages and not {"\x1b", "\x07", "\u202e"} & set(shown + pages)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_in_any_file_are_named(out: Path, submitted: Path, name: str) -> None:
    for folder, check in ((out, rescoring.verify), (submitted, submission.verify)):
        for path in sorted(p for p in folder.rglob("*.json*") if p.name != "verification.json"):
            before = path.read_bytes()
            path.write_bytes(BOMBS[name])
            try:
                assert check(folder).problems, path
            except T2TError as error:
                assert str(error).isascii() and len(str(error)) < 2000
            path.write_bytes(before)
        assert check(folder).verified


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in items for place in places(item, (*at, key)))]


def tampered(data: Any, stream: Stream) -> Any:
    """One field, anywhere, changed or gone."""
    *inner, last = stream.choice(places(data)[1:])
    node = data
    for step in inner:
        node = node[step]
    if stream.below(4):
        node[last] = stream.choice(ODD)
    else:
        del node[last]
    return data


@pytest.mark.thorough
@pytest.mark.parametrize("rounds", [150, pytest.param(5_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["bench", "submission"])
def test_an_edited_field_is_found_or_refused_but_never_crashes(out: Path, submitted: Path, kind: str, rounds: int) -> None:
    folder, check = (out, rescoring.verify) if kind == "bench" else (submitted, submission.verify)
    stream, missed = Stream.of(11, kind), []
    for _ in range(rounds):
        path = stream.choice(sorted(p for p in folder.rglob("*.json*") if p.name not in ("verification.json", "log.jsonl")))
        before = path.read_bytes()
        lines = before.decode().splitlines() if path.suffix == ".jsonl" else [before.decode()]
        place = stream.below(len(lines))
        lines[place] = json.dumps(tampered(json.loads(lines[place]), stream))
        path.write_text("\n".join(lines) + "\n")
        try:
            verification = check(folder)
            original = before.decode().splitlines()[place] if path.suffix == ".jsonl" else before
            if verification.verified and json.loads(original) != json.loads(lines[place]):
                missed.append(path.name)
            made = board.build(read_bench(folder)) if kind == "bench" else None
            shown = "".join(render(made, verification.record()) for render in PAGES.values()) if made else ""
            assert "\x1b" not in shown and "<script" not in without_own_script(shown)
        except T2TError as error:
            assert "\x1b" not in str(error)
        path.write_bytes(before)
    # What nobody can recompute in a bench folder: when, where and how fast it was made. A submission seals even that.
    assert set(missed) <= ({"run.json", "row.json"} if kind == "bench" else set())
    assert check(folder).verified


@pytest.mark.parametrize(
    ("field", "value"),
    [("notes", 3), ("notes", [3]), ("limit", None), ("sha256", EVIL), ("file_sha256", "`"), ("sha256", "A" * 64)],
)
def test_edits_that_once_broke_something_are_refused(out: Path, submitted: Path, field: str, value: Any) -> None:
    for path, check in ((out / "run.json", rescoring.verify), (submitted / "metadata.json", submission.verify)):
        data = json.loads(path.read_text())
        if field == "limit":
            del data["settings"][field]
        else:
            data["settings"]["sets"][0][field] = value
        path.write_text(json.dumps(data))
        with pytest.raises(T2TError):
            check(path.parent)


@pytest.mark.parametrize(("field", "value"), [("reported", "no"), ("answer_pages", 1), ("format", "2")])
def test_a_leaderboard_says_which_of_its_fields_is_wrong(out: Path, field: str, value: Any) -> None:
    path = out / "leaderboard.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    (problem,) = rescoring.verify(out).problems
    assert problem.startswith(f"{path}: {field}: expected")


def test_an_address_that_is_none_is_a_mistake_with_a_name(tmp_path: Path) -> None:
    with pytest.raises(T2TError, match="base_url"):
        t2t("bench", "--policy", "endpoint:m,base_url=http://[", "--limit", 1, "--out", tmp_path / "out")


LINKS = ["run.json", ".lock", "rows", "rows/*", "rows/*/row.json", "rows/*/log.jsonl", "rows/*/answers.jsonl"]
LINKS += ["instances/*.jsonl", "leaderboard.json"]


@pytest.mark.parametrize("pattern", LINKS)
def test_links_lead_nowhere(out: Path, tmp_path: Path, pattern: str) -> None:
    """A link in a stranger's folder: its target is neither changed by a resumed bench nor shown by a check."""
    path = next(iter(out.glob(pattern)), out / pattern)
    outside = tmp_path / "outside"
    outside.mkdir()
    target = outside / "secret"
    if path.is_dir():
        shutil.move(path, target)
    else:
        target.write_text("secret 4711 without a newline")
        path.unlink(missing_ok=True)
    path.symlink_to(target)
    before = {p: p.read_bytes() for p in outside.rglob("*") if p.is_file()}
    commands = [("verify", out), ("bench", "--testbed", "addition", "--policy", "adder", "--limit", 4, "--out", out)]
    for command in commands:
        try:
            shown = t2t(*command).output
        except T2TError as error:
            shown = str(error)
        assert "4711" not in shown
    assert {p: p.read_bytes() for p in outside.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("name", ["../x", "..", "a/b", "/etc/passwd", "-x", "A", "", "x" * 65, "\x1b[2J", "a\n"])
def test_a_submission_cannot_be_called_a_path(out: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(T2TError, match="not a usable name"):
        submission.make(out, name, tmp_path / "results")
    assert not (tmp_path / "results").exists()
