"""Checks of how a testbed's answers are shown and compared: `picture` and `plan`."""

from __future__ import annotations

from xml.etree import ElementTree

from t2t_core.conversation import plan_of
from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Scored
from t2t_core.testing.base import calling, require, short


def check_shown(testbed: AnyTestbed, judged: Scored) -> None:
    """The plan of an answer can be counted, and its picture, if any, is one <svg> element; the same each time."""
    text = short(judged.response.text)
    with calling(f"plan({text})"):
        plans = [plan_of(testbed, judged.instance, judged.messages, judged.response.text) for _ in range(2)]
    try:
        hash(plans[0])
    except TypeError:
        require(False, f"plan({text}) cannot be counted: it is a {type(plans[0]).__name__}", next="return a tuple or a frozenset")
    require(plans[0] == plans[1], f"plan({text}) is another one the second time")
    with calling(f"picture({text})"):
        answer = judged.messages if testbed.turns > 1 else judged.response.text
        pictures = [testbed.picture(judged.instance, answer) for _ in range(2)]
    require(isinstance(pictures[0], str), f"picture({text}) is {type(pictures[0]).__name__}, not text")
    require(pictures[0] == pictures[1], f"picture({text}) is another one the second time")
    if pictures[0]:
        try:
            root = ElementTree.fromstring(pictures[0])
        except ElementTree.ParseError as error:
            require(False, f"picture({text}) is no XML: {error}", next="escape texts with html.escape")
            return
        require(root.tag == "{http://www.w3.org/2000/svg}svg", f"picture({text}) is a <{root.tag}>, not an <svg> with its xmlns")
