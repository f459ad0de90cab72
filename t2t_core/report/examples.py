"""One answer as a page shows it: how it was judged and why, what was said, and a moving picture of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2t_core.hookspecs import AnyTestbed
from t2t_core.records import Message, Scored, Verdict
from t2t_core.report.document import Example, Tone, spaced

_WORDS = 4000  # characters of a text that are shown; of a longer one, its beginning and its end
_SPEAKERS = {"assistant": "the policy", "user": "the environment", "system": "the system", "tool": "a tool"}


def example(testbed: AnyTestbed, answer: Scored, form: str, samples: int, where: str) -> Example:
    """One answer with its verdict, a conversation turn by turn; `where` it can be read whole."""
    judged, tone, facets = _judged(answer)
    talked = testbed.turns > 1
    spoken = list(_turns(answer.messages)) if talked else [("answer", answer.response.text)]
    notes = [("reasoning", answer.response.reasoning), ("what came instead of an answer", answer.response.error)]
    said = [(who, _cut(text, where)) for who, text in (*spoken, *((who, text) for who, text in notes if text))]
    if why := _why(answer.verdict):
        said.insert(0, ("verdict", why))
    which = f", answer {answer.sample + 1}" if samples > 1 else ""
    picture = testbed.picture(answer.instance, answer.messages if talked else answer.response.text, form)
    return Example(f"{answer.instance.id}{which}{_took(answer)}", judged, tone, said, picture, facets)


def _turns(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """Who spoke in which turn, and what."""
    turn = 0
    for message in messages:
        turn += message.role == "assistant"
        calls = [f"calls {call.name} {call.arguments}" for call in message.tool_calls]
        yield f"turn {turn}: {_SPEAKERS.get(message.role, message.role)}", "\n".join(filter(None, [message.content, *calls]))


def _judged(answer: Scored) -> tuple[str, Tone, dict[str, str]]:
    verdict = answer.verdict
    if answer.response.error is not None:
        return "error", "bad", {"verdict": "error"}
    if not verdict.valid:
        failure = verdict.failure or "not valid"
        return f"not valid, fails: {spaced(failure)}", "bad", {"verdict": "not valid", "failure": spaced(failure)}
    judged = "optimal" if verdict.optimal else "valid"
    return judged, "good", {"verdict": judged}


def _why(verdict: Verdict) -> str:
    lines = [f"{spaced(name)}: {fault.message}" for name, fault in verdict.faults.items()]
    if verdict.valid:
        lines += [f"{spaced(name)} {cost}" for name, cost in verdict.costs.items()]
        lines += [f"{spaced(name)}, more than the optimum: {gap}" for name, gap in verdict.gaps.items() if gap]
    return "\n".join(lines)


def _took(answer: Scored) -> str:
    response = answer.response
    parts = [f"{response.completion_tokens:,} tokens"] if response.completion_tokens else []
    parts += [f"${response.cost_usd:.6f}"] if response.cost_usd else []
    parts += [response.finish_reason] if response.finish_reason not in ("stop", "error") else []
    return "".join(f", {part}" for part in parts)


def _cut(text: str, where: str) -> str:
    if len(text) <= _WORDS:
        return text
    half = _WORDS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half:,} characters; {where} has them ...\n{text[-half:]}"
