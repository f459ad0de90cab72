"""The small moving picture of an answer: it agrees with the rules, and every answer gives a single SVG."""

from __future__ import annotations

from xml.etree import ElementTree

from t2t_envs.frozen_lake import Instance, format_answer, solve, testbed
from t2t_envs.frozen_lake.draw.moving import render_moving
from t2t_envs.frozen_lake.draw.svg import render_svg

SVG = "{http://www.w3.org/2000/svg}"
LAKE = Instance(size=3, holes=[(1, 1)], starts=[(0, 0), (0, 2)], goals=[(0, 2), (0, 0)], id="pair")


def count(picture: str, tag: str, **attributes: str) -> int:
    elements = ElementTree.fromstring(picture).iter(f"{SVG}{tag}")
    return sum(all(element.get(name.replace("_", "-")) == value for name, value in attributes.items()) for element in elements)


def test_agents_move_and_a_conflict_has_its_ring() -> None:
    colliding = render_moving(LAKE, [[(0, 0), (0, 1), (0, 2)], [(0, 2), (0, 1), (0, 0)]])
    assert count(colliding, "animateTransform") == 2 and count(colliding, "circle", r="13") == 1
    solved = render_moving(LAKE, solve(LAKE).paths)
    assert count(solved, "animateTransform") == 2 and count(solved, "circle", r="13") == 0
    still = render_moving(LAKE)
    assert count(still, "animateTransform") == 0 and count(still, "circle", r="9") == 2
    fallen = render_moving(LAKE, [[(0, 0), (1, 0), (1, 1)], [(0, 2)]])
    assert count(fallen, "circle", r="13") == 1


def test_the_testbed_draws_any_answer_and_small() -> None:
    world = testbed.make()
    instance = world.load_set("4agents").instances[-1]
    paths = solve(instance).paths
    for answer in ("", "no idea", "Agent 0: (99,99) -> (0,0)", "Agent 7: (0,0)", format_answer(paths)):
        assert ElementTree.fromstring(world.picture(instance, answer)).tag == f"{SVG}svg"
    assert len(world.picture(instance, format_answer(paths))) < 0.6 * len(render_svg(instance, paths, animate=True))
