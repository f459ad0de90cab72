"""A Sphinx directive that prints the plan of a preset, as `t2t run --preset NAME --dry-run --gpus GPUS` does.

    ```{plan} paper 4x80
    ```
"""

from docutils import nodes
from docutils.parsers.rst import Directive

from t2t_core.loop.preparation import prepare
from t2t_core.run.experiment import resolve
from t2t_core.run.gpus import read_gpus


class Plan(Directive):
    required_arguments = 2
    optional_arguments = 9  # overrides: training.processes=8

    def run(self):
        preset, gpus, *overrides = self.arguments
        designer = {} if preset != "api-designer" else {"designer": "checkpoint"}  # which wants no key here
        parts = prepare(resolve(preset, None, overrides, designer, {}), dry=True)
        text = parts.trainer.plan(parts.order, read_gpus(gpus))
        return [nodes.literal_block(text, text, language="text")]


def setup(app):
    app.add_directive("plan", Plan)
    return {"parallel_read_safe": True}
