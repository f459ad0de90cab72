"""The conversations of an evaluation while they are held: what has been said, which turn comes next, and what is on disk.

A one-shot task is one turn, and nothing of it stays in memory. In a conversation the environment's replies follow from what
the policy said, so a conversation that a killed process left half held is set up again from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, overload

from t2t_core.conversation import replies, said
from t2t_core.errors import T2TError
from t2t_core.evaluation.answers import AnswerLog
from t2t_core.evaluation.questions import Evaluation
from t2t_core.records import Message, Response, Task

NO_ANSWER = Response("", error="the policy gave no answer", finish_reason="error")


class Tasks(Sequence[Task]):
    """What a policy is asked in one call. One-shot tasks are made when they are looked at, so that 100,000 prompts never lie in
    memory together; the turns of a conversation are appended as they come up."""

    def __init__(self, evaluation: Evaluation, indices: Iterable[int]) -> None:
        self._evaluation = evaluation
        self.questions = list(indices)
        self.answered = bytearray(len(self.questions))
        self.first = len(self.questions)  # so many the policy was given at the beginning
        self._turns: dict[int, Task] = {}

    def add(self, question: int, task: Task | None = None) -> None:
        """One more; without a task it is the question's opening."""
        self.questions.append(question)
        self.answered.append(0)
        if task is not None:
            self._turns[len(self.questions) - 1] = task

    def put(self, position: int, task: Task) -> None:
        """Ask this turn there instead of the question's opening."""
        self._turns[position] = task

    def __len__(self) -> int:
        return len(self.questions)

    @overload
    def __getitem__(self, at: int) -> Task: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Task]: ...
    def __getitem__(self, at: int | slice) -> Task | Sequence[Task]:
        if isinstance(at, slice):
            return [self[position] for position in range(*at.indices(len(self)))]
        position = range(len(self))[at]
        turn = self._turns.get(position)
        return turn if turn is not None else self._evaluation.task(self.questions[position])

    def take(self, position: Any) -> int:
        """Mark the position as answered; the question there. Raises T2TError if it is none, or was answered before."""
        if type(position) is not int or not 0 <= position < len(self):
            raise broken(f"there is no position {ascii(position)[:40]} among {len(self)} tasks")
        if self.answered[position]:
            raise broken(f"it answered position {position} twice")
        self.answered[position] = 1
        return self.questions[position]


def broken(what: str) -> T2TError:
    """The error of a policy that answers a position twice, never, or with something else than a Response."""
    return T2TError(
        f"the policy broke its contract: {what}",
        cause="a policy yields (position in tasks, Response), every position exactly once",
        next="t2t_core.testing.check_policy finds such faults; every answer before it is kept",
    )


class Questions:
    """What is still to be asked, in batches that stay full: a finished conversation makes room for the next.

    Args:
        evaluation: what is asked.
        log: what has been answered, and where answers go.
        size: so many tasks the policy wants at once; None: as many as there are. So many conversations are open at a time.
    """

    def __init__(self, evaluation: Evaluation, log: AnswerLog, size: int | None) -> None:
        self._evaluation, self._log, self._size = evaluation, log, size
        self._one_shot = evaluation.testbed.turns == 1
        self._waiting = deque(log.missing())
        self._said: dict[int, tuple[Message, ...]] = {}  # what was said after the opening, of the open conversations

    def batch(self, open_at_once: int | None = None) -> Tasks | None:
        """The next tasks, None if all is asked. `open_at_once`: a policy that looks at its tasks again after each answer
        gets the next turns and conversations as room appears, beginning with so many."""
        if not self._waiting:
            return None
        count = self._size or (len(self._waiting) if self._one_shot else open_at_once) or len(self._waiting)
        tasks = Tasks(self._evaluation, [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))])
        if not self._one_shot:
            for position, question in enumerate(tasks.questions):
                tasks.put(position, self._turn(question))
        return tasks

    def record(self, tasks: Tasks, position: Any, response: Response) -> None:
        """Keep an answer; where its conversation goes on, the next turn is asked, and where it is over, the next one begins."""
        question = tasks.take(position)
        if self._one_shot:
            self._log.append(question, response)
            return
        answer = self._answered(question, response)
        goes_on = response.error is None and bool(answer)
        if self._size is not None:
            if goes_on:
                self._waiting.appendleft(question)
        elif goes_on:
            tasks.add(question, self._turn(question))
        elif self._waiting:
            following = self._waiting.popleft()
            tasks.add(following, self._turn(following))

    def close(self, tasks: Tasks) -> None:
        """The policy has ended: what it was given and did not answer is an error, what came up meanwhile is asked again."""
        for position in reversed(range(len(tasks))):
            if not tasks.answered[position]:
                if position < tasks.first:
                    self.record(tasks, position, NO_ANSWER)
                else:
                    self._waiting.appendleft(tasks.questions[position])

    def _answered(self, question: int, response: Response) -> Sequence[Message]:
        """The environment's reply to a turn, which is recorded with it."""
        if response.error is not None:
            self._log.append(question, response)
            return ()
        response = self._log.without_secrets(response)
        testbed, instance = self._evaluation.testbed, self._evaluation.instance(question)
        messages = (*self._said[question], said(response))
        answer = replies(testbed, instance, messages, self._evaluation.prompt_format)
        self._log.append(question, response, answer)
        if answer:
            self._said[question] = (*messages, *answer)
        else:
            del self._said[question]
        return answer

    def _turn(self, question: int) -> Task:
        """The next question to the policy in that conversation, set up again from the log where this process has not held it."""
        evaluation = self._evaluation
        if question not in self._said:
            self._said[question] = evaluation.said_so_far(question, self._log.turns(question), str(self._log.path))
        return evaluation.turn(question, self._said[question])
