"""What a model said, in the message of a reply: text, thoughts and refusal, as a string or in parts.

A part that may hold an answer which we cannot read makes the whole message unreadable, so that it is asked for again and not
counted as empty. Parts that hold none (a picture, a reference) are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from t2t_plugins.policies.endpoint.bodies import REASONING

_TEXTS = (None, "text", "output_text")  # types of parts; None: Gemini's own parts have no type
_THOUGHTS = ("thinking", "reasoning")


class Said(NamedTuple):
    """`readable` is False if something of it may be an answer and could not be read."""

    text: str = ""
    thoughts: str = ""
    refusal: str = ""
    readable: bool = True


def of_choice(choice: Mapping[str, Any]) -> Any:
    """A choice's message; None if it has none. A text in its place is what the model said, and so is one beside it where there
    is none (servers of plain completions send `text`)."""
    message = choice.get("message")
    if message is None and isinstance(choice.get("text"), str):
        message = choice["text"]
    return {"content": message} if isinstance(message, str) else message


def said(message: Any) -> Said:
    """What a message says. Its refusal counts where it has no text; one that is no text makes it unreadable there."""
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), str | list | None):
        return Said(readable=False)
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    read = [_part(part) for part in parts]
    text, thoughts = "".join(part.text for part in read), "".join(part.thoughts for part in read)
    own = message.get("refusal") or ""
    refusal = own if isinstance(own, str) and own else "".join(part.refusal for part in read)
    readable = all(part.readable for part in read) and (bool(text) or isinstance(own, str))
    thoughts = next((t for t in (thought(message.get(name)) for name in REASONING) if t), "") or thoughts
    return Said(text, thoughts or thought(message.get("reasoning_details")), refusal, readable)


def _part(part: Any) -> Said:
    if part is None:
        return Said()
    if isinstance(part, str):
        return Said(text=part)
    if not isinstance(part, Mapping) or ("type" not in part and "text" not in part):
        return Said(readable=False)
    kind, text = part.get("type"), part.get("text")
    if isinstance(text, Mapping):  # the Assistants API: {"value": "...", "annotations": []}
        text = text.get("value")
    if kind in _THOUGHTS:
        return Said(thoughts=thought(part.get(str(kind)) or text))
    if kind == "refusal":
        refusal = part.get("refusal") or text
        return Said(refusal=refusal) if isinstance(refusal, str) else Said(readable=False)
    if kind in _TEXTS and isinstance(text, str):
        return Said(text=text)
    return Said(readable="text" not in part)


def thought(value: Any) -> str:
    """Thoughts as text: a string, an object with one, or a list of them (Mistral sends one within a part)."""
    return "".join(text for item in (value if isinstance(value, list) else [value]) for text in _texts(item))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = next((value[name] for name in ("text", "content", "summary", "thinking") if value.get(name)), None)
    if isinstance(value, str):
        yield value
