"""One self-contained HTML page: the lake, a step slider, play and pause, trajectories, checks. It loads nothing.

A content security policy allows exactly the page's own script and style, by hash; no handler is inline, every text is
escaped, and the data travel as JSON that cannot end its element.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence

from t2t_core.records import Verdict
from t2t_core.text import plain_lines

from ..instance import Cell, Instance
from .scene import ALARM, INK, MUTED, PALETTE, Scene
from .svg import board, centre, svg_element, token

STYLE = f"""\
:root {{ color-scheme: light dark; --ink: {INK}; --muted: {MUTED}; --page: #f4f7fa; --card: #fff; --line: #d9e2ea;
  --mark: #fff3c4; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6edf3; --muted: #9fb0c0; --page: #10171e; --card: #18222c;
  --line: #2c3a47; --mark: #4a3f12; }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; padding: 1.5rem; background: var(--page); color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }}
main {{ max-width: 72rem; margin: auto; display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }}
h1 {{ max-width: 72rem; margin: 0 auto 1rem; font-size: 1.25rem; overflow-wrap: anywhere; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85em; }}
section {{ background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 1rem; }}
#stage {{ flex: 1 1 22rem; max-width: 42rem; }}
#facts {{ flex: 1 1 18rem; min-width: 0; }}
#stage svg {{ display: block; width: 100%; height: auto; max-height: 78vh; }}
.move {{ transition: transform .3s ease-in-out; }}
@media (prefers-reduced-motion: reduce) {{ .move {{ transition: none; }} }}
.crash circle {{ stroke: {ALARM}; stroke-width: 6; }}
.controls {{ display: flex; gap: .75rem; align-items: center; margin-top: .75rem; flex-wrap: wrap; }}
button {{ font: inherit; padding: .3rem .9rem; border-radius: 8px; border: 1px solid var(--line); background: var(--page);
  color: inherit; cursor: pointer; min-width: 5.5rem; }}
input[type=range] {{ flex: 1; min-width: 8rem; }}
output {{ font-variant-numeric: tabular-nums; color: var(--muted); }}
.wide {{ overflow-x: auto; max-height: 24rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .15rem .6rem; text-align: left; white-space: nowrap; }}
thead th {{ border-bottom: 2px solid var(--line); position: sticky; top: 0; background: var(--card); }}
tr.now td, tr.now th {{ background: var(--mark); }}
td.bad, .no {{ color: {ALARM}; font-weight: 700; }}
ul {{ list-style: none; padding: 0; margin: .5rem 0; }}
li {{ overflow-wrap: anywhere; }}
h2 {{ font-size: 1rem; margin: 1rem 0 .25rem; }}
h2:first-child {{ margin-top: 0; }}
.note {{ color: var(--muted); }}
@media (prefers-color-scheme: dark) {{ td.bad, .no {{ color: #ff7b7b; }} }}
"""

SCRIPT = """\
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [slider, button, label] = ["step", "play", "label"].map((id) => document.getElementById(id));
const rows = document.querySelectorAll("tbody tr"), last = data.places.length - 1;
let timer = null;
function show(step) {
  slider.value = step;
  label.textContent = "step " + step + " of " + last + data.said[step];
  data.places[step].forEach(([x, y], agent) => {
    const element = document.getElementById("agent-" + agent);
    element.setAttribute("transform", "translate(" + x + " " + y + ")");
    element.classList.toggle("crash", data.faulty[step].includes(agent));
  });
  rows.forEach((row, index) => row.classList.toggle("now", index === step));
}
function pause() { clearInterval(timer); timer = null; button.textContent = "Play"; }
function play() {
  if (Number(slider.value) >= last) show(0);
  button.textContent = "Pause";
  timer = setInterval(() => {
    show(Number(slider.value) + 1);
    if (Number(slider.value) >= last) pause();
  }, 700);
}
button.addEventListener("click", () => (timer === null ? play() : pause()));
slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
if (last === 0) { button.disabled = true; slider.disabled = true; }
show(0);
"""


def render_html(
    instance: Instance,
    paths: Sequence[Sequence[Cell]] | Mapping[int, Sequence[Cell]] | None = None,
    verdict: Verdict | None = None,
    title: str = "",
    notes: Sequence[tuple[str, str]] = (),
) -> str:
    """A whole page that plays the paths step by step, with the verdict's checks where one is given, and texts to unfold (title,
    text)."""
    scene = Scene.of(instance, paths)
    heading = html.escape(title or f"MAPF-FrozenLake {instance.id}".strip())
    tokens = "".join(token(scene, a, 0, attributes=f' id="agent-{a}" class="move"') for a in range(instance.num_agents))
    facts = _verdict(verdict) + _trajectories(scene) + "".join(map(_note, notes))
    policy = f"default-src 'none'; script-src {_hash(SCRIPT)}; style-src {_hash(STYLE)}; base-uri 'none'; form-action 'none'"
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
<section id="stage">
{svg_element(scene, board(scene) + tokens)}
<div class="controls">
<button id="play" type="button">Play</button>
<input id="step" type="range" min="0" max="{scene.steps}" value="0" step="1" aria-label="step">
<output id="label" for="step">step 0 of {scene.steps}</output>
</div>
</section>
<section id="facts">{facts}</section>
</main>
<script type="application/json" id="data">{_data(scene)}</script>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def _data(scene: Scene) -> str:
    """Per step the agents' places on the page, who is in conflict or in a hole, and what is said of it, as JSON without a `<`."""
    agents, steps = range(scene.instance.num_agents), range(scene.steps + 1)
    places = [[centre(scene.spot(agent, step)) for agent in agents] for step in steps]
    faulty = [sorted(scene.faulty_at(step)) for step in steps]
    conflicts, falls = {step for step, _ in scene.conflicts}, {step for step, *_ in scene.falls}
    said = [": conflict" * (step in conflicts) + ": fall" * (step in falls) for step in steps]
    return json.dumps({"places": places, "faulty": faulty, "said": said}).replace("<", "\\u003c")


def _note(note: tuple[str, str]) -> str:
    title, text = (html.escape(plain_lines(part)) for part in note)
    return f"<details><summary>{title}</summary><pre>{text}</pre></details>"


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    if verdict.valid:
        optimal = {True: "optimal", False: "not optimal", None: "no optimum stored"}[verdict.optimal]
        costs = ", ".join(f"{name.replace('_', ' ')} {cost}" for name, cost in verdict.costs.items())
        result = f"<p><strong>valid</strong>, {html.escape(optimal)}; {html.escape(costs)}</p>"
    else:
        result = '<p><strong class="no">not valid</strong></p>'
    lines = []
    for name, passed in verdict.checks.items():
        fault = verdict.faults.get(name)
        why = f": {html.escape(fault.message)}" if fault else ""
        mark = '<span class="yes">&#10003;</span>' if passed else '<span class="no">&#10007;</span>'
        lines.append(f"<li>{mark} {html.escape(name)}{why}</li>")
    others = [fault.message for name, fault in verdict.faults.items() if name not in verdict.checks]
    lines += [f'<li class="no">{html.escape(message)}</li>' for message in others]
    return f"<h2>Verdict</h2>{result}<ul>{''.join(lines)}</ul>"


def _trajectories(scene: Scene) -> str:
    if not scene.paths:
        agents = enumerate(zip(scene.instance.starts, scene.instance.goals, strict=True))
        items = "".join(f"<li>{_badge(a)} ({s[0]},{s[1]}) &rarr; ({g[0]},{g[1]})</li>" for a, (s, g) in agents)
        return f"<h2>Agents</h2><ul>{items}</ul>"
    head = "".join(f"<th>{_badge(agent)}</th>" for agent in scene.paths)
    rows = []
    for step in range(scene.steps + 1):
        wrong = scene.faulty_at(step)
        cells = "".join(_entry(scene, agent, step, agent in wrong) for agent in scene.paths)
        rows.append(f"<tr><th>{step}</th>{cells}</tr>")
    note = f'<p class="note">{scene.cut} more steps are not shown</p>' if scene.cut else ""
    table = f"<table><thead><tr><th>step</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<h2>Trajectories</h2><div class="wide">{table}</div>{note}'


def _entry(scene: Scene, agent: int, step: int, wrong: bool) -> str:
    path = scene.paths[agent]
    wrong = wrong or (agent, step) in scene.jumps
    text = f"({path[step][0]},{path[step][1]})" if step < len(path) else "&middot;"
    return f'<td class="bad">{text} !</td>' if wrong else f"<td>{text}</td>"


def _badge(agent: int) -> str:
    return (
        f'<svg class="badge" width="12" height="12" viewBox="0 0 12 12" aria-hidden="true"><circle cx="6" cy="6" r="6" '
        f'fill="{PALETTE[agent]}"/></svg> agent {agent}'
    )
