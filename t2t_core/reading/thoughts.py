"""Sets aside what a model thought, so that a draft never counts as what it said (our choice of marks and rule).

A server with a reasoning parser hides a model's thoughts; one without leaves them in the text. A reply must be worth the same
on both, so every reader of replies asks here first. Marks of thought are those that such servers know:

* `<think>…</think>`, and the same with `thinking`, `thought`, `thoughts`, `reasoning`, `reflection`, `scratchpad`, `monologue`,
  `rationale` and `cot`, also with other words joined on (`chain_of_thought`, `thinking_process`, `seed:think`), and with
  `antThinking`, `analysis`, `draft` and `scratch` (upper or lower case, attributes in the opening mark allowed, brackets also as
  `&lt;` and `&gt;`, or full-width); `[THINK]…[/THINK]`, `[THOUGHT]…[/THOUGHT]`; `◁think▷…◁/think▷`; any token of `think`,
  `thinking`, `thought` or `reasoning` (`<|begin_of_thought|>…<|end_of_thought|>`, `<|START_THINKING|>…<|END_THINKING|>`);
  `<|channel>…<channel|>` (Gemma 4), `<unused94>…<unused95>` (MedGemma), `[unused16]…[unused17]` (openPangu),
  `<|inner_prefix|>…<|inner_suffix|>` (Apertus) and `<details type="reasoning">…</details>` (Open WebUI).
* In a harmony transcript the channel `analysis`: from `<|channel|>analysis` to the message's end. Where the special tokens
  were dropped, such a text begins with the word "analysis", run together with the next, and the answer follows the last
  "assistantfinal".
* In words: from "Here is my thought process:" to "Here is my response:" (Granite), from "Here are my reasoning steps:" to
  "[BEGIN FINAL RESPONSE]" (Apriel), and from "Thinking..." to "...done thinking." on lines of their own (Ollama's terminal); only
  where both stand in the text, for anybody may write one of them.

A mark ends only what a mark of its own kind began. A thought without an end runs to the end of the text. An end without a
beginning ends a thought that began with the text (chat templates often open it in the prompt).
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(
    r"""
      (?:<|&lt;|＜)(?P<tag>/?+(?:(?:[a-z0-9]{1,16}[_:-]){0,3}
        (?:think(?:ing)?+|thoughts?+|reasoning|reflections?+|scratchpad|monologue|rationale|cot)(?:[_:-][a-z0-9]{1,16}){0,3}
        |antthinking|analysis|drafts?+|scratch))
        (?:\s[^<>&＞\n]{0,60}+)?+(?<!/)(?:>|&gt;|＞)
    | \[(?P<square>/?+)(?:THINK|THOUGHT)\]
    | ◁(?P<triangle>/?+)think▷
    | <\|(?P<token>/?+(?:[a-z]{1,12}_){0,3}(?:think(?:ing)?|thought|reasoning)(?:_[a-z]{1,12}){0,3})\|>
    | <\|inner_(?P<inner>prefix|suffix)\|>
    | (?P<gemma><\|channel>|<channel\|>)
    | <unused(?P<unused>94|95)>
    | \[unused(?P<pangu>16|17)\]
    | <(?P<details>/details|details\s[^<>\n]{0,80}?type="reasoning"[^<>\n]{0,80}+)>
    | (?P<header>(?:<\|start\|>[^<\n]{0,40}+)?+<\|channel\|>\s{0,4}+(?P<channel>[a-z]{1,20}+)[^<\n]{0,100}+(?:<\|message\|>)?+)
    | <\|(?P<message>end|return|call|start|message)\|>(?:(?<=<\|start\|>)[a-z]{1,20}+(?=<\|))?+
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_IN_WORDS = (
    (
        re.compile(r"^here(?:['’]s| is| are) my (?:thought process|reasoning steps):", re.IGNORECASE | re.MULTILINE),
        re.compile(r"\bhere(?:['’]s| is) my response:|\[begin final response\]", re.IGNORECASE),
    ),
    (
        re.compile(r"^thinking\.\.\.$", re.IGNORECASE | re.MULTILINE),
        re.compile(r"^\.\.\.done thinking\.$", re.IGNORECASE | re.MULTILINE),
    ),
)
_BEGINS = re.compile(r"\s*+analysis(?=\w)", re.IGNORECASE | re.ASCII)
_FINAL = "assistantfinal"
_SIGNS = (
    *("think", "thought", "reasoning", "<|", "|>", "unused", "analysis", "scratch"),
    *("monologue", "cot", "reflection", "rationale", "draft"),
)
_HARMONY, _DETAILS = "harmony", "details"
_MESSAGE = "<|message|>"  # stands where another message begins: on a line of its own


class Said(NamedTuple):
    """A reply without its thoughts; `unfinished`: it ends within one."""

    text: str
    unfinished: bool = False


def set_aside_thoughts(text: str) -> Said:
    """What a model said, its thoughts set aside. Time is linear in the length of the text."""
    if not _may_hold_thoughts(text):
        return Said(text)
    if _BEGINS.match(text):
        before, final, after = text.rpartition(_FINAL)
        if final:
            text = after
        elif text.lstrip()[len("analysis")].isupper():  # "analysisWe need to": cut off before its answer
            return Said("", unfinished=True)
    for begins_in_words, ends_in_words in _IN_WORDS:
        if (begin := begins_in_words.search(text)) and (end := ends_in_words.search(text, begin.end())):
            text = text[: begin.start()] + text[end.end() :]
    kept: list[str] = []
    thought: str | None = None  # the kind of the one that is open
    position, spoken = 0, False
    for mark in _MARK.finditer(text):
        kind, begins, ends = _kind(mark)
        if kind == _DETAILS and ends and thought != kind:
            continue  # most of them fold something else away
        if thought is None:
            kept.append(text[position : mark.start()])
            if mark["header"] and not begins:
                kept += [_MESSAGE] * spoken
                spoken = True
            position = mark.end()
            if begins:
                thought = kind
            elif kind != _HARMONY:
                kept.clear()  # it began with the text
        elif kind == thought and ends:
            thought, position = None, mark.end()
    if thought is None:
        kept.append(text[position:])
    messages = "".join(kept).split(_MESSAGE)
    return Said("\n".join(filter(None, messages)) if len(messages) > 1 else messages[0], thought is not None)


def _may_hold_thoughts(text: str) -> bool:
    """Whether any mark can stand in the text: much quicker to see than where."""
    low = text.lower()
    return any(sign in low for sign in _SIGNS)


def _kind(mark: re.Match[str]) -> tuple[str, bool, bool]:
    """The kind of a mark, and whether it begins or ends a thought of that kind."""
    name = mark.lastgroup or ""
    written = mark[name].lower()
    if name == "message":
        return _HARMONY, False, written != "message"
    if name == "header":
        name, ends = _HARMONY, mark["channel"].lower() != "analysis"
    elif name == "tag":
        name, ends = written.removeprefix("/"), written.startswith("/")
    elif name == "token":
        ends = written.startswith("/") or "end" in written.split("_")
    else:
        ends = written in ("/", "<channel|>", "95", "17", "suffix", "/details")
    return name, not ends, ends
