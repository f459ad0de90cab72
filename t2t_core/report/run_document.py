"""A run as a document: what `t2t run` prints at its end, `summary.md`, and the page of `t2t report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from t2t_core.cells import CELLS
from t2t_core.records import ASKED_AGAIN, Knob
from t2t_core.report.charts import Chart, Lines, Series
from t2t_core.report.document import (
    Block,
    Charts,
    Column,
    Document,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
    spaced,
)
from t2t_core.report.figures import DASH, Figure, percent, points, share
from t2t_core.report.knobs import knob_axis, knob_figure
from t2t_core.report.summary import Budget, DesignSummary, RoundSummary, Summary, round_summary, summarize
from t2t_core.report.training import END, TrainingSummary
from t2t_core.run.declaration import read_declaration
from t2t_core.run.experiment import Experiment
from t2t_core.run.round_files import PROPOSED, finished_rounds, open_run
from t2t_core.run.schemas import BenchSet, DifferenceRow
from t2t_core.store.paths import SafePath

POINTS = "Percentage points: the first minus the second on the same instances."


def run_document(path: Path | SafePath, summary: Summary | None = None) -> Document:
    """The document of a run folder; a pure function of what the folder holds."""
    folder = SafePath.of(path)
    summary = summarize(folder) if summary is None else summary
    _, experiment = open_run(folder)
    declared = read_declaration(folder, experiment)
    group, knobs = declared.group, {knob.name: knob for knob in declared.knobs}
    sections = [
        Section("Validation per round", list(validation_blocks(summary.rounds, group))),
        Section("Configurations", list(_configurations(summary.rounds, knobs, group))),
        *(bench_section(bench_set) for bench_set in (summary.bench.sets if summary.bench else ())),
        Section("What each arm was given", [budget_table(summary.budgets)]),
        *(_design(design) for design in summary.designs),
        *training_section(summary.training),
        *shared_section(summary.shared),
    ]
    return Document(document_title(experiment), list(run_lead(summary, experiment)), sections)


def document_title(experiment: Experiment) -> str:
    """The title of a run's report."""
    return f"{experiment.designer} designs {experiment.testbed}"


def run_lead(summary: Summary, experiment: Experiment) -> Iterator[Block]:
    """What stands first: the run's settings in short, designs that came to nothing, arms with unequal budgets."""
    names = ("context", "trainer", "policy", "seed")
    facts = ", ".join(f"{name} {getattr(experiment, name)}" for name in names)
    yield Paragraph(f"{facts}; {len(summary.rounds)} of {experiment.rounds} rounds are finished", "soft")
    lost = {o: n for o, n in Counter(design.outcome for design in summary.designs).items() if o not in PROPOSED}
    if lost:
        told = ", ".join(f"{count} {outcome}" for outcome, count in lost.items())
        yield Paragraph(f"of {len(summary.designs)} designs {told}: the configuration stayed, as the control's does", "bad")
    again = sum(ASKED_AGAIN in design.notes for design in summary.designs)
    if again:
        yield Paragraph(f"of {len(summary.designs)} designs {again} could not be read at first: {ASKED_AGAIN}", "soft")
    for line in summary.unequal:
        yield Paragraph(f"UNEQUAL BUDGETS, the arms do not compare: {line}", "bad")


def validation_blocks(rounds: Sequence[RoundSummary], group: str) -> Iterator[Block]:
    """The validation of each round as a table, percent in total and by group, and as two charts."""
    names = list(rounds[0].groups) if rounds else []
    columns = [Column("round", words=True), Column("valid, %", total=True), Column("optimal, %", total=True)]
    columns += [Column(f"valid {name}") for name in names]
    rows = [
        Row([str(r.round), share(r.valid), share(r.optimal), *(percent(r.groups.get(n, {}).get("valid"), 0) for n in names)])
        for r in rounds
    ]
    yield Table(columns, rows)
    if rounds:
        yield Charts([_rounds_chart(metric, rounds, group) for metric in ("valid", "optimal")])


def _rounds_chart(metric: str, rounds: Sequence[RoundSummary], group: str) -> Chart:
    groups = list(rounds[0].groups)
    series = [
        Series(f"round {r.round}", [percent(r.groups.get(name, {}).get(metric)) for name in groups], number)
        for number, r in enumerate(rounds)
    ]
    return Lines(f"validation: {metric}, by {group}", groups, series)


def _configurations(rounds: Sequence[RoundSummary], knobs: Mapping[str, Knob], group: str) -> Iterator[Block]:
    if not rounds:
        return
    rows = []
    for name, values in rounds[0].knobs.items():
        for knob, first in values.items():
            row, before = [], first
            for now in (r.knobs.get(name, {}).get(knob) for r in rounds):
                row.append(knob_figure(knobs.get(knob), now, changed=now != before))
                before = first if now is None else now
            rows.append(Row([f"{name} {spaced(knob)}", *row]))
        joint = [r.configuration.get(name, {}).get(CELLS, ()) for r in rounds]
        if any(joint):
            rows.append(Row([f"{name} joint cells", *(str(len(c)) if isinstance(c, list) else DASH for c in joint)]))
    yield Paragraph("Marked: changed by the design.", "soft")
    yield Table([Column(f"{group}, knob", words=True), *(Column(f"round {r.round}") for r in rounds)], rows)
    names = next(iter(rounds[0].knobs.values()))
    yield Charts([_knob_chart(name, knobs.get(name), rounds, group) for name in names])


def _knob_chart(name: str, knob: Knob | None, rounds: Sequence[RoundSummary], group: str) -> Chart:
    """A knob's value per group, a line per round."""
    groups = list(rounds[0].knobs)
    figures = [[knob_figure(knob, r.knobs.get(g, {}).get(name)) for g in groups] for r in rounds]
    series = [Series(f"round {r.round}", values, number) for number, (r, values) in enumerate(zip(rounds, figures, strict=True))]
    axis = knob_axis(knob, [figure for values in figures for figure in values])
    return Lines(f"configuration: {spaced(name)}, by {group}", groups, series, axis)


def run_charts(folder: Path | SafePath) -> dict[str, Chart]:
    """By file name: valid and optimal rate per group with a line per round, then each knob."""
    rounds = [round_summary(files) for files in finished_rounds(folder)]
    if not rounds:
        return {}
    declared = read_declaration(SafePath.of(folder), open_run(folder)[1])
    group, knobs = declared.group, {knob.name: knob for knob in declared.knobs}
    names = next(iter(rounds[0].knobs.values()))
    rates = {metric: _rounds_chart(metric, rounds, group) for metric in ("valid", "optimal")}
    return rates | {name: _knob_chart(name, knobs.get(name), rounds, group) for name in names}


def bench_section(table: BenchSet) -> Section:
    """The closing bench on one set: the arms' rates with intervals, their means, and paired differences."""
    rates, means = (list(table.rows[0].rates), list(table.rows[0].means)) if table.rows else ([], [])
    columns = [Column("arm", words=True), *(Column(f"{m}, %") for m in rates), *(Column(f"mean {spaced(m)}") for m in means)]
    rows = [Row([row.arm, *(share(row.rates[m]) for m in rates), *(Figure(row.means[m]) for m in means)]) for row in table.rows]
    blocks: list[Block] = [Table(columns, rows)]
    if table.differences:
        blocks += [_differences(table.differences), Paragraph(POINTS, "soft")]
    return Section(f"Bench: {table.name}, {table.instances} instances", blocks)


def _differences(differences: Sequence[DifferenceRow]) -> Table:
    columns = [Column("difference", words=True), Column("metric", words=True), Column("points", total=True)]
    columns += [Column("p"), Column("test", words=True)]
    rows = [
        Row([f"{d.arms[0]} - {d.arms[1]}", d.metric, points(d.value, d.low, d.high), Figure(d.p, digits=3), d.test])
        for d in differences
    ]
    return Table(columns, rows)


def budget_table(budgets: Mapping[str, Budget]) -> Table:
    """What each arm was given and used: rounds, instances, samples, updates, tokens, and the designer's calls."""
    names = [f.name for f in fields(Budget)]
    rows = [Row([arm, *(f"{value:,g}" if value < 1e6 else f"{value:,.0f}" for value in asdict(given).values())])
            for arm, given in budgets.items()]  # fmt: skip
    return Table([Column("arm", words=True), *(Column(spaced(name)) for name in names)], rows)


def _design(design: DesignSummary) -> Section:
    """What a designer did."""
    changed, tokens = len(design.changed), design.cost.completion_tokens
    blocks: list[Block] = [Paragraph(f"{design.designer} {design.outcome}, {changed} values changed; {tokens} tokens written")]
    notes = [f"note: {note}" for note in design.notes]
    notes += [f"corrected {c.knob}: {c.proposed} -> {c.used} ({c.reason})" for c in design.corrections]
    if notes:
        blocks.append(Items(notes))
    return Section(f"Design after round {design.after_round}", blocks)


def training_section(arms: Mapping[str, Sequence[TrainingSummary]]) -> Iterator[Section]:
    """A row per figure, a column per arm and round (round 0 is shared: once)."""
    shown = {
        f"{arm} round {record.round}": record
        for number, (arm, rounds) in enumerate(arms.items())
        for record in rounds
        if not number or record.round
    }
    columns = {name: record.figures for name, record in shown.items()}
    wrong = [
        f"{name}, {count} of {record.updates} updates: {text}"
        for name, record in shown.items()
        for text, count in record.warnings.items()
    ]
    names = dict.fromkeys(name for figures in columns.values() for name in figures)
    if names:
        rows = [Row([spaced(name), *(_ends(figures.get(name)) for figures in columns.values())]) for name in names]
        part = Paragraph(f"Means of the first and of the last {END:.0%} of a round's updates.", "soft")
        table = Table([Column("figure", words=True), *(Column(name) for name in columns)], rows)
        yield Section("Training", [part, table, *([Items(wrong)] if wrong else [])])


def _ends(pair: Sequence[float] | None) -> str:
    return DASH if pair is None else f"{pair[0]:.4g} → {pair[1]:.4g}"


def shared_section(arms: Mapping[str, Sequence[Mapping[str, Mapping[str, int]]]]) -> Iterator[Section]:
    """What a round's training instances share with each set, from the round with least to that with most."""
    names = list(dict.fromkeys(n for rounds in arms.values() for shared in rounds for counts in shared.values() for n in counts))
    rows = []
    for arm, rounds in arms.items():
        for kept in dict.fromkeys(name for shared in rounds for name in shared):
            counts = [[shared[kept].get(n, 0) for shared in rounds if kept in shared] for n in names]
            rows.append(Row([f"{arm}: {kept}", *(f"{min(c)}{DASH}{max(c)}" if min(c) < max(c) else f"{c[0]}" for c in counts)]))
    if names:
        title = "What training instances share with each set, apart from whole instances"
        yield Section(title, [Table([Column("arm and set", words=True), *(Column(spaced(n)) for n in names)], rows)])
