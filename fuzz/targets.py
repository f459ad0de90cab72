"""One function per reader of untrusted text. Each takes bytes, and raises if a promise does not hold.

The promises: a reader raises nothing but `T2TError` (`AssertionError` and everything else is a finding), what a reader accepts
keeps its contract, and the work is linear in the length of the text (`linear`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fuzz import jobs, kept, worlds
from fuzz.common import linear, scratch, text_of, values_of
from fuzz.values import Values
from t2t_core import records, registry, settings
from t2t_core.cells import numbers
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import AnswerIndex
from t2t_core.evaluation.evaluate import read_sampling
from t2t_core.evaluation.lines import response_fault
from t2t_core.loop import context
from t2t_core.reading import loose_json
from t2t_core.reading.thoughts import set_aside_thoughts
from t2t_core.run import experiment
from t2t_core.run.schemas import BenchTable, Design, Projected
from t2t_core.store import folders, jsonlines, schema
from t2t_envs.frozen_lake import testbed, verifier
from t2t_envs.frozen_lake.generation.configuration import SIZES, Configuration
from t2t_envs.frozen_lake.generation.projection import project
from t2t_envs.frozen_lake.generation.request import Request
from t2t_envs.frozen_lake.instance import OBJECTIVES, Instance
from t2t_envs.frozen_lake.jsonl import read_instances
from t2t_envs.frozen_lake.parser import format_answer, parse_answer, read_answer
from t2t_leaderboard.folder import recorded_sampling
from t2t_leaderboard.schemas import BenchSettings, SubmissionRecord
from t2t_plugins.designers import reader
from t2t_plugins.policies import answers
from t2t_plugins.policies.endpoint import kinds, reply
from t2t_plugins.policies.endpoint.client import HttpReply

INSTANCE = Instance(3, [(0, 0)], [(2, 0), (1, 0)], [(1, 2), (2, 2)], "makespan", "2agents_3x3_0236", 3, 6, False)
DOCUMENTED = "<answer>\nAgent 0: (2,0) -> (2,1) -> (2,2) -> (1,2)\nAgent 1: (1,0) -> (1,1) -> (2,1) -> (2,2)\n</answer>"
SAMPLING = ("temperature", "max_tokens", "top_p", "top_k", "min_p", "thinking")


def answer(data: bytes) -> None:
    """The parser and the verifier of answers."""
    text = text_of(data)
    paths, why = read_answer(text)
    assert (paths is None) is bool(why)
    verdict = verifier.verify(INSTANCE, text)
    assert list(verdict.checks) == list(verifier.CHECKS) and all(type(c) is bool for c in verdict.checks.values())
    assert verdict.checks["parsable"] is (paths is not None) and verdict.valid is all(verdict.checks.values())
    assert (verdict.cost is not None) is verdict.valid and verdict.optimal in ((True, False) if verdict.valid else (False,))
    assert not verdict.valid or verdict.optimal is (verdict.cost == INSTANCE.optimum)
    assert set(verdict.faults) - {"label"} == {name for name, passed in verdict.checks.items() if not passed}
    if paths is not None:
        assert paths and all(path and all(type(x) is int for cell in path for x in cell) for path in paths.values())
        if list(paths) == list(range(len(paths))):
            assert parse_answer(format_answer(list(paths.values()))) == paths
    if "think" not in text.lower() and not text.lstrip().lower().startswith("analysis"):
        assert parse_answer(f"<think>{DOCUMENTED}</think>{text}") == paths, "a draft in thoughts counts for nothing"
        assert parse_answer(f"{text}<think>{DOCUMENTED}") == paths or "<|" in text, "a draft in thoughts counts for nothing"
    middle = len(DOCUMENTED) * (data[0] if data else 0) // 256
    for near in (text, DOCUMENTED[:middle] + text[1:] + DOCUMENTED[middle + len(data) % 5 :]):
        ours, expected = verifier.verify(INSTANCE, near), verifier.reference_verify(INSTANCE, near)
        assert repr(ours) == repr(expected), "the native core says otherwise"
    linear(lambda long: verifier.verify(INSTANCE, long), text)


def instance(data: bytes) -> None:
    """One instance as JSON, or as a JSON value made from the bytes."""
    for value in values_of(data, {"size": 4, "holes": [[0, 0]], "starts": [[1, 1]], "goals": [[2, 2]]}):
        with contextlib.suppress(T2TError):
            made = Instance.from_dict(value)
            again = Instance.from_dict(jsonlines.loads(jsonlines.dumps(made.to_dict())))
            assert again == made and again.canonical() == made.canonical()
            turned = replace(made, starts=made.starts[::-1], goals=made.goals[::-1])
            assert turned.canonical() == made.canonical(), "labels play no part"


def configuration(data: bytes) -> None:
    """The configuration reader, and Project: a fixed point that keeps every constraint."""
    source = Values(data)
    repeats = source.choice(("allow", "forbid"))
    request = Request(1 + source.byte() % 60, 2 + source.byte() % 2, source.choice(OBJECTIVES), repeats=repeats)
    previous = _previous(source)
    named = {source.choice(("3", "4", "7", "10", "11", "x")): _knobs(source) for _ in range(source.byte() % 6)}
    proposals = [named, source.any()]
    with contextlib.suppress(jsonlines.Unreadable):
        proposals.append(jsonlines.loads(data))
    for proposal in proposals:
        with contextlib.suppress(T2TError):
            made = Configuration.from_dict(proposal)
            assert Configuration.from_dict(made.to_dict()) == made
        done = project(proposal, previous, request)
        knobs = done.configuration.to_dict()
        assert list(knobs) == [str(size) for size in SIZES]
        assert all(math.isfinite(x) and 0 <= x <= 1 for k in knobs.values() for x in numbers(k).values())
        assert abs(sum(k["data_ratio"] for k in knobs.values()) - 1) < 1e-6
        assert all(k["hole_ratio"] <= 0.5 for k in knobs.values())
        assert sum(done.configuration.counts(request.count).values()) == request.count
        jsonlines.dumps([c.__dict__ if hasattr(c, "__dict__") else str(c) for c in done.changes])
        again = project(knobs, done.configuration, request)
        filled = not any("no configuration can fill" in c.reason for c in done.changes)
        assert not filled or (again.configuration == done.configuration and not again.changes), again.changes


_LEAST_RUN = {"testbed": "t", "policy": "p", "generation": {"samples": 1}}


def run(data: bytes) -> None:
    """A run's configuration: the TOML file, and what `--set` adds. What is accepted survives JSON."""
    path, text = scratch() / "run.toml", text_of(data)
    overrides = [f"training.x={text}", f"{text}=1", text]
    path.write_bytes(data)
    for file, more in ((path, []), *((None, [override]) for override in overrides)):
        with contextlib.suppress(T2TError):
            made = experiment.resolve("", file, more, {}, _LEAST_RUN)
            assert experiment.Experiment.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False))) == made
            assert made.samples >= 1 and made.sampling
    linear(lambda piece: experiment.resolve("", None, [f"training.x={piece}"], {}, _LEAST_RUN), text)


def _knobs(source: Values) -> Any:
    names = ("data_ratio", "hole_ratio", "wait_ratio", "", "size", "cells")
    if source.byte() % 8 == 0:
        return source.any()
    knobs = [source.choice(names) for _ in range(source.byte() % 4)]
    return {name: _joint_cells(source) if name == "cells" else source.any() for name in knobs}


def _joint_cells(source: Values) -> Any:
    """Mostly a list of cells, some of which are valid."""
    cell = ("share", "hole_ratio", "wait_ratio")
    if source.byte() % 8 == 0:
        return source.any()
    return [{name: source.number() if source.byte() % 8 else source.any() for name in cell} for _ in range(source.byte() % 5)]


@functools.lru_cache(maxsize=256)
def _configured(ratios: tuple[float, ...]) -> Configuration:
    total = sum(ratios[:8])
    knobs = {str(s): dict(zip(("data_ratio", "hole_ratio", "wait_ratio"), (r / total, h / 2, w), strict=True))
             for s, r, h, w in zip(SIZES, ratios[:8], ratios[8:16], ratios[16:], strict=True)}  # fmt: skip
    return Configuration.from_dict(knobs)


def _previous(source: Values) -> Configuration:
    shares = tuple(source.byte() / 255 for _ in SIZES)
    ratios = tuple(source.byte() / 255 for _ in range(16))
    return _configured((*(shares if sum(shares) else (1.0,) * 8), *ratios))


def lines(data: bytes) -> None:
    """Every reader of JSON Lines, and continuing after a torn line."""
    path = scratch() / "lines.jsonl"
    path.write_bytes(data)
    with contextlib.suppress(T2TError):
        read_instances(path)
    with contextlib.suppress(T2TError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policy = answers.StoredAnswers(str(path), {})
        list(policy.respond([records.Task(INSTANCE.id, 0, "p", INSTANCE, 0)], records.Sampling()))
    with contextlib.suppress(T2TError):
        index = AnswerIndex(path, [INSTANCE.id, "b"], 2)
        for question in range(4):
            response = index.response(question)
            assert response is None or response_fault(response) is None
        index.close()
    torn: list[jsonlines.Torn] = []
    with contextlib.suppress(T2TError):
        before = [line.value for line in jsonlines.read(path, torn)]
        assert not torn or not data.endswith(b"\n")
        with jsonlines.Appender(path, torn[0] if torn else None) as appender:
            appender.append({"last": 1})
        assert [line.value for line in jsonlines.read(path)] == [*before, {"last": 1}], "what was read before stays"


def manifest(data: bytes) -> None:
    """The manifest of a folder, and the settings of a bench or submission in it."""
    folder = scratch()
    (folder / folders.MANIFEST).write_bytes(data)
    for kind in ("bench", "run"):
        with contextlib.suppress(T2TError):
            stored = folders.read_manifest(folder, kind)
            schema.check(stored["settings"], BenchSettings, folders.MANIFEST)
    base = {"format": 1, "kind": "bench", "settings": {}, "sessions": [{}], "samples": 1, "seed": 0, "sets": [], "testbed": "x",
            "prompt_format": "", "limit": None, "temperature": 0, "max_tokens": 1, "top_p": 1, "thinking": None}  # fmt: skip
    for value in values_of(data, base):
        if isinstance(value, dict):
            for kind in (BenchSettings, SubmissionRecord, Design, Projected, BenchTable):
                with contextlib.suppress(T2TError):
                    schema.check(value, kind, "a file")
            with contextlib.suppress(T2TError):
                recorded_sampling({name: value[name] for name in SAMPLING if name in value}, folder)


_KNOBS = ("data_ratio", "hole_ratio", "wait_ratio")
_IN_FORCE = {"3": dict.fromkeys(_KNOBS, 0.25), "4": dict.fromkeys(_KNOBS, 0.75)}
_FORMS = [
    reader.Form(("3", "4"), _KNOBS, testbed.make().group_of, [(_IN_FORCE, _IN_FORCE)]),
    reader.Form(("3", "4"), _KNOBS, testbed.make().group_of, of_list=lambda values: dict(zip(_KNOBS, values, strict=True))),
]
_PROPOSAL = json.dumps({"3": dict.fromkeys(_KNOBS, 0.4), "4": dict.fromkeys(_KNOBS, 0.6)})


def designer(data: bytes) -> None:
    """A designer's reply, by itself and inserted into a good one."""
    text = text_of(data)
    middle = len(_PROPOSAL) * (data[0] if data else 0) // 256
    near = _PROPOSAL[:middle] + text[1:] + _PROPOSAL[middle:]
    for reply_text, form in ((text, _FORMS[0]), (text, _FORMS[1]), (near, _FORMS[0])):
        reading = reader.read_reply(reply_text, form)
        assert all(isinstance(note, str) and len(note) < 200 for note in reading.notes)
        assert reading.summary is None or (reading.summary.isprintable() and len(reading.summary) <= reader.MAX_SUMMARY)
        if reading.data is None:
            assert reading.notes, "what is unreadable says why"
            continue
        assert reading.data and all(isinstance(knobs, dict) and knobs for knobs in reading.data.values())
        again = reader.read_reply(jsonlines.dumps(reading.data), form)
        assert again.data == reading.data or not set(reading.data) & {"3", "4"}, "what was read is read the same"
        thought = reader.read_reply(f"<think>{_PROPOSAL}</think>{reply_text}", form).data
        assert thought == reading.data or text.lstrip().startswith("analysis"), "a draft in thoughts counts for nothing"
        cut = reader.read_reply(reply_text, form, cut=True).data
        assert cut in (None, reading.data)
    linear(lambda long: reader.read_reply(long, _FORMS[0]), text)


def thoughts(data: bytes) -> None:
    """Thoughts, and JSON as models write it."""
    text = text_of(data)
    said, _ = set_aside_thoughts(text)
    assert len(said) <= len(text)
    assert set_aside_thoughts(f"<think>{text.replace('<', '')}</think>said").text == "said" or "[" in text or "\u25c1" in text
    end = 0
    for value in loose_json.values(text, _STARTS):
        assert value.start >= end < value.end <= len(text)
        end = value.end
        if isinstance(value, loose_json.Value):
            json.dumps(value.data, allow_nan=False)
    with contextlib.suppress(ValueError, RecursionError):
        strict = json.loads(text)
        if isinstance(strict, dict) and json.dumps(strict) == text:
            loose = next(loose_json.values(text, _STARTS))
            assert isinstance(loose, loose_json.Broken) or loose.data == strict
    linear(set_aside_thoughts, text)
    linear(lambda long: list(loose_json.values(long, _STARTS)), text)


_STARTS = re.compile(r"[{\[]")


def endpoint(data: bytes) -> None:
    """An endpoint's reply, as a 200 and as an error: it always has a kind, and what is recorded keeps its contract."""
    encodings = ("application/json", "text/event-stream; charset=utf-8", "text/html; charset=utf-16", "charset=x")
    first = data[0] if data else 0
    headers = {"content-type": encodings[first % 4], "retry-after": text_of(data[:20])}
    for status in (200, 400, 429, 200 + first):
        judged = reply.judge(HttpReply(status, headers, data), reply.Prices(1.0, 2.0))
        response = judged.response
        assert judged.kind in kinds.KINDS and response_fault(response) is None
        assert (response.error is not None) is judged.kind.fault and response.finish_reason == judged.kind.finish
        assert not response.error or (response.error.isprintable() and len(response.error) < 400 and response.text == "")
        assert judged.wait is None or judged.wait >= 0
    linear(lambda body: reply.judge(HttpReply(200, headers, body), reply.Prices()), data)
    linear(lambda body: reply.judge(HttpReply(400, headers, body), reply.Prices()), data)


_READERS = {"size": settings.integer(1, 9), "share": settings.number(0, 1), "kind": settings.one_of(["a", "b"])}


def _registry() -> registry.Registry:
    made = registry.Registry("policy")
    made.add("a", lambda argument, given: (argument, settings.read_settings(given, "policy a", _READERS)))
    made.add("F", lambda argument, given: records.Sampling())
    made.add("V", lambda argument, given: "F,a,V")
    return made


def spec(data: bytes) -> None:
    """Names with settings, as for policies, designers and context modules."""
    text = text_of(data)
    parsed = registry.Spec.parse(text)
    assert all(part in text for part in (parsed.name, *parsed.settings))
    for make in (_registry().make, lambda t: context.modules(t, _registry())):
        with contextlib.suppress(T2TError):
            make(text)
    with contextlib.suppress(T2TError):
        left, sampling = read_sampling(parsed, records.Sampling())
        assert set(left.settings) <= set(parsed.settings) and math.isfinite(sampling.temperature)
    named = registry.Registry("policy")
    named.add(text, str, text)
    for entry in named:
        assert entry.name.isascii() and entry.name.isprintable() and entry.summary.isprintable()
    linear(registry.Spec.parse, text)
    linear(lambda long: context.modules(long, _registry()), text)


READERS = (answer, instance, configuration, run, lines, manifest, thoughts, designer, endpoint, spec)
READERS += (worlds.board, worlds.move, kept.secret, kept.completion, kept.study, jobs.job, jobs.calls)
TARGETS: dict[str, Callable[[bytes], None]] = {target.__name__: target for target in READERS}
