"""A key never leaks: it is redacted before a text is shortened, at every offset, and refused where a user types it."""

from __future__ import annotations

import base64
import html
import json
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.redaction import Redactor, remember, without_secrets
from t2t_core.run.experiment import Experiment
from t2t_core.settings import refuse_secrets
from t2t_core.text import one_line, plain_lines

KEY = "sk-Proj_9fK2x7Qw8Zr4Tn1Vb6Ym3Lc5"
LONGEST_SHOWN = 14  # characters in a row of a key that may be seen; a stretch of 15 goes


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)


def longest_common(text: str, key: str) -> int:
    """The longest stretch of the key that the text holds."""
    best = 0
    for begin in range(len(key)):
        while key[begin : begin + best + 1] in text and begin + best + 1 <= len(key):
            best += 1
    return best


@pytest.mark.parametrize("show", [one_line, plain_lines])
def test_at_every_offset_also_across_the_cut_no_piece_of_the_key_is_shown(show: Any) -> None:
    for offset in range(320):
        text = "x" * offset + KEY + " said the server " * 20
        shown = show(text, 300)
        assert longest_common(shown.replace("\\", ""), KEY) <= 3, offset  # a letter or two stand in any text


@pytest.mark.parametrize("begin", range(0, len(KEY), 3))
@pytest.mark.parametrize("end", range(len(KEY), 0, -5))
def test_of_a_key_that_a_server_cut_no_long_stretch_is_left(begin: int, end: int) -> None:
    shown = without_secrets(f"invalid key {KEY[begin:end]}... see the docs")
    assert longest_common(shown, KEY) <= LONGEST_SHOWN
    assert "invalid key" in shown and "... see the docs" in shown


@pytest.mark.parametrize("end", range(4, len(KEY)))
def test_a_text_that_was_cut_within_the_key_ends_before_it(end: int) -> None:
    assert without_secrets(f"the key {KEY[:end]}", cut=True) == "the key [SOME_API_KEY]"


@given(st.text(), st.text(), st.text())
def test_honest_text_stays_word_for_word(before: str, between: str, after: str) -> None:
    if longest_common(before + between + after, KEY) < 8:
        assert without_secrets(f"{before}{KEY}{between}{KEY}{after}") == f"{before}[SOME_API_KEY]{between}[SOME_API_KEY]{after}"
        assert without_secrets(before + between + after) == before + between + after


def test_text_made_of_pieces_of_the_key_takes_no_time() -> None:
    text = "".join(KEY[i % 20 : i % 20 + 12] for i in range(300_000))
    started = time.process_time()
    shown = without_secrets(text)
    assert time.process_time() - started < 20 and longest_common(shown, KEY) <= LONGEST_SHOWN


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("OPENAI_API_KEY", "k" * 20, "k" * 20),
        ("OPENAI_API_KEY_2", "abcdefghijkl1", "abcdefghijkl1"),
        ("ANTHROPIC_AUTH_TOKEN", "token-of-20-letters", "token-of-20-letters"),
        ("AWS_SECRET_ACCESS_KEY", "wJalr/XUtnFEMI/K7MDENG+x", quote("wJalr/XUtnFEMI/K7MDENG+x", safe="")),
        ("MYSECRET", "hunter2hunter2", "hunter2hunter2"),
        ("GITHUB_PAT", "0123456789abcdef", "0123456789abcdef"),
        ("HTTPS_PROXY", "http://me:swordfish-and-more@proxy:3128", "swordfish-and-more"),
        ("DATABASE_URL", "postgres://me:swordfish-and-more@db/x", "swordfish-and-more"),
        ("HTTPS_PROXY", "http://me:sword%40fish-and-more@proxy:3128", "sword@fish-and-more"),
        ("OPENAI_CUSTOM_HEADERS", "X-Api: abcdefghijklmnop0\nB: c", "abcdefghijklmnop0"),
    ],
)
def test_what_counts_as_a_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch, name: str, value: str, shown: str) -> None:
    monkeypatch.setenv(name, value)
    assert shown not in without_secrets(f"it says {shown}!") and name in without_secrets(f"it says {shown}!")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("T2T_API_KEY", "EMPTY"),
        ("SSH_AUTH_SOCK", "/tmp/agent.1234567"),
        ("KEYBOARD", "a-long-layout-name"),
        ("PATH", "/usr/bin:/bin"),
    ],
)
def test_what_does_not(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert without_secrets(f"it says {value}!") == f"it says {value}!"


@pytest.mark.parametrize("key", [KEY, 'sk-"quo\\te/+=%0123456789', "sk-ob~|}>?/0123456789~~~"])
def test_however_it_is_written_nothing_of_it_is_left(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """In an address, in HTML and JSON, and as base64 after a name of any length, as when a proxy's error quotes a request."""
    monkeypatch.setenv("SOME_API_KEY", key)
    names = [base64.b64encode(f"{'me' * n}:{key}".encode()).decode() for n in range(4)]
    names += [base64.urlsafe_b64encode(f"{'m' * n}{key}{'e' * m}".encode()).decode() for n in range(3) for m in range(3)]
    names += [key.upper(), key.lower(), key.encode().hex(), key.encode().hex().upper()]
    for letter in ("%{:02x}", "%{:02X}", "&#{};", "&#x{:x};", "&#x{:X};", "\\x{:02x}", "\\u{:04x}", "\\u{:04X}"):
        names.append("".join(letter.format(ord(c)) for c in key))
    for written in (quote(key), quote(key, safe=""), html.escape(key), json.dumps(key), *names):
        shown = without_secrets(f"you sent {written}!")
        assert "[SOME_API_KEY]" in shown and shown.startswith("you sent ") and shown.endswith("!")
        assert longest_common(shown, key) <= 3 and longest_common(shown, written) < len("you sent ") + 8, shown


def test_a_key_that_was_read_is_remembered_whatever_its_variable_is_called() -> None:
    remember("ODD_NAME", "remembered-0123456789")
    assert without_secrets("<remembered-0123456789>") == "<[ODD_NAME]>"


def test_json_is_redacted_in_every_nesting() -> None:
    value = {"a": [KEY, {"b": f"x{KEY}y"}], KEY: 1, "n": 3, "t": (None, True)}
    assert KEY not in json.dumps(Redactor().everywhere(value))


REFUSED: list[Any] = [
    {"api_key": "hunter2"},
    {"API-Key": "hunter2"},
    {"extra_body": '{"api_key": "hunter2"}'},
    {"extra_body": {"headers": {"Authorization": "hunter2"}}},
    {"extra_body": '{"a": [{"b": {"x-api-key": "hunter2"}}]}'},
    {"extra_headers": {"X-Custom": f"Bearer {KEY}"}},
    {"model": KEY},
    {"model": f"prefix/{KEY[2:-1]}"},
    {"argument": f"{KEY}:latest"},
    {KEY: "value"},
    {"a": {"b": [[[KEY]]]}},
    {"argument": "sk-abcdefghijklmnopqrstuvwxyz0123"},
    {"argument": "hf_abcdefghijklmnopqrstuvwxyz0123"},
    {"x": "Authorization: Bearer abcdefgh12345678"},
    {"extra_body": '{"provider": {"credentials": {"v": "hunter2"}}}'},
    {"extra_body": {"auth": "hunter2"}},
    *({"extra_body": {name: "hunter2"}} for name in ("Ocp-Apim-Subscription-Key", "refresh_token", "hf_token", "jwt")),
    {"extra_body": {"user_key": "hunter2", "id_token": "hunter2"}},
    {"extra_body": {"api_keys": ["hunter2"], "client_secrets": {"a": [{"b": "hunter2"}]}}},
    {"extra_body": '{"api_key": "hunter2"'},
    {"extra_body": "{'Authorization': 'hunter2'}"},
    {"argument": "model,api-key: hunter2"},
    {"Api-Key": "hunter2", "base_url": "http://host/v1"},
    {"base_url": "http://me:pw@host/v1"},
    {"base_url": "http://host/v1?a=1&access_token=pw"},
    KEY,
]


@pytest.mark.parametrize("value", REFUSED, ids=str)
def test_a_key_in_a_setting_is_refused_and_not_repeated(value: Any) -> None:
    with pytest.raises(T2TError, match="holds a key") as caught:
        refuse_secrets(value, "policy endpoint")
    for secret in (KEY, KEY[2:-1], "hunter2", "pw@", "=pw", "abcdefgh12345678", "abcdefghijklmnopqrstuvwxyz0123"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        {"api_key_env": "MY_KEY", "max_tokens": 100, "limit_field": "max_tokens", "extra_body": '{"prompt_cache_key": "x"}'},
        {"extra_body": '{"stop_token_ids": [1], "logit_bias": {"5": 1}}', "base_url": "http://host:8000/v1", "token": ""},
        {"argument": "Qwen/Qwen3-4B", "lora": "/a/b", "configuration": "http://["},
        {"argument": "/data/hf_checkpointsofmyoldexperiments", "lora": "task-2026-a-rather-long-name-of-a-folder"},
        {"extra_body": '{"max_tokens": 4096, "tokens": [1024], "keys": ["a"], "key": {"type": "brief"}, "author": "me too"}'},
        {"designer": "llm:endpoint:m,api_key_env=MY_KEY"},
        {"argument": "openai/gpt-oss-120b:free", "nested": {"secret": None, "key": False}},
        None,
    ],
    ids=str,
)
def test_honest_settings_are_not(value: Any) -> None:
    refuse_secrets(value, "policy endpoint")


@pytest.mark.parametrize(
    "change",
    [
        {"policy": f"endpoint:{KEY}"},
        {"policy": 'endpoint:m,extra_body={"api_key": "hunter2"}'},
        {"designer": f"llm:openai:m,extra_body={KEY}"},
        {"training": {"deep": {"token": "hunter2"}}},
        {"generation": {"samples": 1, "note": KEY}},
        {"evaluation": {"agents": KEY}},
    ],
)
def test_a_run_configuration_with_a_key_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(T2TError, match="holds a key") as caught:
        Experiment.from_dict({"testbed": "t", "policy": "p", "generation": {"samples": 1}, **change})
    assert KEY not in str(caught.value) and "hunter2" not in str(caught.value)
