"""A Sphinx directive that shows a class docstring as a page: the environments' docstrings are Markdown, as in Gymnasium.

    ```{environment} t2t_envs.frozen_lake.gym.gym_env:MAPFFrozenLakeEnv
    ```
"""

import inspect
from importlib import import_module

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList


class EnvironmentPage(Directive):
    required_arguments = 1

    def run(self):
        module, _, name = self.arguments[0].partition(":")
        text = inspect.getdoc(getattr(import_module(module), name))
        holder = nodes.section()
        self.state.nested_parse(StringList(text.splitlines(), source=self.arguments[0]), 0, holder, match_titles=True)
        return holder.children


def setup(app):
    app.add_directive("environment", EnvironmentPage)
    return {"parallel_read_safe": True}
