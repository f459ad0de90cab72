"""Every tutorial, followed from an empty folder: each command succeeds and prints what the page shows."""

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.append(str(DOCS))

from follow import follow  # noqa: E402

SLOW = {"trainer": [pytest.mark.slow], "reproduce": [pytest.mark.slow], "train": [pytest.mark.slow, pytest.mark.train]}
PAGES = sorted(path.stem for path in (DOCS / "tutorials").glob("*.md"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, [])) for name in PAGES])
def test_a_tutorial(name, tmp_path):
    _, problems = follow((DOCS / "tutorials" / f"{name}.md").read_text(), tmp_path)
    assert not problems, "\n\n".join(problems)


def test_the_list_of_tutorials_has_them_all():
    text = (DOCS / "tutorials.md").read_text()
    listed = re.findall(r"\]\(tutorials/(\S+)\.md\)", text)
    assert sorted(listed) == PAGES == sorted(re.findall(r"^tutorials/(\S+)$", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```bash\nfalse\n```\n", "ended with 1"),
        ("```bash\necho one\n```\n\n```text\ntwo\n```\n", "prints\none"),
        ("```python\n# a.py\nprint(3)\n```\n```bash\npython a.py\n```\n\n```text\n4\n```\n", "prints\n3"),
        ("```bash\npip install -q torch\n```\n", "its own plugin alone"),
    ],
)
def test_what_a_page_gets_wrong_is_found(page, problem, tmp_path):
    (complaint,) = follow(page, tmp_path)[1]
    assert problem in complaint


def test_a_page_is_rewritten_with_what_is_printed(tmp_path):
    page = "Hello\n\n```bash\necho one; echo two\n```\n\n```text\nthree\n```\n\nand\n\n```text\nno output\n```\n"
    assert follow(page, tmp_path)[0] == page.replace("three", "one\ntwo")
