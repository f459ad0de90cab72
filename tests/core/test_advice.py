"""Advice on installing fits how this copy was installed: a wheel has no checkout to install from, and none of its scripts."""

import ast
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_core import advice

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ["t2t_core", "envs/t2t_envs", "plugins/t2t_plugins", "baselines/t2t_baselines"]
SHIPPED += ["leaderboard/t2t_leaderboard", "integrations/t2t"]


def test_a_checkout_is_told_to_install_itself(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert advice.extra("train") == "pip install -e '.[train]'"
    monkeypatch.chdir(tmp_path)
    words = shlex.split(advice.extra("train", "vllm"))
    assert words == ["pip", "install", "-e", f"{ROOT}[train,vllm]"], "from another folder a dot would be another project"
    assert f"pip install -e {ROOT}" in advice.native_core() and "C++20 compiler" in advice.native_core()


def test_a_wheel_is_told_the_name_of_the_distribution(tmp_path):
    """A copy of the package alone, as it lies in site-packages, with no setup.py above it."""
    shutil.copytree(ROOT / "t2t_core", tmp_path / "t2t_core", ignore=shutil.ignore_patterns("__pycache__"))
    code = "from t2t_core import advice; print(advice.extra('train', 'vllm')); print(advice.native_core())"
    says = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    extra, core = says.splitlines()
    assert shlex.split(extra) == ["pip", "install", "t2t-core[train,vllm]"]
    assert "-e" not in core.split() and "t2t-core" in core


@pytest.mark.parametrize("place", ["/a b/t2t", "/it's/t2t", "/plain"])
def test_a_checkout_in_any_folder_is_one_word_of_the_shell(monkeypatch, place):
    monkeypatch.setattr(advice, "checkout", lambda: Path(place))
    assert shlex.split(advice.extra("data")) == ["pip", "install", "-e", f"{place}[data]"]
    assert shlex.split(advice.native_core().partition(": ")[2])[-1] == place


@pytest.mark.parametrize("package", SHIPPED)
def test_no_message_types_such_advice_by_hand(package):
    """A text outside docstrings that names our extras or the repository's scripts would be wrong for one kind of installation."""
    for path in (ROOT / package).rglob("*.py"):
        if path.name == "advice.py":
            continue
        tree = ast.parse(path.read_text())
        docs = {id(node.body[0].value) for node in ast.walk(tree) if hasattr(node, "body") and isinstance(node.body, list)
                and node.body and isinstance(node.body[0], ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                for typed in ("t2t-core[", "pip install -e", "bash .ci/", "docs/refresh.py"):
                    assert typed not in node.value, f"{path}:{node.lineno} says {typed!r}; t2t_core.advice knows which fits"
