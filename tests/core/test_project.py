"""The files that GitHub runs and shows: every command, file and version that they name exists and agrees everywhere."""

import configparser
import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from t2t_core import __version__
from t2t_core.plugins import installed

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SETUP = configparser.ConfigParser(delimiters=("=",))
SETUP.read(ROOT / "setup.cfg")
PROGRAMS = {"pip", "pre-commit", "sphinx-build", "rm", "python", "python3", "bash", "t2t"}
TOOLS = {"venv", "pip", "pytest", "cibuildwheel"}  # modules that are installed by the step itself or come with Python


def read(path):
    workflow = yaml.safe_load(path.read_text())
    workflow["on"] = workflow.pop(True)  # YAML 1.1 takes the word `on` for true
    return workflow


def jobs():
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            yield pytest.param(path, job, id=f"{path.stem}-{name}")


def commands(job):
    """The words of each command of a job's steps."""
    for step in job.get("steps", ()):
        for line in step.get("run", "").splitlines():
            for command in re.split(r"&&|\|\||;", line):
                words = shlex.split(command, comments=True)
                if words:
                    yield words


def requirements(text):
    """Everything that an install command in a text asks for with a version, as 'name>=1,<2'."""
    return [Requirement(requirement) for requirement in re.findall(r"""['"]([A-Za-z0-9_.-]+(?:[>=~]=|<)\d[^'"\s;]*)['"]""", text)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_and_no_more(path):
    assert read(path)["permissions"] == {"contents": "read"}, "a job that writes says so itself"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_say_their_version(path):
    for line in re.findall(r"uses: *(.+)", path.read_text()):
        if line.startswith("./"):
            assert (ROOT / line.split()[0]).is_file(), line
        else:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_an_action_has_one_version_everywhere():
    uses = {u for path in WORKFLOWS for u in re.findall(r"uses: *(\w.+)", path.read_text())}
    assert len({u.partition("@")[0] for u in uses}) == len(uses)


@pytest.mark.parametrize(("path", "job"), list(jobs()))
def test_every_job_ends(path, job):
    assert "uses" in job or job["timeout-minutes"] <= 120


@pytest.mark.parametrize(("path", "job"), list(jobs()))
def test_every_command_and_file_of_a_job_is_there(path, job):
    for words in commands(job):
        program = Path(words[0]).name
        assert program in PROGRAMS, f"{path.name}: {words}"
        if program == "t2t":
            assert words[1] in {entry.name for entry in installed().commands}, words
        if program in ("python", "python3") and words[1] == "-m":
            assert words[2] in TOOLS or find_spec(words[2]), words
        if program == "bash" or (program.startswith("python") and words[1] != "-m"):
            assert (ROOT / words[1]).is_file(), words
        for word in words[1:]:
            extras = re.search(r"^\.\[(.+)\]$", word)
            if extras:
                assert set(extras[1].split(",")) <= set(SETUP["options.extras_require"]), word
            elif re.match(r"(docs|leaderboard|studies|tests|\.ci|\.github)/\w", word) and not word.startswith("docs/_build"):
                assert (ROOT / word).exists(), word


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_path_that_starts_a_workflow_is_there(path):
    for event in read(path)["on"].values():
        for pattern in (event or {}).get("paths", ()) if isinstance(event, dict) else ():
            assert list(ROOT.glob(pattern)), pattern


def test_the_tests_run_by_the_readmes_command_on_every_python():
    job = read(ROOT / ".github/workflows/tests.yml")["jobs"]["tests"]
    matrix = job["strategy"]["matrix"]["python"]
    assert matrix == ["3.11", "3.12", "3.13", "3.14"]
    python = SpecifierSet(SETUP["options"]["python_requires"])
    assert all(f"{version}.99" in python for version in matrix) and "3.10.99" not in python
    assert job["steps"][-1]["run"] in (ROOT / "README.md").read_text(), "it is another command than the README's"
    assert job["env"] == {"T2T_REQUIRE_NATIVE": "1"}


def test_wheels_are_built_for_the_same_pythons_and_never_without_the_core():
    wheels = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    matrix = read(ROOT / ".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert wheels["build"].split() == [f"cp{version.replace('.', '')}-*" for version in matrix]
    for table in (wheels, wheels["macos"]):  # a platform's own table replaces the general one
        assert table["environment"]["T2T_REQUIRE_NATIVE"] == "1"
    assert "environment" not in wheels["windows"]
    machines = read(ROOT / ".github/workflows/wheels.yml")["jobs"]["wheels"]["strategy"]["matrix"]["machine"]
    assert {machine.split("-")[0] for machine in machines} == {"ubuntu", "macos", "windows"}
    for command in [*wheels["test-command"], wheels["windows"]["test-command"]]:
        for file in re.findall(r"\{project\}/(\S+)", command):
            assert (ROOT / file).is_file()


def test_the_weekly_integrations_are_those_of_the_script():
    matrix = read(ROOT / ".github/workflows/integrations.yml")["jobs"]["integrations"]["strategy"]["matrix"]["name"]
    listed = re.search(r"set -- (.+)", (ROOT / ".ci/integrations").read_text())[1].split()
    assert matrix == listed
    tested = {file.stem.removeprefix("test_").replace("_", "-") for file in (ROOT / "tests/integrations").glob("test_*.py")}
    assert tested & set(SETUP["options.extras_require"]) <= set(matrix), "a framework that is tested nowhere"


def test_pybind11_stays_below_its_next_major_wherever_it_is_asked_for():
    files = [ROOT / "pyproject.toml", *WORKFLOWS, *(f for f in (ROOT / ".ci").iterdir() if f.is_file())]
    asked = [r for file in files for r in requirements(file.read_text()) if r.name == "pybind11"]
    assert len(asked) >= 3 and len({str(r.specifier) for r in asked}) == 1
    upper = next(s.version for s in asked[0].specifier if s.operator == "<")
    lower = next(s.version for s in asked[0].specifier if s.operator == ">=")
    assert Version(upper).major == Version(lower).major + 1


def test_the_core_is_standard_cpp_but_for_one_hint():
    """MSVC knows none of these, and the standard library of many Macs no jthread. The hint has a guard."""
    native = ROOT / "envs/t2t_envs/frozen_lake/native"
    extensions = re.compile(r"__int128|__builtin_|__attribute__|\b(?:unistd|pthread)\.h|bits/stdc|\bjthread\b|\b__GNUC__")
    code = {file.name: re.sub(r"//.*", "", file.read_text()) for file in native.rglob("*.[ch]pp")}
    assert {name for name, text in code.items() if extensions.search(text)} == {"prefetch.hpp"}
    assert re.search(r"#if defined\(__GNUC__\)\n +__builtin_prefetch\(address\);\n#endif", code["prefetch.hpp"])


def test_hooks_are_bounded_and_agree_with_the_extras():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = {hook["id"]: hook for repository in config["repos"] for hook in repository["hooks"]}
    assert {"ruff", "mypy", "end-of-file"} <= set(hooks)
    extra = {Requirement(line).name: Requirement(line) for line in SETUP["options.extras_require"]["test"].split("\n") if line}
    for hook in hooks.values():
        for line in hook.get("additional_dependencies", ()):
            requirement = Requirement(line)
            assert any(s.operator in ("<", "~=", "==") for s in requirement.specifier), line
            assert requirement.specifier == extra.get(requirement.name, requirement).specifier, line


def test_hooks_leave_frozen_bytes_alone():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    mending = [h for repository in config["repos"] for h in repository["hooks"] if h["entry"].endswith("-fixer")]
    frozen = [*ROOT.glob("envs/t2t_envs/*/sets/*.json*"), *ROOT.glob("leaderboard/results/*/*"), *ROOT.glob("fuzz/corpus/*/*")]
    assert mending and frozen
    for hook in mending:
        for file in frozen:
            assert re.search(hook["exclude"], str(file.relative_to(ROOT))), f"{hook['id']} would rewrite {file}"


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__ and citation["license"] == SETUP["metadata"]["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def test_a_release_is_refused_unless_tag_version_and_changelog_agree(monkeypatch, tmp_path):
    script = ROOT / ".ci/version.py"
    wrong = subprocess.run([sys.executable, script, "v999.0.0"], capture_output=True, text=True)
    assert wrong.returncode == 1 and __version__ in wrong.stderr
    spec = importlib.util.spec_from_file_location("version_of_a_tag", script)
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    monkeypatch.setattr(checker, "ROOT", tmp_path)
    (tmp_path / "t2t_core").mkdir()
    (tmp_path / "t2t_core/_version.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2026-12-01)\n")
    assert checker.main("v1.2.0") is None
    assert checker.main("1.2.0") and checker.main("v1.2.1")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (unreleased)\n")
    assert "CHANGELOG" in checker.main("v1.2.0")


@pytest.mark.parametrize("form", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda form: form.stem)
def test_issue_forms_have_what_github_asks_for(form):
    content = yaml.safe_load(form.read_text())
    if form.stem == "config":
        assert set(content) <= {"blank_issues_enabled", "contact_links"}
        return
    assert content["name"] and content["description"] and len(content["description"]) <= 200
    for field in content["body"]:
        assert field["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"} and field["attributes"]["label"]


@pytest.mark.parametrize("page", ["SECURITY.md", "CONTRIBUTING.md", ".github/pull_request_template.md", "docs/releasing.md"])
def test_links_to_files_lead_somewhere(page):
    file = ROOT / page
    text = file.read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (file.parent / target).exists(), target
    for named in re.findall(r"`(\.(?:ci|github)/[\w./-]+)`", text):
        assert (ROOT / named).exists(), named


def test_without_posix_the_store_says_what_is_missing():
    code = "import sys; sys.modules['fcntl'] = None\nfrom t2t_envs.frozen_lake import solve, verify\nimport t2t_core.store"
    path = [str(ROOT), str(ROOT / "envs")]
    ran = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {path}\n{code}"], capture_output=True, text=True)
    assert ran.returncode == 1 and "On Windows use WSL" in ran.stderr.splitlines()[-1]
