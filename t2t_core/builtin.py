"""What t2t_core registers through the hooks, like any other plugin: its commands."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_commands(registry: Registry) -> None:
    registry.add("plugins", "t2t_core.cli.plugins:plugins", "What is loaded, from which distribution, what was refused.")
    registry.add("run", "t2t_core.cli.run:run", "The closed loop: generate, train, validate, design.")
    registry.add("design", "t2t_core.cli.design:design", "One design step on finished validations, without training.")
    registry.add("analyze", "t2t_core.cli.analyze:analyze", "How a designer behaved, as numbers.")
    registry.add("sweep", "t2t_core.cli.sweep:sweep", "A grid of runs: who designs, which context, seeds.")
    registry.add("report", "t2t_core.cli.report:report", "A run as one self-contained HTML page.")
    registry.add("generate", "t2t_core.cli.generate:generate", "Instances from a configuration, or answers to learn from.")
    registry.add("export", "t2t_core.cli.export:export", "Sets, or the instances of a file, in a form that others read.")
    registry.add("show", "t2t_core.cli.show:show", "An instance, alone or with an answer or a solution.")
    registry.add("solve", "t2t_core.cli.solve:solve", "Exact optima of the instances of a file, where a testbed has a solver.")
