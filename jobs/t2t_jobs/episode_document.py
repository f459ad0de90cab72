"""The report of an episode: the parts of its reward, its timeline call by call, and its job."""

from __future__ import annotations

from collections.abc import Iterator

from t2t_core.report.document import Block, Column, Document, Folded, Items, Paragraph, Row, Section, Table, Words
from t2t_core.report.figures import Figure
from t2t_core.store import folders
from t2t_core.store.paths import SafePath
from t2t_core.text import one_line
from t2t_jobs.episode import CALLS, RESULT, EpisodeResult
from t2t_jobs.reward import DEFAULT
from t2t_jobs.transcript import Did, Said, Transcript

_SHOWN = 160  # characters of a text in the timeline


def episode_document(folder: SafePath) -> Document:
    """The report's document, from the folder of a finished episode."""
    result = folders.read_record(folder / RESULT, EpisodeResult)
    log = Transcript(folder / CALLS)
    log.close()
    lead = [Paragraph(_in_short(result), "strong")]
    sections = [Section("Reward", _reward(result)), Section("Timeline", _timeline(log, result)), Section("The job", _job(result))]
    return Document(f"{result.agent} on {result.family}", lead, sections)


def _in_short(result: EpisodeResult) -> str:
    if result.valid_at is None:
        return f"No job was valid (ended by: {result.ended}); reward {result.total:.3f}."
    valid = f"Submission {result.valid_at} was valid"
    if result.post is None:
        return f"{valid}; the job died: {one_line(result.failure, 200)}. Reward {result.total:.3f}."
    return (
        f"{valid}; hidden score {result.post:.3f} after training, {result.best_pre or 0:.3f} for the best untrained base. "
        f"Reward {result.total:.3f}."
    )


def _reward(result: EpisodeResult) -> list[Block]:
    weights = {"validation": DEFAULT.validation, "quality": DEFAULT.quality, "speed": DEFAULT.speed}
    rows = [
        Row([part, Figure(weight), Figure(result.reward[part], digits=3), Figure(weight * result.reward[part], digits=3)])
        for part, weight in weights.items()
    ]
    rows.append(Row([Words("total", tone="strong"), "", "", Figure(result.total, digits=3)]))
    return [Table([Column("part", words=True), Column("weight"), Column("value"), Column("adds")], rows)]


def _timeline(log: Transcript, result: EpisodeResult) -> list[Block]:
    columns = [Column("second", words=True), Column("who", words=True), Column("what", words=True), Column("tokens")]
    rows = [Row([f"{event.at:.1f}", *cells]) for event, cells in _events(log)]
    if result.post is not None:
        rows.append(Row(["", "worker", f"trained in {result.cpu_seconds:.1f} CPU seconds, hidden score {result.post:.3f}", ""]))
    longer: list[Block] = [
        Folded(f"{did.tool} in turn {did.turn + 1}", did.text) for turn in log.did for did in turn if len(did.text) > _SHOWN
    ]
    return [Table(columns, rows), *longer]


def _events(log: Transcript) -> Iterator[tuple[Said | Did, list[str | Words]]]:
    for said, turn in zip(log.said, log.did, strict=True):
        tokens = (said.prompt_tokens or 0) + (said.completion_tokens or 0)
        yield said, ["agent", one_line(said.text, _SHOWN) or "(no words)", str(tokens) if tokens else ""]
        for did in turn:
            yield did, [Words(did.tool, tone="bad" if did.failed else ""), one_line(did.text, _SHOWN), ""]


def _job(result: EpisodeResult) -> list[Block]:
    blocks: list[Block] = []
    for submission in result.submissions:
        if submission.faults:
            blocks.append(Paragraph(f"Submission {submission.number}: {len(submission.faults)} faults."))
            blocks.append(Items([one_line(fault, 300) for fault in submission.faults]))
    if result.values:
        rows = [Row([name, str(value)]) for name, value in result.values.items()]
        blocks.append(Table([Column("what differs from the job to start from", words=True), Column("value", words=True)], rows))
    if result.pre:
        scores = {**result.pre, **({"after training": result.post} if result.post is not None else {})}
        blocks.append(Table([Column("", words=True), Column("hidden score")],
                            [Row([name, Figure(score, digits=3)]) for name, score in scores.items()]))  # fmt: skip
    return blocks or [Paragraph("No job came of it.")]
