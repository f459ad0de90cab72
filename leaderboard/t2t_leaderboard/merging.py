"""Join bench folders that each asked a part of the same questions (`t2t bench --shard i/n`).

The result is what one bench would have left: the same answers.jsonl and the same leaderboard, byte for byte if the policies are
deterministic. The logs keep the order in which the answers arrived, folder by folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import ANSWERS, LOG, AnswerIndex
from t2t_core.evaluation.export import export
from t2t_core.store import folders, fresh, jsonlines
from t2t_core.store.paths import SafePath
from t2t_leaderboard import rescoring, runner
from t2t_leaderboard.folder import KIND, Bench, Row, lines, read_bench
from t2t_leaderboard.records import Board

_SAME = ("policy", "label", "sampling", "describe", "prompts_sha256", "limit")


def merge(sources: Sequence[Path], out: Path, reported: bool = True) -> tuple[Board, rescoring.Verification]:
    """Join several bench folders into a new one, whole or not at all, and return its leaderboard. If two of them answered a
    question, the answer of the first is kept.

    Raises:
        T2TError: fewer than two folders, folders of different questions, rows that differ in more than their answers, or an
            `out` that holds something already.
    """
    if len(sources) < 2:
        raise T2TError("there is nothing to merge", next="t2t merge shard-1 shard-2 --out whole")
    benches = [read_bench(path) for path in sources]
    first, target = benches[0], Path(os.path.abspath(out))
    folder = SafePath(target.parent) / target.name
    for other in benches[1:]:
        folders.same_settings(first.written, other.written, other.folder / folders.MANIFEST, "bench")
    if folder.exists() and (not folder.is_dir() or folder.entries()):
        raise T2TError("the folder holds something already", where=str(folder), next="give --out a new one")
    fresh.remove_leftovers_of(folder.path)
    with folders.building(folder) as whole:  # or nothing: the same command could not continue from half of it
        folders.open_manifest(whole, KIND, first.written, "bench", session={"reader": first.testbed.reader})
        for record, instances in zip(first.sets, first.stored, strict=True):
            folders.write_atomic(whole / "instances" / f"{record.name}.jsonl", lines(instances))
        parts: dict[str, list[tuple[Bench, Row]]] = {}
        for bench in benches:
            for row in bench.rows():
                parts.setdefault(row.name, []).append((bench, row))
        for name, rows in parts.items():
            _merge_row(first, rows, whole / "rows" / name)
        return runner.write(whole, reported)


def _merge_row(whole: Bench, rows: Sequence[tuple[Bench, Row]], folder: SafePath) -> None:
    facts: dict[str, Any] = {**rows[0][1].written, "limit": rows[0][1].limit, "reader": whole.testbed.reader}
    for _, row in rows[1:]:
        folders.same_settings(_lasting(facts), _lasting({**row.written, "limit": row.limit}), row.folder / "row.json", "row")
    evaluation = whole.evaluation(rows[0][1].sampling)
    ids, samples, turns = [instance.id for instance in evaluation.instances], evaluation.samples, evaluation.testbed.turns
    taken = _owners([row.folder / LOG for _, row in rows], ids, samples, turns)
    position = {name: number for number, name in enumerate(ids)}
    with jsonlines.Appender(folder / LOG) as log:
        for number, (_, row) in enumerate(rows):
            for line in jsonlines.read(row.folder / LOG, torn=[]) if (row.folder / LOG).exists() else ():
                if taken[position[line.value["instance"]] * samples + line.value["sample"]] == number:
                    log.append(line.value)
    sessions = [session for _, row in rows for session in row.record.sessions]
    folders.write_json(folder / "row.json", {**facts, **({"sessions": sessions} if sessions else {})})
    with closing(AnswerIndex(folder / LOG, ids, samples, turns)) as index:
        export(evaluation, index, folder / ANSWERS)


def _lasting(facts: Mapping[str, Any]) -> dict[str, Any]:
    described = {name: value for name, value in facts["describe"].items() if name != "transport"}
    return {**{name: facts.get(name) for name in _SAME}, "describe": described}


def _owners(logs: Sequence[SafePath], ids: Sequence[str], samples: int, turns: int) -> list[int]:
    """For every question, the number of the log whose lines count: the first with an answer, else the last that asked it."""
    owners, answered = [-1] * (len(ids) * samples), [False] * (len(ids) * samples)
    position = {name: number for number, name in enumerate(ids)}
    for number, path in enumerate(logs):
        if not path.exists():
            continue
        with closing(AnswerIndex(path, ids, samples, turns)) as index:
            asked = {position[r.value["instance"]] * samples + r.value["sample"] for r in jsonlines.read(path, torn=[])}
            for question in asked:
                if not answered[question]:
                    owners[question], answered[question] = number, index.answered(question)
    return owners
