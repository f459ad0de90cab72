"""One self-contained HTML page: the boards of a game, its transcript word for word, and the verdict. It loads nothing and runs
nothing: a content security policy allows the page's own style alone, and every text is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape

from t2t_core.records import Message, Verdict
from t2t_core.text import plain_lines

from ..game import Game
from ..instance import Instance
from .frames import opponent_text, result_text
from .svg import render_svg

STYLE = """\
:root { color-scheme: light dark; --ink: #1c2733; --muted: #5b6b7a; --page: #f4f7fa; --card: #fff; --line: #d9e2ea;
  --policy: #e3f1f8; --alarm: #d31820; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --muted: #9fb0c0; --page: #10171e; --card: #18222c;
  --line: #2c3a47; --policy: #16303f; --alarm: #ff7b7b; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.5rem; background: var(--page); color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
main, h1 { max-width: 64rem; margin: 0 auto 1rem; }
h1 { font-size: 1.25rem; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 1rem; margin-bottom: 1rem; }
.boards { overflow-x: auto; }
.boards > svg { display: block; }
p { margin: .25rem 0; }
ul { list-style: none; padding: 0; margin: .5rem 0 0; }
.said { border: 1px solid var(--line); border-radius: 10px; padding: .5rem .75rem; margin: .5rem 0; }
.said.assistant { background: var(--policy); margin-left: 3rem; }
.said.user, .said.tool, .said.system { margin-right: 3rem; }
.who { color: var(--muted); font-size: .8rem; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: .9rem/1.4 ui-monospace, monospace; }
.no { color: var(--alarm); font-weight: 700; }
"""


def render_html(
    instance: Instance, game: Game, verdict: Verdict, transcript: Sequence[Message], title: str = ""
) -> str:
    """A whole page. `transcript` is all that was said, the environment's opening first."""
    heading = escape(plain_lines(title or f"Tic-tac-toe {instance.id}".strip()))
    policy = f"default-src 'none'; style-src {_hash(STYLE)}; base-uri 'none'; form-action 'none'"
    opponent = f"{opponent_text(instance)}; game seed {instance.seed}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{heading}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{heading}</h1>
<main>
<section><h2>{escape(result_text(game))}</h2><p>{escape(opponent)}</p>
<div class="boards">{render_svg(instance, game)}</div></section>
<section><h2>Verdict</h2>{_verdict(verdict)}</section>
<section><h2>Transcript</h2>{"".join(map(_said, transcript))}</section>
</main>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def _verdict(verdict: Verdict) -> str:
    said = ("valid, optimal" if verdict.optimal else f"valid, {verdict.cost} half points given away") if verdict.valid else ""
    lines = []
    for name, passed in verdict.checks.items():
        fault = verdict.faults.get(name)
        why = f": {escape(fault.message)}" if fault else ""
        mark = "&#10003;" if passed else '<span class="no">&#10007;</span>'
        lines.append(f"<li>{mark} {escape(name)}{why}</li>")
    return (f"<p>{said}</p>" if said else '<p class="no">not valid</p>') + f"<ul>{''.join(lines)}</ul>"


def _said(message: Message) -> str:
    who = "policy" if message.role == "assistant" else "environment"
    text = escape(plain_lines(message.content))
    return f'<div class="said {escape(message.role)}"><div class="who">{who}</div><pre>{text}</pre></div>'
