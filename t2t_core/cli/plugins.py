"""`t2t plugins`: what is loaded, which distribution it comes from, and what was refused."""

from __future__ import annotations

import json

import click

from t2t_core.plugins import installed


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plugins(as_json: bool) -> None:
    """Show what is loaded, which distribution it comes from, and what was refused."""
    plugins = installed()
    if as_json:
        names = {
            kind: [{"name": e.name, "summary": e.summary, "distribution": e.distribution} for e in registry]
            for kind, registry in plugins.registries.items()
        }
        click.echo(json.dumps({"loaded": plugins.loaded, "refused": plugins.refused, **names}, indent=2))
        return
    for kind, registry in plugins.registries.items():
        entries = list(registry)
        click.echo(f"\n{kind}")
        width = max((len(e.name) for e in entries), default=0)
        for e in entries:
            click.echo(f"  {e.name:<{width}}  {e.summary}  [{e.distribution}]")
    click.echo("\nrefused" if plugins.refused else "\nnothing was refused")
    for refusal in plugins.refused:
        click.echo(f"  {refusal}")
