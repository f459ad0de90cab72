"""A run as a page: learning curves with each design as an event, configurations as heat maps, the designer's words beside its
edits, failures by type and group, examples, costs. A function of what the folder holds.

What terminal and Markdown show of a run is `run_document`; a page has more room, and is made to be looked at for longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_core.cells import CELLS
from t2t_core.records import Knob
from t2t_core.report.behaviour import MEASURES, analyze
from t2t_core.report.behaviour_document import with_observed
from t2t_core.report.charts import Lines, Series, Stacks
from t2t_core.report.document import (
    Beside,
    Block,
    Charts,
    Column,
    Document,
    Folded,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
    TableCell,
    Words,
    spaced,
)
from t2t_core.report.figures import Figure, share
from t2t_core.report.knobs import knob_figure
from t2t_core.report.learning import learning_charts, lived
from t2t_core.report.run_document import (
    bench_section,
    budget_table,
    document_title,
    run_lead,
    shared_section,
    training_section,
    validation_blocks,
)
from t2t_core.report.run_examples import examples
from t2t_core.report.summary import Changed, DesignSummary, RoundSummary, Share, Summary, round_summary, summarize
from t2t_core.run.declaration import Declaration, read_declaration
from t2t_core.run.round_files import RoundFiles, finished_rounds, open_run
from t2t_core.store import folders, jsonlines
from t2t_core.store.paths import SafePath

_STAGES = ("generate", "train", "validate", "design")


def page_document(path: Path | SafePath) -> Document:
    """The page of a run folder."""
    folder = SafePath.of(path)
    summary, (_, experiment) = summarize(folder), open_run(folder)
    declared = read_declaration(folder, experiment)
    arms = {"designed": folder} | ({"control": folder / "control"} if (folder / "control").exists() else {})
    rounds = {arm: list(finished_rounds(root)) for arm, root in arms.items()}
    knobs = {knob.name: knob for knob in declared.knobs}
    sections = [
        Section("Validation", list(_validation(summary, rounds, declared.group))),
        *_learning(rounds, summary),
        Section("Configurations", list(_configurations(summary.rounds, knobs, declared.group))),
        *(_design(folder, design, knobs) for design in summary.designs),
        *_failures(rounds["designed"], declared),
        *examples(rounds["designed"], experiment),
        *(bench_section(bench_set) for bench_set in (summary.bench.sets if summary.bench else ())),
        Section("Costs", list(_costs(summary, rounds["designed"], folder))),
        *training_section(summary.training),
        *shared_section(summary.shared),
        *_behaviour(folder),
        Section("Configuration, versions, seeds", [Folded("run.json", _manifest(folder))]),
    ]
    return Document(document_title(experiment), list(run_lead(summary, experiment)), sections)


def _manifest(folder: SafePath) -> str:
    return folders.document(folders.read_json(folder / folders.MANIFEST))


def _validation(summary: Summary, rounds: Mapping[str, Sequence[RoundFiles]], group: str) -> Iterator[Block]:
    """The totals of both arms over the rounds, then the table and the groups."""
    arms = {arm: [round_summary(files) for files in records] for arm, records in rounds.items()}
    most = max(map(len, arms.values()))
    if most > 1:
        series = [
            Series(f"{arm}: {metric}", [_total(getattr(record, metric)) for record in records], 2 * number + at)
            for number, (arm, records) in enumerate(arms.items())
            for at, metric in enumerate(("valid", "optimal"))
        ]
        yield Charts([Lines("totals by round, 95 % intervals", [str(n) for n in range(most)], series)])
    yield from validation_blocks(summary.rounds, group)


def _total(rate: Share) -> Figure | None:
    return None if rate.value is None else share(rate)


def _learning(rounds: Mapping[str, Sequence[RoundFiles]], summary: Summary) -> Iterator[Section]:
    designs = [design.after_round for design in summary.designs]
    first, others = learning_charts({arm: lived(records) for arm, records in rounds.items()}, designs)
    if first or others:
        note = Paragraph("A dotted line is a design: the updates to its right are on instances of the new configuration.", "soft")
        yield Section("Learning curves", [*([note] if designs else []), Charts(first or others)])
    if first and others:
        yield Section("More learning curves", [Charts(others)])


# --- configurations


def _configurations(rounds: Sequence[RoundSummary], knobs: Mapping[str, Knob], group: str) -> Iterator[Block]:
    """A heat map for each knob: groups down, rounds across, what a design changed in colour with how much."""
    if not rounds:
        return
    told = "The darker, the nearer to the knob's highest value. Marked: what the design before that round changed."
    yield Paragraph(told, "soft")
    names = next(iter(rounds[0].knobs.values()))
    yield Beside([[_heat_map(name, knobs.get(name), rounds, group)] for name in names])
    joint = [(r.round, g, values[CELLS]) for r in rounds for g, values in r.configuration.items() if values.get(CELLS)]
    if joint:
        yield Folded("Joint cells", "\n".join(f"round {index}, {name}: {jsonlines.dumps(cells)}" for index, name, cells in joint))


def _heat_map(name: str, knob: Knob | None, rounds: Sequence[RoundSummary], group: str) -> Table:
    values = [[record.knobs.get(g, {}).get(name) for record in rounds] for g in rounds[0].knobs]
    known = [value for row in values for value in row if value is not None]
    low, high = (knob.low, knob.high) if knob else (min(known, default=0.0), max(known, default=1.0))
    rows = []
    for g, row in zip(rounds[0].knobs, values, strict=True):
        cells = [_heated(knob, value, before, low, high) for value, before in zip(row, [row[0], *row], strict=False)]
        rows.append(Row([g, *cells]))
    return Table([Column(group, words=True), *(Column(f"round {r.round}") for r in rounds)], rows, spaced(name))


def _heated(knob: Knob | None, value: float | None, before: float | None, low: float, high: float) -> Figure:
    figure = knob_figure(knob, value, changed=value != before)
    if value is None:
        return figure
    note = ""
    if before is not None and value != before:
        scale = 100 if knob and knob.form == "percent" else 1
        note = f"{scale * (value - before):+.{figure.digits}f}"
    heat = (value - low) / (high - low) if high > low else None
    return Figure(figure.value, digits=figure.digits, unit=figure.unit, changed=figure.changed, heat=heat, note=note)


# --- designs


def _design(folder: SafePath, design: DesignSummary, knobs: Mapping[str, Knob]) -> Section:
    """The designer's words beside its edits and what Project made of them; folded, what it saw and replied."""
    cost = design.cost
    tokens = cost.prompt_tokens + cost.completion_tokens
    took = f"{cost.calls} calls, {tokens:,} tokens, ${cost.usd:.4f}" if cost.calls else "no calls"
    lead = Paragraph(f"{design.designer}: {design.outcome}; {len(design.changed)} values changed; {took}")
    words: list[Block] = [Paragraph("What it said", "strong"), Paragraph(design.summary or "Nothing.")]
    words += [Items([f"note: {note}" for note in design.notes])] if design.notes else []
    edits: list[Block] = [_edits(design.changed, knobs)] if design.changed else [Paragraph("Nothing was changed.", "soft")]
    if design.corrections:
        rows = [Row([c.knob, _short(c.proposed), _short(c.used), c.reason]) for c in design.corrections]
        heads = [Column(head, words=True) for head in ("knob", "proposed", "used", "why")]
        edits.append(Table(heads, rows, "Corrected by Project"))
    files = RoundFiles(folder, design.after_round)
    blocks: list[Block] = [lead, Beside([words, edits])]
    blocks.append(Folded("What the designer saw", folders.read_text(files.context)))
    if reply := files.read_proposal().raw:
        blocks.append(Folded("Its reply", reply))
    return Section(f"Design after round {design.after_round}", blocks)


def _edits(changed: Sequence[Changed], knobs: Mapping[str, Knob]) -> Table:
    rows = [
        Row([f"{c.group} {spaced(c.knob)}", *(_value(knobs, c.knob, value) for value in (c.before, c.after))])
        for c in changed
    ]
    return Table([Column("edit", words=True), Column("before"), Column("after")], rows, "What it changed")


def _value(knobs: Mapping[str, Knob], name: str, value: Any) -> TableCell:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return knob_figure(knobs.get(name), value) if number or value is None else Words(_short(value))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else jsonlines.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# --- failures and costs


def _failures(rounds: Sequence[RoundFiles], declared: Declaration) -> Iterator[Section]:
    """Under which check the answers of each round failed first, and in the last one by group."""
    told = {files.index: files.read_breakdown()["groups"] for files in rounds}
    failed = {check for groups in told.values() for counts in groups.values() for check in _first_failures(counts)}
    order = [check for check in declared.checks if check in failed]
    if not order:
        return
    last = told[max(told)]
    rows = [(f"round {index}", _became(groups.values(), order)) for index, groups in told.items()]
    by_group = [(name, _became([counts], order)) for name, counts in last.items()]
    parts = ["valid", *map(spaced, order), *(["other"] if any(parts.get("other") for _, parts in (*rows, *by_group)) else [])]
    charts = Charts([Stacks("by round", rows, parts), Stacks(f"round {max(told)}, by {declared.group}", by_group, parts)])
    columns = [Column(declared.group, words=True), *map(Column, ("answers", *parts))]
    made = [
        Row([name, f"{last[name]['answers']:,}", *(f"{counts.get(part, 0):,}" for part in parts)])
        for name, counts in by_group
    ]
    yield Section("Failures by first failed check", [charts, Table(columns, made, f"Round {max(told)}")])


def _became(groups: Any, order: Sequence[str]) -> dict[str, int]:
    """What became of the answers of these groups: valid, failed under a check, or something else (an error, say)."""
    every = list(groups)
    parts = {"valid": sum(counts["valid"] for counts in every)}
    parts |= {spaced(check): sum(_first_failures(counts).get(check, 0) for counts in every) for check in order}
    other = sum(counts["answers"] for counts in every) - sum(parts.values())
    return parts | ({"other": other} if other > 0 else {})


def _first_failures(counts: Mapping[str, Any]) -> dict[str, int]:
    """How many answers failed under which check first, as far as the breakdown says it."""
    told = counts.get("first_failures")
    return {check: n for check, n in told.items() if type(n) is int and 0 < n < 10**12} if isinstance(told, dict) else {}


def _costs(summary: Summary, rounds: Sequence[RoundFiles], folder: SafePath) -> Iterator[Block]:
    """What each round took: instances, training, time by stage and the design after it; then each arm in all."""
    spent = {design.after_round: design.cost for design in summary.designs}
    seconds = _seconds(folder)
    rows = []
    for files in rounds:
        trained, cost = files.read_training(), spent.get(files.index)
        counts = (files.read_generation().instances, trained.samples, trained.updates, trained.tokens)
        tokens = files.design_tokens() if cost else None
        design = [Figure(tokens, digits=0), Figure(cost.usd if cost else None, digits=4)]
        times = [Figure(seconds.get((files.index, stage)), digits=1) for stage in _STAGES]
        rows.append(Row([str(files.index), *(f"{count:,}" for count in counts), *design, *times]))
    heads = ("instances", "samples", "updates", "tokens", "design tokens", "design USD", *(f"{stage}, s" for stage in _STAGES))
    yield Table([Column("round", words=True), *map(Column, heads)], rows, "Round by round, the designed arm")
    yield budget_table(summary.budgets)


def _seconds(folder: SafePath) -> dict[tuple[int, str], float]:
    """How long each stage of each round took, over all sessions."""
    path, torn = folder / "log.jsonl", list[jsonlines.Torn]()
    seconds: dict[tuple[int, str], float] = {}
    for line in jsonlines.read(path, torn) if path.exists() else ():
        index, stage, took = (line.value.get(name) for name in ("round", "stage", "seconds"))
        if type(index) is int and isinstance(stage, str) and isinstance(took, (int, float)):
            seconds[index, stage] = seconds.get((index, stage), 0.0) + took
    return seconds


def _behaviour(folder: SafePath) -> Iterator[Section]:
    result = analyze(folder)
    if result["steps"]:
        columns = [Column("number", words=True), *(Column(f"after {step['after_round']}") for step in result["steps"])]
        columns.append(Column("formula", words=True))
        rows: list[list[TableCell]] = [
            [spaced(m.name), *(Figure(step[m.name], digits=3) for step in result["steps"]), m.formula]
            for m in MEASURES
        ]
        yield Section("Behaviour", [with_observed(columns, rows, result["observed"])])
