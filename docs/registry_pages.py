"""A Sphinx directive that lists what the registry holds, so that the page cannot go stale.

    ```{registry} policies
    ```
"""

from docutils import nodes
from docutils.parsers.rst import Directive

from t2t_core.plugins import OWN, Plugins, load


class RegistryTable(Directive):
    required_arguments = 1

    def run(self):
        kind = self.arguments[0]
        if kind not in Plugins().registries:
            raise self.error(f"no such registry: {kind}")
        items = []
        for entry in load().registries[kind]:
            if not entry.distribution.startswith(OWN):
                continue  # the page is about what the suite ships, whatever else is installed
            term = nodes.term("", "", nodes.literal("", entry.name))
            items.append(nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", entry.summary))))
        return [nodes.definition_list("", *items)]


def setup(app):
    app.add_directive("registry", RegistryTable)
    return {"parallel_read_safe": True}
