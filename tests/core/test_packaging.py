"""The package's metadata against the files: a file that is not listed works with `pip install -e` but is missing in the wheel."""

import ast
import configparser
import os
import re
import tomllib
from importlib import import_module, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from t2t_baselines.tiny.policy import REMADE

ROOT = Path(__file__).resolve().parents[2]
CONFIG = configparser.ConfigParser(delimiters=("=",))
CONFIG.read(ROOT / "setup.cfg")
FOLDERS = dict(re.split(r"\s*=\s*", line) for line in CONFIG["options"]["package_dir"].split("\n") if line)
PACKAGES = CONFIG["options"]["packages"].split()
NOT_SHIPPED = {".cpp", ".hpp", ".py", ".pyc", ".so", ".md"}  # built, compiled, or for readers of the source


def folder_of(package):
    top, _, rest = package.partition(".")
    return ROOT / FOLDERS[top] / rest.replace(".", "/")


def on_disk():
    for top, folder in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            yield ".".join([top, *init.parent.relative_to(ROOT / folder).parts])


def test_the_packages_listed_are_those_on_disk():
    assert sorted(PACKAGES) == sorted(on_disk())


def test_no_module_lies_in_a_folder_that_is_no_package():
    for folder in FOLDERS.values():
        for module in (ROOT / folder).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), module


def test_every_data_file_is_shipped():
    data = {package: patterns.replace(",", " ").split() for package, patterns in CONFIG["options.package_data"].items()}
    assert set(data) <= set(PACKAGES)
    packages = {folder_of(p): p for p in PACKAGES}
    excluded = CONFIG["options.exclude_package_data"].items()
    left_out = {file for p, patterns in excluded for pattern in patterns.split(", ") for file in folder_of(p).glob(pattern)}
    assert {file.parent.name for file in left_out} == set(REMADE), "a wheel says how to remake what it lacks"
    files = {f for folder in packages for f in folder.rglob("*") if f.is_file() and f.suffix not in NOT_SHIPPED}
    for file in files - left_out:
        folder = next(parent for parent in file.parents if parent in packages)
        patterns = data.get(packages[folder], ())
        shipped = any(file in folder.glob(pattern) for pattern in patterns)
        assert shipped or file.name.startswith("."), f"{file} is not in package_data of {packages[folder]}"
    for package, patterns in data.items():
        for pattern in patterns:
            assert list(folder_of(package).glob(pattern)), f"package_data of {package}: nothing matches {pattern}"


def test_every_entry_point_leads_somewhere():
    points = CONFIG["options.entry_points"]
    for kind in ("console_scripts", "t2t"):
        for line in points[kind].strip().splitlines():
            target = line.partition("=")[2].strip()
            module, _, attribute = target.partition(":")
            assert not attribute or callable(getattr(import_module(module), attribute))
            import_module(module)


def test_every_target_of_the_built_ins_leads_somewhere():
    """Targets given as text are checked by their file and name, without importing what is heavy."""
    from t2t_core.plugins import load

    for registry in load().registries.values():
        for entry in registry:
            if isinstance(entry.target, str) and entry.distribution.startswith("t2t-core "):
                module, _, attribute = entry.target.partition(":")
                path = folder_of(module.rpartition(".")[0]) / f"{module.rpartition('.')[2]}.py"
                path = path if path.exists() else folder_of(module) / "__init__.py"
                assert path.exists(), f"{registry.kind} {entry.name}: there is no {module}"
                defined = rf"^(def|class) {attribute}\b|^{attribute}\b.*=|import .*\b{attribute}\b"
                assert re.search(defined, path.read_text(), re.MULTILINE), f"{entry.name}: no {attribute} in {path}"


def requirements():
    options = [CONFIG["options"]["install_requires"], *CONFIG["options.extras_require"].values()]
    return [line for text in options for line in text.strip().splitlines() if line.strip()]


@pytest.mark.parametrize("line", requirements())
def test_dependencies_have_bounds_on_both_sides(line):
    requirement = Requirement(line)
    operators = {s.operator for s in requirement.specifier}
    assert operators & {">=", "~=", "=="}, f"{line} has no lower bound"
    assert operators & {"<", "~=", "==", "<="}, f"{line} has no upper bound"


@pytest.mark.parametrize("line", CONFIG["options"]["install_requires"].strip().splitlines())
def test_what_is_installed_here_lies_within_the_bounds(line):
    requirement = Requirement(line)
    assert requirement.specifier.contains(metadata.version(requirement.name)), line


def test_headers_reach_the_sdist():
    manifest = (ROOT / "MANIFEST.in").read_text()
    assert "hpp" in manifest, "a header that misses the sdist builds a wheel without the core, and exits 0"


def test_the_build_needs_what_setup_py_imports():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    assert any(r.startswith("pybind11") for r in build["requires"]) and any(r.startswith("setuptools") for r in build["requires"])


def test_the_version_is_the_one_installed():
    from t2t_core import __version__

    assert metadata.version("t2t-core") == __version__


def test_a_python_whose_regular_expressions_misread_is_refused():
    """The readers of answers and designs rely on possessive quantifiers, which Python 3.11.0 to 3.11.4 match wrongly."""
    asked = SpecifierSet(CONFIG["options"]["python_requires"])
    assert "3.11.4" not in asked and "3.11.5" in asked and "3.14.0" in asked
    assert re.fullmatch("(?:ab?c)*+", "a") is None and re.match("(?:(?!C).)++", "ABC").span() == (0, 2)


def test_the_metadata_links_to_the_site_of_the_repository_that_builds_it(monkeypatch):
    functions = [node for node in ast.parse((ROOT / "setup.py").read_text()).body if isinstance(node, ast.FunctionDef)]
    setup = {"os": os}
    exec(compile(ast.Module(functions, []), "setup.py", "exec"), setup)  # all of it needs the compiler's packages
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    assert setup["links"]() == {}
    monkeypatch.setenv("GITHUB_REPOSITORY", "Lakes/t2t")
    assert setup["links"]()["Documentation"] == "https://lakes.github.io/t2t/"
    assert setup["links"]()["Source"] == "https://github.com/Lakes/t2t"
