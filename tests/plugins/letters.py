"""A task for trainers that a model of random weights can do better or worse at: the more of its letters lie in the second half
of the alphabet, the better. Questions come in two columns and two formats, one of them much longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2t_core.hookspecs import Testbed
from t2t_core.records import InstanceSet, Place, Verdict


@dataclass(frozen=True)
class Question:
    id: str
    column: str
    text: str

    def to_dict(self) -> dict[str, str]:
        return {"id": self.id, "column": self.column, "text": self.text}


def questions(count: int) -> list[Question]:
    return [Question(f"q{n}", "ab"[n % 2], "abcdefgh"[n % 8] * (1 + n % 5)) for n in range(count)]


@dataclass
class Letters(Testbed[Question, Any, Any]):
    """`asked` are the prompts made, `answers` the (question, text) pairs verified, in order."""

    name: str = "letters"
    length_term: bool = True
    checks: Sequence[str] = ("letters",)
    prompt_formats: Sequence[str] = ("short", "long")
    rubric: Mapping[str, float] = field(default_factory=lambda: {"letters": 1.0})
    asked: list[str] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)

    def protected_sets(self) -> Sequence[str]:
        return ()

    def load_set(self, name: str) -> InstanceSet:
        raise KeyError(name)

    def read_instance(self, data: Mapping[str, Any]) -> Question:
        return Question(**data)

    def unlabelled(self, instance: Question) -> Question:
        return instance

    def place(self, instance: Question) -> Place:
        return Place("letters", instance.column)

    def prompt(self, instance: Question, format: str) -> str:
        text = instance.text if format == "short" else f"Please write letters. {instance.text}"
        self.asked.append(text)
        return text

    def verify(self, instance: Question, answer: Any, format: str = "") -> Verdict:
        text = str(answer)
        self.answers.append((instance.id, text))
        valid = share(text) > 0.5
        return Verdict({"letters": valid}, valid, share(text) > 0.75, 1 if valid else None)

    def reward_terms(self, instance: Question, verdict: Verdict) -> Mapping[str, float]:
        return {"letters": share(self.answers[-1][1])}

    def identity(self, instance: Question) -> bytes:
        return instance.id.encode()


def share(text: str) -> float:
    """Of the characters, those whose code is odd: about half of what random weights write."""
    return sum(ord(c) % 2 for c in text) / len(text) if text else 0.0
