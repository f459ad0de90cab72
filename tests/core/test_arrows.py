"""The packages meet by name in the registry: which package may import which, and what none imports at module level."""

import ast
import functools
import re
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
    "t2t_jobs": ROOT / "jobs" / "t2t_jobs",
    "t2t": ROOT / "integrations" / "t2t",
}
MAY_IMPORT = {room: {room, "t2t_core"} for room in ROOMS} | {"t2t_baselines": {"t2t_baselines", "t2t_core", "t2t_envs"}}
HEAVY = {"torch", "transformers", "trl", "vllm", "ray", "datasets", "accelerate", "peft", "aiohttp"}
HEAVY |= {"verifiers", "openenv", "inspect_ai", "verl", "skyrl_gym"}
HEAVY |= {"stable_baselines3", "tensorflow", "jax", "pandas", "scipy", "matplotlib"}
FILES = [(room, path) for room, folder in ROOMS.items() for path in sorted(folder.rglob("*.py"))]
# The rooms inside a package, each with those it may import. "" is what lies above the folders: the public face of the core, the
# rules of the lake.
CORE = ["", "reading", "store", "evaluation", "run", "report", "loop", "study", "testing", "cli", "__main__"]
MAY_IMPORT_INSIDE = {
    "t2t_core": {room: set(CORE[: place + 1]) for place, room in enumerate(CORE)},
    "t2t_envs.frozen_lake": {
        "reading": {"reading"},
        "": {"", "reading"},
        "draw": {"", "draw"},
        "generation": {"", "generation"},
        "sets": {"", "generation", "sets"},
        "gym": {"", "generation", "draw", "gym"},
        "testbed": {"", "generation", "sets", "draw", "testbed"},
    },
    "t2t_envs.tictactoe": {
        "": {""},
        "draw": {"", "draw"},
        "generation": {"", "generation"},
        "sets": {"", "generation", "sets"},
        "gym": {"", "generation", "draw", "gym"},
        "testbed": {"", "generation", "sets", "draw", "testbed"},
    },
    "t2t_plugins": {
        "sampler": {"sampler"},
        "contexts": {"contexts"},
        "designers": {"contexts", "designers"},
        "policies": {"sampler", "policies"},
        "trainers": {"sampler", "policies", "trainers"},
        "trackers": {"trackers"},
        "trl": {"trl"},
        "plugin": {"contexts", "policies", "plugin"},  # settings of the registered names
    },
    "t2t_leaderboard": {"": {""}, "cli": {"", "cli"}},
    "t2t_jobs": {
        "": {""},
        "agents": {"", "agents"},
        "families": {"", "families"},
        "pools": {"", "pools"},
        "training": {"", "agents", "training"},
        "cli": {"", "training", "cli"},
    },
}


def imports(tree, functions):
    """(module, line) of every import; with `functions`, also of those inside functions. `if TYPE_CHECKING` is left out."""
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


@functools.cache
def graph():
    """Every module of the suite with the modules that it imports, including relative imports, imports in functions and imports
    for the type checker."""
    paths = {}
    for room, path in FILES:
        parts = path.relative_to(ROOMS[room].parent).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: set(arrows_of(name, path, paths)) - {name} for name, path in paths.items()}


def arrows_of(name, path, modules):
    above = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            start = above[: len(above) - node.level + 1] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            for alias in node.names:  # `from package import module`, or a name out of a module
                inner = f"{base}.{alias.name}"
                yield from (target for target in [inner if inner in modules else base] if target in modules)


def circle(arrows):
    """The modules of one import cycle, in order; empty if there is none."""
    done, way = set(), []

    def walk(name):
        if name in way:
            return way[way.index(name) :]
        if name in done:
            return []
        way.append(name)
        for target in sorted(arrows.get(name, ())):
            if cycle := walk(target):
                return cycle
        done.add(way.pop())
        return []

    return next((cycle for name in sorted(arrows) if (cycle := walk(name))), [])


def test_no_import_goes_round_in_a_circle():
    assert not circle(graph()), "A imports B imports A, now or later: put what both need into a module below them"


def test_the_circle_test_sees_circles():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    arrows = graph()
    assert "t2t_core.store.jsonlines" in arrows["t2t_core.store.folders"]  # `from t2t_core.store import jsonlines`
    assert "t2t_envs.frozen_lake.instance" in arrows["t2t_envs.frozen_lake.rules"]  # relative
    assert "t2t_leaderboard.runner" in arrows["t2t_leaderboard.cli.bench"]  # inside a function
    assert "t2t_core.records" in arrows["t2t_core.hookspecs"]  # for the type checker


@pytest.mark.parametrize("package", MAY_IMPORT_INSIDE)
def test_inside_a_package_no_arrow_goes_up(package):
    may = MAY_IMPORT_INSIDE[package]
    arrows = {name: targets for name, targets in graph().items() if name.startswith(f"{package}.")}

    def room(module):
        first = module.removeprefix(f"{package}.").partition(".")[0]
        return first if first in may or any(name.startswith(f"{package}.{first}.") for name in arrows) else ""

    assert {room(name) for name in arrows} == set(may), "every room has its place in the order"
    wrong = [
        f"{name} imports {target}"
        for name, targets in arrows.items()
        for target in targets
        if target.startswith(f"{package}.") and room(target) not in may[room(name)]
    ]
    assert not wrong, "an arrow goes up: " + "; ".join(wrong)


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


# A module of the room of adapters is imported by its framework, and by nobody else.
ADAPTERS = {"inspect_tasks.py": "inspect_ai", "verifiers_tasks.py": "verifiers"}
ADAPTERS |= {"verl_dataset.py": "verl", "openenv.py": "openenv", "skyrl.py": "skyrl_gym"}


def test_nothing_heavy_is_imported_at_module_level():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {root}"
        for room, path in FILES
        for root, line in roots(path, functions=False)
        if root in HEAVY and not (room == "t2t" and root == ADAPTERS.get(path.name))
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
    """`t2t --help` stays fast: neither the command line nor the built-in plugins import anything heavy, such as gymnasium."""
    code = "import sys; from t2t_core.plugins import load; load(); import t2t_core.cli; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    loaded = {name.partition(".")[0] for name in modules}
    assert not loaded & (HEAVY | {"gymnasium", "pettingzoo", "PIL"}), sorted(loaded & HEAVY)


@pytest.mark.thorough
def test_nothing_is_evaluated_unpickled_or_unpacked():
    """One module reads archives, in bounded memory, and nothing is unpacked to the disk, so there is no zip bomb and no path out
    of one; endpoints' compressed replies have a bound of their own. `torch.load` reads our own optimizer states, numbers
    alone."""
    banned = {"eval", "exec", "compile", "pickle", "marshal", "shelve", "dill", "joblib"}
    banned |= {"zipfile", "tarfile", "gzip", "bz2", "lzma", "zipimport"}
    for _, path in FILES:
        tree = ast.parse(path.read_text())
        names = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        allowed = {"zipfile"} if path == ROOT / "t2t_core" / "store" / "archives.py" else set()  # bounded, and in memory
        assert not (banned - allowed) & (names | {root for root, _ in roots(path)}), path
        calls = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert all("weights_only=True" in call for call in calls if call.startswith("torch.load(")), path
        assert not any(word in call for call in calls for word in ("unpack_archive", "decompress(", "allow_pickle=True")), path


FILE_CALLS = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "mkdir", "rmdir", "unlink", "rename"}
FILE_CALLS |= {"symlink_to", "hardlink_to", "iterdir", "glob", "rglob", "chmod"}
FILE_MODULES = {"shutil", "tempfile", "fileinput", "mmap"}
OS_CALLS = {"open", "replace", "rename", "remove", "unlink", "mkdir", "makedirs", "link", "symlink", "scandir", "listdir", "walk"}
MAY_OPEN = {
    "t2t_core/testing/parts.py": "looks at what a plugin under test left in a folder of the test's own",
    "envs/t2t_envs/frozen_lake/generation/forms.py": "a resource of the package",
    "envs/t2t_envs/frozen_lake/reported.py": "a resource of the package",
    "t2t_core/report/frame.py": "a resource of the package",
    "jobs/t2t_jobs/sandbox.py": "confines itself, from the standard library alone, and never reads what a stranger named",
    "envs/t2t_envs/tictactoe/reported.py": "a resource of the package",
    "plugins/t2t_plugins/trainers/common.py": "looks for the states that transformers left, in a folder that was checked",
}


def file_calls(tree):
    """Every call that directly opens, makes, lists or removes something on the disk."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        owner, _, name = called.rpartition(".")
        of_a_path = owner and owner not in ("os", "folders") and name in FILE_CALLS
        if called == "open" or (owner == "os" and name in OS_CALLS) or owner in FILE_MODULES or of_a_path:
            yield called, node.lineno


def test_only_the_store_opens_files():
    """The files of a folder may come from a stranger. So only the store opens them: regular files, never through a link, with a
    size limit."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {call}"
        for _, path in FILES
        if not path.is_relative_to(ROOT / "t2t_core" / "store") and str(path.relative_to(ROOT)) not in MAY_OPEN
        for call, line in file_calls(ast.parse(path.read_text()))
    ]
    assert not wrong, "use t2t_core.store: " + "; ".join(wrong)
    assert all(list(file_calls(ast.parse((ROOT / path).read_text()))) for path in MAY_OPEN), "an exception nobody needs any more"


def test_it_sees_files_opened():
    tree = ast.parse("open(x)\npath.read_text()\nos.replace(a, b)\nshutil.rmtree(x)\nfolders.rename(a, b)\nos.path.join(a)\n")
    assert [call for call, _ in file_calls(tree)] == ["open", "path.read_text", "os.replace", "shutil.rmtree"]


GENERAL = {"in_bounds", "response_tokens"}  # names of a world's that say nothing of it
WORDS = {"lake", "hole", "maze", "makespan", "pathfinding", "mapf", "robot", "frozen_lake"}
WORDS |= {"tictactoe", "tic-tac-toe", "noughts", "minimax", "opponent", "payment", "coin", "jug", "litre"}
# Of names, and of some tasks.
FORMS = r"[0-9]+agents|(?:no_)?(?:hole|wait)_(?!for)[a-z]+|(?P<side>[0-9]+) ?[x×] ?(?P=side)|all[-_ ]wait|game"
TEXTS = (".py", ".css", ".html", ".toml", ".yaml", ".json")
NO_WORLD = ("t2t_core", "t2t_plugins", "t2t_leaderboard", "t2t_jobs")
# About a world: the families of jobs, their names in the registry, and the toy agent that has learnt those families' words.
OF_FAMILIES = ("jobs/t2t_jobs/families/", "jobs/t2t_jobs/plugin.py", "jobs/t2t_jobs/agents/tiny/checkpoints/")
JOB_AGENTS = "--agents"  # what the lake calls its own option, and `t2t bench-agents` the agents that write jobs


def words_of_worlds():
    """The names that the testbeds here give to themselves and their parts, unless they are plain words."""
    from t2t_core.plugins import installed

    words, parts = set(WORDS), set()
    for entry in installed().testbeds:
        if entry.plugin.startswith("t2t_envs"):
            testbed = installed().testbeds.make(entry.name)
            words |= {testbed.name, testbed.group, testbed.sameness, *(f"--{option.name}" for option in testbed.options())}
            parts |= {*testbed.checks, *testbed.protected_sets(), *(metric.name for metric in testbed.metrics)}
            parts |= {knob.name for knob in testbed.knobs(testbed.request(1))}
    return (words | {part for part in parts if not part.isalpha()}) - GENERAL


def test_no_word_of_any_world_stands_outside_its_room():
    """This holds for code, comments, texts and templates, because everything specific to a task is declared by its testbed."""
    words = "|".join(sorted((re.escape(word) for word in words_of_worlds()), key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])(?:{words}|{FORMS})s?(?![\w-])", re.IGNORECASE)
    files = [path for room in NO_WORLD for path in sorted(ROOMS[room].rglob("*")) if path.suffix in TEXTS]
    files = [path for path in files if not str(path.relative_to(ROOT)).startswith(OF_FAMILIES)]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in pattern.finditer(line)
        if not (match[0] == JOB_AGENTS and path.is_relative_to(ROOMS["t2t_jobs"]))
    ]
    assert not wrong, "a testbed declares it: " + "; ".join(wrong)
    assert len(files) > 100 and "conflict_free" in words
    assert all(pattern.search(text) for text in ("over the map sizes", "a Hole_Ratio of", "--agents 3"))
