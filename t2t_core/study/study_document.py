"""How a study reads: the gate first, then the one primary comparison, the others, every arm, and what was not as planned."""

from __future__ import annotations

from t2t_core.report.document import Block, Column, Document, Items, Paragraph, Row, Section, Table
from t2t_core.report.figures import Figure
from t2t_core.study.comparing import ArmResult, Difference, GateResult, StudyResult
from t2t_core.study.plan import Plan

ROLES = {"gate": "gate: lever", "same": "gate: other chance", "primary": "primary", "secondary": "secondary"}
_NOTE = (
    "Percentage points, paired on the instances; 95 % interval over seeds and instances. p: of no difference, of secondary ones "
    "after Holm. Detectable: the true difference that this spread finds in four of five studies. Equivalent: p of two one-sided "
    "tests at the margin. Improvement: the chance that a run of the first arm scores above one of the second."
)


def study_document(result: StudyResult) -> Document:
    """The document of a study whose arms are all done."""
    lead: list[Block] = [Paragraph(_gate(result), "bad" if result.leverage is False else "strong")]
    lead.append(Paragraph(_primary(result)))
    if result.deviations:
        lead.append(Paragraph(f"{len(result.deviations)} deviations from the plan, below.", "bad"))
    sections = [
        Section("Comparisons", [_comparisons(result), Paragraph(_NOTE, "soft")]),
        Section("Arms", _arms(result)),
    ]
    deviations = Items(list(result.deviations)) if result.deviations else Paragraph("None.")
    sections.append(Section("Deviations from the plan", [deviations]))
    return Document(result.title, lead, sections)


def _gate(result: StudyResult) -> str:
    if result.leverage is None:
        return "The plan has no gate."
    if result.leverage:
        return "The gate holds: here configurations matter, and designers can be told apart."
    return "No leverage at this budget: the gate does not hold, and no designer is ranked."


def gate_words(gate: GateResult, plan: Plan) -> str:
    """The gate's verdict in a few lines, for whoever waits for the study."""
    needed = {"gate": f"at least {plan.gate.at_least:g}, all above {plan.gate.above:g}" if plan.gate else ""}
    needed["same"] = f"all within {plan.margin:g}"
    lines = [f"the gate, over {len(gate.seeds)} seeds:"]
    lines += [f"  {d.arm} minus {d.against}: {_points(d)} points; needed: {needed[d.role]}" for d in gate.differences]
    end = "it holds: designers can be told apart" if gate.leverage else "it does not hold: no designer will be ranked"
    return "\n".join([*lines, f"  {end}"])


def _points(difference: Difference) -> str:
    low, high = difference.low, difference.high
    interval = "" if low is None or high is None else f" [{low:+.1f}, {high:+.1f}]"
    return f"{difference.value:+.1f}{interval}"


def _primary(result: StudyResult) -> str:
    difference = next(d for d in result.differences if d.role == "primary")
    estimate = f"{_points(difference)} points over {len(difference.seeds)} seeds"
    return f"Primary: {difference.arm} minus {difference.against}, {estimate}. {_said(difference, result.margin)}"


def _said(difference: Difference, margin: float) -> str:
    if difference.verdict in ("better", "worse"):
        return f"It is {difference.verdict}."
    if difference.verdict == "equivalent":
        return f"No difference: they are equivalent within {margin:g} points."
    if difference.verdict == "one designer":
        return "Both ended in the same bytes in every seed: they are one designer."
    if difference.verdict == "one seed":
        return "One seed has no interval."
    return f"Undecided: a true difference below {difference.detectable:.1f} points may well have been missed."


def _comparisons(result: StudyResult) -> Table:
    titles = ("points", "p", "detectable", "equivalent", "improvement", "identical seeds")
    columns = [Column("comparison", words=True), Column("role", words=True), *map(Column, titles), Column("verdict", words=True)]
    rows = []
    for d in result.differences:
        p = d.p if d.p_holm is None else d.p_holm
        figures = [Figure(d.value, d.low, d.high, 1, 1, signed=True), Figure(p, digits=3), Figure(d.detectable, digits=1)]
        figures += [Figure(d.p_equivalence, digits=3), Figure(d.improvement, digits=2)]
        rows.append(Row([f"{d.arm} - {d.against}", ROLES[d.role], *figures, f"{d.identical} of {len(d.seeds)}", d.verdict]))
    return Table(columns, rows)


def _arms(result: StudyResult) -> list[Block]:
    names = ("score", "interquartile", "area: updates", "area: tokens", "worst quarter", "forgetting")
    columns = [Column("arm", words=True), Column("designer", words=True), *map(Column, names)]
    rows = [
        Row(
            [
                arm.arm,
                arm.designer,
                Figure(arm.mean, arm.low, arm.high, 1, 1),
                *(Figure(v, digits=1) for v in (arm.interquartile_mean, arm.area_over_updates, arm.area_over_tokens)),
                *(Figure(v, digits=1) for v in (arm.worst_quarter, arm.forgetting)),
            ]
        )
        for arm in result.arms
    ]
    given = [Column("arm", words=True), *map(Column, ("tokens", "updates", "design tokens", "design USD", "failed designs"))]
    costs = [Row([a.arm, *_costs(a), str(a.designs_failed)]) for a in result.arms]
    twins = [f"{a.arm} and {', '.join(a.same_as)} ended in the same bytes in every seed." for a in result.arms if a.same_as]
    note = "Score: 95 % t interval over seeds. Areas: mean valid rate of the validations on the way. Costs: per seed."
    blocks: list[Block] = [Table(columns, rows), Table(given, costs, "What a seed took"), Paragraph(note, "soft")]
    return [*blocks, Items(twins)] if twins else blocks


def _costs(arm: ArmResult) -> list[Figure]:
    plain = [Figure(v, digits=0) for v in (arm.tokens, arm.updates, arm.design_tokens)]
    return [*plain, Figure(arm.design_usd, digits=4)]
