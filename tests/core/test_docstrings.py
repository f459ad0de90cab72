"""Every public class, function and method says what it is for. What a contract or a base class says is said once, there: a
method that implements it has a docstring of its own only if it has something to add."""

import ast
from collections.abc import Iterator

from test_arrows import ROOMS, ROOT

# What Gymnasium and PettingZoo ask of an environment, and what `python -m` runs (the module's docstring says what it does).
OF_LIBRARIES = {"reset", "step", "render", "close", "observation_space", "action_space", "observe", "state", "spec"}
OF_LIBRARIES |= {"contains", "observation", "reward", "terminal", "main"}
FILES = [path for folder in ROOMS.values() for path in sorted(folder.rglob("*.py"))]
TREES = {path: ast.parse(path.read_text("utf-8")) for path in FILES}
CLASSES = [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
Public = ast.ClassDef | ast.FunctionDef


def bases(node: ast.ClassDef) -> list[str]:
    """The names of its base classes: `Testbed` of `hookspecs.Testbed[A, B, C]`."""
    return [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]


def methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [item for item in node.body if isinstance(item, ast.FunctionDef)]


def is_contract(node: ast.ClassDef) -> bool:
    return "Protocol" in bases(node) or node.name == "Hooks"


CONTRACTS = {method.name for node in CLASSES if is_contract(node) for method in methods(node)} | OF_LIBRARIES
DOCUMENTED = {node.name: {method.name for method in methods(node) if ast.get_docstring(method)} for node in CLASSES}


def public(node: ast.Module | ast.ClassDef, name: str = "") -> Iterator[tuple[str, Public, ast.Module | ast.ClassDef]]:
    """Each public definition with its qualified name and what it is defined in."""
    for item in node.body:
        if isinstance(item, Public) and not item.name.startswith("_"):
            yield f"{name}{item.name}", item, node
            if isinstance(item, ast.ClassDef):
                yield from public(item, f"{name}{item.name}.")


def is_told_elsewhere(item: Public, inside: ast.Module | ast.ClassDef) -> bool:
    if isinstance(inside, ast.ClassDef):
        if is_contract(inside):
            return False
        if any(ast.unparse(decorator).endswith(".setter") for decorator in item.decorator_list):
            return True
        if any(item.name in DOCUMENTED.get(base, ()) for base in bases(inside)):
            return True
    return item.name in CONTRACTS


def test_every_public_name_says_what_it_is_for() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{item.lineno}: {name}"
        for path, tree in TREES.items()
        for name, item, inside in public(tree)
        if not (ast.get_docstring(item) or is_told_elsewhere(item, inside))
    ]
    assert not silent, "a docstring says what the name does not: shapes, units, errors, why: " + "; ".join(silent)
    assert len(CONTRACTS) > 60 and {"propose", "register_policies", "place"} <= CONTRACTS


def test_every_module_says_what_it_holds() -> None:
    modules = {path: tree for path, tree in TREES.items() if tree.body and path.name != "_version.py"}
    silent = [str(path.relative_to(ROOT)) for path, tree in modules.items() if not ast.get_docstring(tree)]
    assert not silent, "no docstring: " + "; ".join(silent)
