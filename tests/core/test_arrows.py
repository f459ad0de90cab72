"""The rooms meet by name in the registry: who may import whom, and what nobody imports at module level."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {
    "t2t_core": ROOT / "t2t_core",
    "t2t_envs": ROOT / "envs" / "t2t_envs",
    "t2t_plugins": ROOT / "plugins" / "t2t_plugins",
    "t2t_baselines": ROOT / "baselines" / "t2t_baselines",
    "t2t_leaderboard": ROOT / "leaderboard" / "t2t_leaderboard",
}
MAY_IMPORT = {room: {room, "t2t_core"} for room in ROOMS} | {"t2t_baselines": {"t2t_baselines", "t2t_core", "t2t_envs"}}
HEAVY = {"torch", "transformers", "trl", "vllm", "ray", "datasets", "accelerate", "peft", "openai", "verifiers", "openenv"}
HEAVY |= {"stable_baselines3", "tensorflow", "jax", "pandas", "scipy", "matplotlib"}
FILES = [(room, path) for room, folder in ROOMS.items() for path in sorted(folder.rglob("*.py"))]


def imports(tree, functions):
    """(module, line) of every import; those inside functions only where `functions`. `if TYPE_CHECKING` is left out."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not functions:
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module, node.lineno
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from ((str(a.value), node.lineno) for a in node.args[:1] if isinstance(a, ast.Constant))
        waiting += ast.iter_child_nodes(node)


def roots(path, functions=True):
    tree = ast.parse(path.read_text(), str(path))
    return {(module.partition(".")[0], line) for module, line in imports(tree, functions)}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_it_may(room):
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {root}"
        for owner, path in FILES
        if owner == room
        for root, line in roots(path)
        if root in ROOMS and root not in MAY_IMPORT[room]
    ]
    assert not wrong, "rooms meet by name in the registry: " + "; ".join(wrong)


def test_nothing_heavy_is_imported_at_module_level():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {root}"
        for _, path in FILES
        for root, line in roots(path, functions=False)
        if root in HEAVY
    ]
    assert not wrong, "import it inside the function that needs it: " + "; ".join(wrong)


def test_the_test_sees_what_it_should():
    tree = ast.parse(
        "import a.b\nfrom c import d\nfrom . import e\nclass X:\n    import f\n    def g(self):\n        import h\n"
        "if TYPE_CHECKING:\n    import i\nelse:\n    import j\ntry:\n    import k\nexcept ImportError:\n"
        "    import_module('l.m')\n"
    )
    assert {m for m, _ in imports(tree, False)} == {"a.b", "c", "f", "j", "k", "l.m"}
    assert {m for m, _ in imports(tree, True)} == {"a.b", "c", "f", "h", "j", "k", "l.m"}


def test_loading_every_plugin_loads_nothing_heavy():
    """`t2t --help` stays fast: neither the door nor the built-in plugins pull in what is heavy, gymnasium included."""
    code = "import sys; from t2t_core.plugins import load; load(); import t2t_core.cli; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    loaded = {name.partition(".")[0] for name in modules}
    assert not loaded & (HEAVY | {"gymnasium", "pettingzoo", "PIL"}), sorted(loaded & HEAVY)


def test_nothing_is_evaluated_unpickled_or_unpacked():
    """No archive is read at all, so there is no zip bomb and no path out of one; endpoints' compressed replies have a bound of
    their own. `torch.load` reads our own optimizer states, and only numbers."""
    banned = {"eval", "exec", "compile", "pickle", "marshal", "shelve", "dill", "joblib"}
    banned |= {"zipfile", "tarfile", "gzip", "bz2", "lzma", "zipimport"}
    for _, path in FILES:
        tree = ast.parse(path.read_text())
        names = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        assert not banned & (names | {root for root, _ in roots(path)}), path
        calls = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert all("weights_only=True" in call for call in calls if call.startswith("torch.load(")), path
        assert not any(word in call for call in calls for word in ("unpack_archive", "decompress(", "allow_pickle=True")), path
