"""Splits an answer's text into lines of tokens. Every character belongs to a token, to markup or to white space, so nothing
between two cells goes unnoticed.

Work and memory are linear in the length of the text, because every pattern is possessive or bounded and a coordinate of many
digits is never turned into a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

Cell = tuple[int, int]
Path = tuple[Cell, ...]
Label = int | str

FAR = 1_000_000  # replaces any longer coordinate, positive or negative: it is beyond every grid
_DIGITS = 6

CELL, BARE, LABEL, STEP, BULLET, NUMBER = "cell", "bare", "label", "step", "bullet", "number"  # BARE: a cell without brackets
ARROW, COMMA, DASH, PIPE, COLON = "arrow", "comma", "dash", "pipe", "colon"
NEUTRAL, WAIT, WORD, STOP, FENCE = "neutral", "wait", "word", "stop", "fence"
ALIGN = "align"  # LaTeX's `&`, which may follow a label
CELLS = (CELL, BARE)
SCRAP = "scrap"  # has no known meaning in a path
RUIN = "ruin"  # meant as one or several cells, but malformed: (1 2), (1,2,3), (2,0 -> 2,1)


class Token(NamedTuple):
    """`value` is the cell, the label or the number; `text` is how it was written."""

    kind: str
    value: Any
    text: str


_NUMBER = r"-?+[0-9]++"
_ROW = r"(?:(?:row|r)\s{0,3}+[=:]?+\s*+)?+" + _NUMBER
_COLUMN = r"(?:(?:column|col|c)\s{0,3}+[=:]?+\s*+)?+" + _NUMBER
_INSIDE = rf"\s*+{_ROW}\s*+,\s*+{_COLUMN}\s*+(?:\\right)?+"
_ARROWS = "→⇒⟶⟹➔➜➝➞➡⮕▶►▸⟼↦⇢⇨➤➙➛➠🡒⭢⟾⇝"
_LABELLED = r"[ \t]{0,4}+(?:[*_`\"'][ \t]{0,2}+){0,4}+"  # allowed between a short label and its colon
_TOKEN = re.compile(
    rf"""
      (?P<cell>\({_INSIDE}\) | \[{_INSIDE}\] | \{{{_INSIDE}\}} | <{_INSIDE}>
        | \[[ ]?{_NUMBER}[ ]?\][ ]?\[[ ]?{_NUMBER}[ ]?\]
        | \b(?:row[ ]?|r){_NUMBER}[, ]{{0,2}}+(?:col(?:umn)?[ ]?|c){_NUMBER}(?!\w))
    | (?P<swapped>\(\s*+(?:column|col|c)\s{{0,3}}+[=:]?+\s*+{_NUMBER}\s*+,\s*+(?:row|r)\s{{0,3}}+[=:]?+\s*+{_NUMBER}\s*+\))
    | (?P<arrow>[-=–—~]{{1,3}}+(?:\[?+[lrud]\]?+|left|right|up|down)[-=–—~]{{1,3}}+> | [-=–—~]{{0,3}}+(?:>|&gt;)
        | [{_ARROWS}](?:(?:left|right|up|down|[lrud])[{_ARROWS}])?+ | &(?:rarr|\#8594|\#x2192); | \\x?(?:long)?rightarrow\b
        (?:\{{(?:\\text\{{)?(?:[lrud]|left|right|up|down)?\}}{{1,2}})?+
        | \\to\b)
    | (?P<newline>\n)
    | (?P<fence>```[a-z]{{0,20}}+(?=\s|$))
    | <(?:agent|robot)(?:[ ](?:id|index|number|name))?+[ _=-]?+["']?+(?:agent[ _]?+)?+(?P<tag_label>[0-9]{{1,4}})["']?+[ ]?+>
    | (?P<markup></?[a-z][^<>\n]{{0,20}}+> | <\|[^<>|\n]{{1,40}}+\|> | \\[a-z]{{1,20}}+ | \\.
      | [*_`"'“”‘’«»$#@•‣◦▪●∙·\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0e\ufe0f\ufeff])
    | (?P<bullet>^[ \t]{{0,8}}+[0-9]{{1,4}}+[.):](?=\s))
    | (?:\b(?:path|route|plan)[ ](?:for|of)[ ]|(?<!\w[ ])\bfor[ ]|(?:(?<!\w[ ])|(?<=\\item[ ]))(?:\b|(?<=__)))
      (?:agente?|robot|агент|робот|智能体|代理|机器人|エージェント|ロボット|에이전트|로봇)(?:-(?=[0-9])|[ \t_\#}}]{{0,3}}+)
      (?P<bracket>[(\[{{](?=[0-9]{{1,4}}[)\]}}]))?+(?P<label>-?+[0-9]++|[a-z](?=[ \t*]{{0,4}}+:))(?(bracket)[)\]}}])
      (?:的(?:最终|最优)?+(?:路径|路线)|の(?:経路|パス)|의[ ]?(?:경로))?+(?!(?!__)\w)
      (?:['’]s)?+(?:[\s*_:,"`'-]{{1,6}}+(?:(?:final|optimal|shortest|planned|full|complete|revised|corrected|updated|new)[ ])?+
        (?:path|route|trajectory|plan|moves|sequence|schedule|is)\b){{0,3}}+
      (?:[ ](?:follows|takes|travels)(?:[ ](?:the|this)[ ](?:path|route))?+(?=[ \t*_]{{0,4}}+:))?+
      (?:[ ]from[ ]\({_INSIDE}\)[ ]to[ ]\({_INSIDE}\)(?=[ \t*_]{{0,4}}+:))?+
      (?:[ \t*_]{{0,4}}+\((?:[^()\n]{{1,60}}+|\([^()\n]{{0,20}}+\)){{0,8}}+\)(?=[ \t*_]{{0,4}}+:))?+
    | (?<![\w.])[ar]_?(?P<short_label>[0-9]{{1,2}}+)(?={_LABELLED}(?:[:=|(\[]|(?:is[ ])?at[ ]?[(\[]|$))
    | (?<![\w.])(?:(?:time[ _-]?)?(?:steps?|time|tick|turn)[ \t_\#=]{{0,3}}+|t[ ]?=[ ]?|t)(?P<step>[0-9]{{1,4}}+)(?!\w)
    | (?<![\w.,])(?P<mark>[0-9]{{1,4}}+):(?=[ ]?[(\[])
    | (?P<wait>[(\[](?:wait|stay|paus|hold)(?:e|s|es|ing)?+[ ]for[ ](?:agent|robot|[ar])[ _]?[0-9]{{1,2}}+
        (?:[ ]to[ ](?:pass|move|clear|leave|go)(?:[ ](?:by|first|away|through))?+)?+[)\]])
    | (?P<neutral>\([lrud]\) | \b(?:moves?|moved|moving|go|goes|going)(?:[ ](?:one|1)[ ](?:cell|step))?+
        (?:[ ](?:to[ ]the[ ])?(?:left|right|up|down|north|south|east|west))?+[ ]to\b)
    | (?<![\w.,])(?P<row>-?+[0-9]++)[ \t]*+,[ \t]*+(?P<column>-?+[0-9]++)(?![\w.]|[ \t]*+,[ \t]*+-?[0-9])
    | (?P<ruin>[(\[{{<]\s*+-?+[0-9](?:[^()\[\]{{}}<>\n]{{0,60}}+[)\]}}>] | [0-9 \t,.;-]{{0,60}}+))
    | (?P<word>[^\W_]++)
    | (?P<scrap>\.{{2,}}+ | … | <- | ←)
    | (?P<comma>[,;])
    | (?P<pipe>\|)
    | (?P<dash>[-–—=~]++)
    | (?P<colon>:)
    | (?P<align>&)
    | (?P<stop>[.!?])
    | [()\[\]{{}}]
    | (?P<other>\S)
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_INTEGER = re.compile(_NUMBER)
# Markup of HTML, LaTeX and chat templates that only formats text. Any other (`<wait>`, `\\ldots`) may carry meaning.
_MARKUP = re.compile(
    r"</?(?:a|b|i|u|s|em|strong|code|pre|p|br|hr|h[1-6]|div|span|ul|ol|li|dl|dt|dd|tt|kbd|samp|small|big|sub|sup|mark|font|center"
    r"|blockquote|details|summary|table|thead|tbody|t[rhd]|section|article|body|html|xml|agents?|robots?|paths?|route|cells?|pos|position"
    r"|coords?|coordinates?|answers?|solutions?|final|final_answer|result|response|output|plan|del|strike|ins|think|reasoning"
    r")(?:\s[^<>\n\d]{0,20})?/?>"
    r"|<\|(?!wait|pause|delay|hold|stay|repeat)[^<>|\n\d]{1,40}\|>"
    r"|\\(?:text[a-z]{0,6}|math[a-z]{0,6}|left|right|boxed|fbox|q?quad|item|begin|end|bf|rm|it|tt|sf|displaystyle|[bB]igg?[lrm]?|lbrace|rbrace"
    r"|langle|rangle|lparen|rparen|newline|n|t|hspace|vspace|hfill|noindent|par|small|large|Large|bullet|cdot|mbox|hbox|mathrm|operatorname"
    r"|underline|emph|label|section|subsection|paragraph|fill|checkmark|square|blacksquare)"
)
_LETTER = re.compile(r"[^\W\d_]")

# Typographic spaces and the full-width forms of East Asian writing. Digits are not changed.
_PLAIN = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u2009\u202f\u3000", " ")
    | dict(zip("（）［］｛｝【】〈〉⟨⟩，；：｜－＝＞−、", "()[]{}[]()(),;:|-=>-,", strict=True))
)
# Words that say nothing about time: where a path begins and ends, and the direction of a move.
_NEUTRAL = re.compile(
    r"start(?:s|ed|ing)?|ends?|ended|final|finish(?:ed)?|goal|target|destination|arrive[sd]?|reached|done|at|the|its"
    r"|left|right|up|down|north|south|east|west|move[sd]?|moving",
    re.IGNORECASE,
)
_WAIT = re.compile(r"(?:wait|stay|remain|idle|paus|hold|rest)(?:s|e|es|ed|ing)?", re.IGNORECASE)


_PUNCTUATION = {kind: Token(kind, None, kind) for kind in (ARROW, COMMA, DASH, PIPE, COLON, STOP, FENCE, ALIGN)}
_ORDINARY = {
    text: Token(CELL, (row, column), text)
    for row in range(32)
    for column in range(32)
    for text in (f"({row},{column})", f"({row}, {column})", f"[{row},{column}]", f"[{row}, {column}]")
}


def lines(text: str) -> Iterator[list[Token]]:
    """The tokens of each line, without white space and markup."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = text.translate(_PLAIN)
    line: list[Token] = []
    emphasis = False  # a single star has opened on this line
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind in _PUNCTUATION:
            line.append(_PUNCTUATION[kind])
        elif kind == CELL:
            line.append(_ORDINARY.get(match[0]) or _token(kind, match))
        elif kind == "newline":
            yield line
            line, emphasis = [], False
        elif kind == "markup":
            if match[0] == "*" and "*" not in (text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]):
                if not emphasis and line and line[-1].kind in CELLS and text[match.start() - 1] in ")]}>":
                    line.append(Token(SCRAP, None, "*"))  # of a footnote: nothing opened before the cell
                elif emphasis or not text[match.end() : match.end() + 1].isspace():  # before a space it is a bullet
                    emphasis = not emphasis
            elif len(match[0]) > 2 and not _MARKUP.fullmatch(match[0]):
                line.append(Token(SCRAP, None, match[0]))
        elif kind is not None:
            line.append(_token(kind, match))
    yield line


def _token(kind: str, match: re.Match[str]) -> Token:
    text = match[0]
    if kind in (CELL, "swapped"):
        first, second = (coordinate(digits) for digits in _INTEGER.findall(text))
        return Token(CELL, (first, second) if kind == CELL else (second, first), text)
    if kind == "column":
        return Token(BARE, (coordinate(match["row"]), coordinate(match["column"])), text)
    if kind in (LABEL, "short_label", "tag_label"):
        return Token(LABEL, label(match[kind]), text)
    if kind in (STEP, "mark"):
        return Token(STEP, int(match[kind]), text)
    if kind == BULLET:
        return Token(BULLET, int(text.strip(" \t.):")), text)
    if kind == RUIN:  # if it has words, or only one number, it is a remark: (3 moves), [1]
        return Token(SCRAP if _LETTER.search(text) or len(_INTEGER.findall(text)) < 2 else RUIN, None, text)
    if kind == WORD:
        return _word(text)
    return Token(SCRAP if kind == "other" else kind, None, text)


def _word(text: str) -> Token:
    if text.isalpha():
        return Token(NEUTRAL if _NEUTRAL.fullmatch(text) else WAIT if _WAIT.fullmatch(text) else WORD, None, text)
    if text.isascii():
        return Token(NUMBER, int(text), text) if text.isdigit() and len(text) <= _DIGITS else Token(SCRAP, None, text)
    return Token(SCRAP if _LETTER.search(text) else RUIN, None, text)  # digits of another script


def written(line: Iterable[Token]) -> str:
    """The words, numbers and other signs of a line, without punctuation, bullets and labels."""
    return " ".join(token.text for token in line if token.kind not in _PUNCTUATION and token.kind not in (BULLET, LABEL))


def coordinate(digits: str) -> int:
    """A number as written; one of too many digits becomes FAR, which is on no map."""
    if len(digits) <= _DIGITS:
        return int(digits)
    negative = digits.startswith("-")
    significant = digits.lstrip("-0")
    if len(significant) > _DIGITS:
        return -FAR if negative else FAR
    return int(significant or "0") * (-1 if negative else 1)


def label(text: str) -> Label:
    """A label as written. A label that is not an ordinary number (`-1`, `A`, one of many digits) is kept as text."""
    if text.isdecimal():
        significant = text.lstrip("0")
        return int(significant or "0") if len(significant) <= _DIGITS else significant
    return text.lower()
