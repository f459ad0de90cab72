"""The guarded loader: a stranger's plugin cannot kill a command, hide another, or write on the terminal."""

import sys
import types
import warnings
from importlib.metadata import EntryPoint

import pytest
from click.testing import CliRunner

from t2t_core import plugins as loader
from t2t_core.cli import main
from t2t_core.hookspecs import Hooks, hookimpl
from t2t_core.plugins import GROUP, Plugins, load


class Distribution:
    def __init__(self, name, version="1.0"):
        self.name, self.version = name, version


@pytest.fixture
def plugin(monkeypatch):
    """plugin(name, distribution, hook=function, ...) -> an entry point of a module that has those hooks."""

    def make(name, distribution="stranger", body=None, **hooks):
        module = types.ModuleType(f"plugin_{len(sys.modules)}_{abs(hash((name, distribution)))}")
        for hook, function in hooks.items():
            function.__name__ = hook
            setattr(module, hook, hookimpl(function))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        point = EntryPoint(name, f"{module.__name__}{'.gone' if body == 'missing' else ''}", GROUP)
        vars(point)["dist"] = Distribution(distribution)
        return point

    return make


def adds(*names, summary="a summary", target=lambda argument, settings: object()):
    def register(registry):
        for name in names:
            registry.add(name, target, summary)

    return register


def test_the_built_ins_come_through_the_same_door():
    plugins = load()
    assert set(plugins.loaded) >= {"t2t_core", "t2t_envs", "t2t_plugins", "t2t_baselines", "t2t_leaderboard"}
    assert not [r for r in plugins.refused if "t2t-core" in r]
    solvers, models = {"cbs", "prioritized", "pibt", "independent", "random"}, {"openai", "gemini", "openrouter", "endpoint"}
    assert set(plugins.policies.entries) >= solvers | models | {"answers"}


def test_the_kinds_are_the_hooks():
    assert {f"register_{kind}" for kind in Plugins().registries} == {name for name in vars(Hooks) if name.startswith("register_")}


def test_every_kind_of_name_reaches_its_registry(plugin):
    plugins = load([plugin("all", **{f"register_{kind}": adds(f"my-{kind}") for kind in Plugins().registries})])
    for kind in Plugins().registries:
        assert f"my-{kind}" in getattr(plugins, kind)
    assert plugins.loaded == {"all": "stranger 1.0"} and not plugins.refused


def test_two_plugins_of_one_name_are_refused_naming_both(plugin):
    plugins = load(
        [plugin("mine", "first", register_policies=adds("a")), plugin("mine", "second", register_policies=adds("b"))]
    )
    assert list(plugins.policies.entries) == ["a"]
    assert plugins.refused == ["plugin mine of second 1.0: the name is taken by first 1.0; rename the entry point"]


def test_two_names_of_one_kind_are_refused_naming_both(plugin):
    first = plugin("p", "first", register_policies=adds("same"))
    plugins = load([first, plugin("q", "second", register_policies=adds("same", "own"))])
    assert plugins.policies.entries["same"].distribution == "first 1.0" and "own" in plugins.policies
    assert plugins.refused == ["policy same of second 1.0: the name is taken by first 1.0"]


def test_our_own_plugins_go_first(monkeypatch, plugin):
    ours = plugin("z", "t2t-core", register_policies=adds("cbs"))
    theirs = plugin("a", "another", register_policies=adds("cbs"))
    monkeypatch.setattr(loader.metadata, "entry_points", lambda group: [theirs, ours])
    assert load().policies.entries["cbs"].distribution == "t2t-core 1.0"


def raises(error):
    def register(registry):
        registry.add("half", lambda argument, settings: None)
        raise error

    return register


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), ImportError("no torch"), RecursionError()])
def test_a_plugin_that_fails_is_refused_whole(plugin, error):
    bad = plugin("bad", register_policies=raises(error), register_designers=adds("d"))
    plugins = load([bad, plugin("good", "other", register_policies=adds("fine"))])
    assert list(plugins.policies.entries) == ["fine"] and not plugins.designers.entries
    assert plugins.loaded == {"good": "other 1.0"}
    assert plugins.refused[0].startswith(f"plugin bad of stranger 1.0: {type(error).__name__}")


def test_a_plugin_that_cannot_be_imported_is_refused(plugin, monkeypatch):
    plugins = load([plugin("bad", body="missing"), plugin("good", "other", register_policies=adds("fine"))])
    assert "fine" in plugins.policies and "ModuleNotFoundError" in plugins.refused[0]
    monkeypatch.setenv("T2T_PLUGIN_TRACEBACK", "1")
    with pytest.raises(ModuleNotFoundError):
        load([plugin("bad", body="missing")])


@pytest.mark.parametrize(
    ("hooks", "match"),
    [
        ({"register_polices": adds("x")}, "register_polices"),
        ({"register_policies": lambda registry, more: None}, "more"),
    ],
)
def test_a_hook_that_does_not_exist_is_refused(plugin, hooks, match):
    plugins = load([plugin("typo", **hooks)])
    assert not plugins.loaded and match in plugins.refused[0]


def test_hostile_texts_do_not_reach_the_terminal(plugin, monkeypatch):
    escape = "\x1b]0;owned\x07\x1b[2J\n\u202e"
    names = adds("fine", "a" + escape, "../x", "", summary=escape * 200)
    evil = plugin("evil" + escape, "dist" + escape, register_policies=names)
    loaded = load([evil, plugin("worse", "other", register_policies=raises(RuntimeError(escape)))])
    monkeypatch.setattr("t2t_core.cli.plugins.installed", lambda: loaded)
    from t2t_core.cli.plugins import plugins as command

    for arguments in ([], ["--json"]):
        output = CliRunner().invoke(command, arguments).output
        assert "fine" in output and "not a usable name" in output
        assert all(c.isprintable() or c == "\n" for c in output), ascii(output)
    assert list(loaded.policies.entries) == ["fine"]


def test_t2t_plugins_lists_what_is_there(capsys):
    with pytest.raises(SystemExit) as status:
        main(["plugins"])
    output = capsys.readouterr().out
    assert status.value.code == 0
    for text in ("policies", "cbs", "designers", "contexts", "V6", "testbeds", "commands", "[t2t-core "):
        assert text in output


def test_help_lists_commands_without_importing_them(capsys):
    with pytest.raises(SystemExit) as status:
        main(["--help"])
    assert status.value.code == 0 and "bench" in capsys.readouterr().out


def test_a_misspelt_command_says_what_was_meant(capsys):
    with pytest.raises(SystemExit) as status:
        main(["bensh"])
    assert status.value.code == 2 and "did you mean bench" in capsys.readouterr().err


def test_a_warning_is_one_line_without_our_source(monkeypatch, capsys):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # put back afterwards
    with pytest.raises(SystemExit):
        main(["--version"])
    shown = warnings.formatwarning(UserWarning("3 of 4\x1b[2J"), UserWarning, "file.py", 7, "for a in b:")
    assert shown == "warning: 3 of 4\\x1b[2J\n"


def test_refused_plugins_are_warned_of_and_kill_nothing(monkeypatch, plugin, capsys):
    plugins = load()
    plugins.refused.append("plugin bad of stranger 1.0: boom")
    monkeypatch.setattr("t2t_core.cli.installed", lambda: plugins)
    with pytest.raises(SystemExit) as status:
        main(["--version"])
    assert status.value.code == 0 and "warning: refused plugin bad of stranger 1.0: boom" in capsys.readouterr().err
