"""Sphinx directives of the page on jobs: the families with their figures, what of a family's job may be edited, and a job's form.

    ```{families}
    ```
    ```{bounds} draw-optimal
    ```
    ```{job-file}
    ```
"""

from docutils import nodes
from docutils.parsers.rst import Directive

from t2t_core.plugins import load
from t2t_jobs import job
from t2t_jobs.families import figures


def table(head, rows):
    """A plain table; the first column is code."""
    made = nodes.table()
    group = nodes.tgroup(cols=len(head))
    made += group
    for _ in head:
        group += nodes.colspec(colwidth=1)
    thead, tbody = nodes.thead(), nodes.tbody()
    thead += _row(head, code=False)
    for row in rows:
        tbody += _row(row)
    group += [thead, tbody]
    return made


def _row(cells, code=True):
    row = nodes.row()
    for number, cell in enumerate(cells):
        entry, text = nodes.entry(), nodes.paragraph()
        text += nodes.literal("", cell) if code and number == 0 else nodes.Text(cell)
        entry += text
        row += entry
    return row


class Families(Directive):
    def run(self):
        families, measured = load().families, figures.read()
        rows = []
        for name, measurement in measured.items():
            family = families.make(name)
            bases = ", ".join(f"{base} {score:.2f}" for base, score in measurement.bases.items())
            title = family.title + " (held out)" * family.held_out
            edited = f"{len(family.bounds)} values"
            best, gain = f"{measurement.best:.2f}", f"{measurement.gain:+.2f}"
            rows.append([name, title, bases, best, gain, f"{measurement.cpu_seconds:.0f}", edited])
        head = ["family", "teaches to", "untrained bases", "best known job", "gain", "CPU seconds", "may be edited"]
        return [table(head, rows)]


class Bounds(Directive):
    required_arguments = 1

    def run(self):
        family = load().families.make(self.arguments[0])
        rows = [[key, bound.words(), bound.description] for key, bound in family.bounds.items()]
        return [table(["key", "may be", "what it is"], rows)]


class JobFile(Directive):
    def run(self):
        text = job.__doc__.split(":\n\n", 1)[1].strip()
        return [nodes.literal_block(text, text, language="toml")]


def setup(app):
    app.add_directive("families", Families)
    app.add_directive("bounds", Bounds)
    app.add_directive("job-file", JobFile)
    return {"parallel_read_safe": True}
