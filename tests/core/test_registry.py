"""Names, specs and settings, as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.registry import Registry, Spec
from t2t_core.settings import integer, no_argument, number, one_of, read_settings


@pytest.mark.parametrize(
    ("text", "name", "argument", "settings"),
    [
        ("cbs", "cbs", "", {}),
        (" cbs ", "cbs", "", {}),
        ("openai:gpt-5.4", "openai", "gpt-5.4", {}),
        ("hf:./a,b/checkpoint", "hf", "./a,b/checkpoint", {}),
        ("vllm:Qwen/Qwen3-4B,temperature=0.6,max_tokens=9", "vllm", "Qwen/Qwen3-4B", {"temperature": "0.6", "max_tokens": "9"}),
        ("endpoint:m,base_url=http://h:1/v1", "endpoint", "m", {"base_url": "http://h:1/v1"}),
        ('endpoint:m,extra_body={"a": 1, "b": 2}', "endpoint", "m", {"extra_body": '{"a": 1, "b": 2}'}),
        ("llm:openai:gpt-5.4,temperature=0", "llm", "openai:gpt-5.4", {"temperature": "0"}),
        ("prioritized:orders=3", "prioritized", "", {"orders": "3"}),
        ("endpoint:m,base_url=http://h/v1,Api-Key=x", "endpoint", "m", {"base_url": "http://h/v1", "Api-Key": "x"}),
        ("endpoint:m,API_KEY = x", "endpoint", "m", {"API_KEY": " x"}),
        ('endpoint:m,extra_body={"a": "b, top_p=1", "c": "\\", d=2"},top_p=0.5', "endpoint", "m",
         {"extra_body": '{"a": "b, top_p=1", "c": "\\", d=2"}', "top_p": "0.5"}),
        ("endpoint:m,label=a,label=b,c", "endpoint", "m", {"label": "b,c"}),
        ("answers:Mine=1.jsonl", "answers", "Mine=1.jsonl", {}),
        ("a:", "a", "", {}),
        ("", "", "", {}),
    ],
)
def test_specs(text, name, argument, settings):
    assert Spec.parse(text) == Spec(name, argument, settings)


@given(st.text())
def test_any_text_is_some_spec(text):
    spec = Spec.parse(text)
    assert isinstance(spec.name, str) and isinstance(spec.argument, str)


def registry(*, kind="policy", **entries):
    made = Registry(kind)
    made.distribution = "mine 1.0"
    for name, target in entries.items():
        made.add(name, target, f"what {name} does")
    return made


def test_make_calls_the_factory_with_argument_and_settings():
    made = registry(kind="thing", echo=lambda argument, settings: (argument, settings))
    assert made.make("echo:x,key=1") == ("x", {"key": "1"})
    assert made.make("echo:x,key=1", key="2", more="3") == ("x", {"key": "1", "more": "3"})
    assert made.make(Spec("echo")) == ("", {})


def test_a_target_given_as_text_is_imported_on_demand():
    made = registry(path="pathlib:PurePath", gone="no_such_module:x", lacks="pathlib:NoSuch")
    assert made.find("path").load().__name__ == "PurePath"
    for name in ("gone", "lacks"):
        with pytest.raises(T2TError, match="could not be loaded") as error:
            made.make(name)
        assert "mine 1.0" in error.value.where
    assert "[train]" not in error.value.next, "an extra mends no misspelt name"


def test_did_you_mean():
    made = registry(prioritized=print, pibt=print)
    with pytest.raises(T2TError, match="no policy called 'prioritised'") as error:
        made.find("prioritised")
    assert "did you mean prioritized" in error.value.cause
    with pytest.raises(T2TError) as error:
        made.find("zzzz")
    assert "pibt, prioritized" in error.value.cause
    with pytest.raises(T2TError) as error:
        made.make("pibt,seed=3")
    assert "settings follow a colon" in error.value.cause and error.value.next == "write pibt:seed=3"
    with pytest.raises(T2TError) as error:
        made.find("\x1b[2J" * 1000)
    assert "\x1b" not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "a\n", "\x1b[2J", "\u00e4", "x" * 65, None, 3, "a:b", "a,b"])
def test_unusable_names_are_refused(name):
    made = registry()
    made.add(name, print)
    assert not made.entries and "not a usable name" in made.refused[0] and made.refused[0].isprintable()


@pytest.mark.parametrize("target", [None, 3, "module", "a:b:c", ""])
def test_unusable_targets_are_refused(target):
    made = registry()
    made.add("x", target)
    assert not made.entries and "neither callable nor" in made.refused[0]


def test_a_taken_name_stays_with_the_first():
    made = registry(x=print)
    made.distribution = "other 2.0"
    made.add("x", len)
    assert made.find("x").load() is print
    assert made.refused == ["policy x of other 2.0: the name is taken by mine 1.0"]


def test_names_are_listed_in_order():
    assert [e.name for e in registry(b=print, a=print, c=print)] == ["a", "b", "c"]


READERS = {"count": integer(1, 5), "share": number(0, 1), "form": one_of(["long", "short"])}


def test_settings_are_read():
    assert read_settings({"count": "3", "share": "0.5", "form": "long"}, "policy x", READERS) == {
        "count": 3,
        "share": 0.5,
        "form": "long",
    }
    assert read_settings({}, "policy x", READERS) == {}


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"cuont": "3"}, "did you mean count"),
        ({"zzz": "3"}, "known settings: count, share, form"),
        ({"count": "6"}, "must lie in 1..5"),
        ({"count": "3.0"}, "whole number"),
        ({"count": "--3"}, "whole number"),
        ({"count": "9" * 10_000}, "whole number"),
        ({"count": "\u0663"}, "whole number"),
        ({"share": "nan"}, "must lie in 0..1"),
        ({"share": "inf"}, "must lie in 0..1"),
        ({"share": "half"}, "must be a number"),
        ({"form": "LONG"}, "one of long, short"),
        ({"\x1b": "1"}, "no setting"),
    ],
)
def test_settings_that_are_not_usable_are_named(settings, match):
    with pytest.raises(T2TError, match=match) as error:
        read_settings(settings, "policy x", READERS)
    assert error.value.where == "policy x" and "\x1b" not in str(error.value) and len(str(error.value)) < 400


def test_no_argument():
    no_argument("", "policy x")
    with pytest.raises(T2TError, match="policy x takes no argument, not 'y'"):
        no_argument("y", "policy x")
