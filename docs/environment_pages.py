"""Sphinx directives for the environments' pages.

    ```{environment} t2t_envs.frozen_lake.gym.gym_env:MAPFFrozenLakeEnv
    ```
shows a class docstring as a page: the environments' docstrings are Markdown, as in Gymnasium.

    ```{moving} solved
    ```
shows an episode that is played while the page is made: a function of this module, by name.
"""

import inspect
from importlib import import_module

import gymnasium as gym
import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

import t2t_envs  # noqa: F401 - registers the environments
from t2t_envs import tictactoe
from t2t_envs.frozen_lake import solve
from t2t_envs.frozen_lake.draw.svg import render_svg

LAKE = "MAPFFrozenLake-v0"
STYLE = "max-width:100%;height:auto"


def solved():
    """Four agents on an optimal way."""
    env = gym.make(LAKE, size=6, num_agents=4, require_wait=True)
    env.reset(seed=11)
    return render_svg(env.unwrapped.instance, solve(env.unwrapped.instance).paths, animate=True)


def random_play():
    """Agents that choose at random among what their masks allow, until some of them conflict."""
    env = gym.make(LAKE, size=5, num_agents=4).unwrapped
    env.reset(seed=3)
    env.action_space.seed(3)
    ended = False
    while not ended:
        *_, ended, _, _ = env.step(env.action_space.sample(tuple(env.action_masks())))
    return render_svg(env.instance, env.paths, animate=True)


def vector():
    """Eight environments of a vector, side by side, each with its own lake; every lake on an optimal way."""
    envs = gym.make_vec(LAKE, num_envs=8, vectorization_mode="vector_entry_point", size=5, num_agents=3, reuse=1).unwrapped
    envs.reset(seed=5)
    side, gap = 220, 12
    boards = []
    for index in range(8):
        lake = envs.instance(index)
        picture = render_svg(lake, solve(lake).paths, animate=True)
        x, y = index % 4 * (side + gap), index // 4 * (side + gap)
        box = picture[picture.index("viewBox") : picture.index("\"", picture.index("viewBox") + 9) + 1]
        inner = picture[picture.index(">") + 1 :]
        boards.append(f'<svg x="{x}" y="{y}" width="{side}" height="{side}" {box}>{inner}')
    width, height = 4 * side + 3 * gap, 2 * side + gap
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return head + "".join(boards) + "</svg>"


def game():
    """A whole game against an opponent half of whose moves are random."""
    env = gym.make("T2TTicTacToe-v0", p=0.5).unwrapped
    _, info = env.reset(seed=6)
    choose, ended = np.random.default_rng(6), False
    while not ended:
        cell = int(choose.choice(np.flatnonzero(info["action_mask"])))
        _, _, ended, cut, info = env.step(cell)
        ended = ended or cut
    return tictactoe.render_svg(env.instance, env._play.game, animate=True)


class EnvironmentPage(Directive):
    required_arguments = 1

    def run(self):
        module, _, name = self.arguments[0].partition(":")
        opening, mark, sections = inspect.getdoc(getattr(import_module(module), name)).partition("\n## ")
        # A section joins the page as soon as it is read, so what comes before the first one joins it here.
        self.state_machine.node += self._parsed(opening)
        return self._parsed(mark + sections)

    def _parsed(self, text):
        holder = nodes.section()
        self.state.nested_parse(StringList(text.splitlines(), source=self.arguments[0]), 0, holder, match_titles=True)
        return holder.children


class MovingPicture(Directive):
    required_arguments = 1

    def run(self):
        svg = globals()[self.arguments[0]]()
        return [nodes.raw("", svg.replace("<svg ", f'<svg style="{STYLE}" ', 1), format="html")]


def setup(app):
    app.add_directive("environment", EnvironmentPage)
    app.add_directive("moving", MovingPicture)
    return {"parallel_read_safe": True}
