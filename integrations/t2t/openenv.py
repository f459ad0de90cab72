"""A testbed as an OpenEnv environment: a server for many sessions, and its client.

    python -m t2t.openenv --testbed NAME --port 8000

    from t2t.openenv import Answer, TestbedClient
    with TestbedClient(base_url="http://localhost:8000").sync() as env:
        asked = env.reset(seed=7).observation.messages
        result = env.step(Answer(text="..."))
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import click
from openenv.core import Action, EnvClient, Environment, Observation, State, create_app
from openenv.core.client_types import StepResult
from pydantic import Field

from t2t_core.conversation import judge, opening, replies
from t2t_core.errors import T2TError
from t2t_core.hookspecs import AnyTestbed
from t2t_core.plugins import installed
from t2t_core.records import Message
from t2t_core.reward import reward

BATCH = 64  # training instances drawn at a time
SESSIONS = 64  # open at once (our choice)


class Answer(Action):
    """What the policy says in a turn."""

    text: str = Field(description="the answer or move, in the form that the question asks for")


class Heard(Observation):
    """What the environment says: `messages` since the policy's last turn, and once it is over the verdict."""

    messages: list[dict[str, Any]] = []
    verdict: dict[str, Any] = {}


class Where(State):
    """Which instance is being played."""

    instance: str = ""
    set: str = ""


@functools.lru_cache(maxsize=16)
def _batch(testbed: str, number: int) -> Sequence[Any]:
    """Training instances from a random configuration, without the instances that are kept for evaluation."""
    bed = installed().testbeds.make(testbed)
    request = bed.request(BATCH)
    drawn: Sequence[Any] = bed.generate(bed.random_configuration(request, number), request, number)
    return drawn


class TestbedEnvironment(Environment[Answer, Heard, Where]):
    """One session: a conversation about one instance at a time.

    `reset(seed=n)` takes the n-th training instance, always the same one for the same n. `reset(set="NAME", index=i)` takes the
    i-th instance of one of the testbed's sets, to evaluate.
    """

    __test__ = False  # else pytest takes it for a test
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, testbed: str = "", prompt_format: str = "") -> None:
        super().__init__()
        testbeds = installed().testbeds
        self.bed: AnyTestbed = testbeds.make(testbed or testbeds.default)
        forms = [form for form in self.bed.prompt_formats if form not in self.bed.memoryless]
        if prompt_format and prompt_format not in forms:
            raise T2TError(f"there is no prompt format {prompt_format!r} here", next=f"use {', '.join(forms)}")
        self.form = prompt_format or forms[0]
        self._state, self._said = Where(), list[Message]()
        self._instance: Any = None
        self._next = 0

    def reset(self, seed: int | None = None, episode_id: str | None = None, **more: Any) -> Heard:
        """Start another instance; see the class."""
        name, index = str(more.get("set") or ""), more.get("index")
        number = self._next if seed is None else abs(int(seed))
        self._next = number + 1
        if name:
            instances = self.bed.load_set(name).instances
            self._instance = instances[(number if index is None else int(index)) % len(instances)]
        else:
            self._instance = _batch(self.bed.name, number // BATCH)[number % BATCH]
        self._state = Where(episode_id=episode_id, step_count=0, instance=self._instance.id, set=name or "train")
        self._said = []
        return Heard(messages=[message.to_dict() for message in opening(self.bed, self._instance, self.form)])

    def step(self, action: Answer, timeout_s: float | None = None, **more: Any) -> Heard:
        """Take the policy's turn. The reward comes with the last turn."""
        if self._instance is None:
            raise T2TError("nothing has begun", next="call reset first")
        if self._said and self._said[-1].role == "assistant":
            raise T2TError("this conversation is over", next="call reset")
        self._state.step_count += 1
        self._said.append(Message("assistant", action.text))
        answer = replies(self.bed, self._instance, self._said, self.form)
        if answer:
            self._said += answer
            return Heard(messages=[message.to_dict() for message in answer], reward=0.0)
        verdict = judge(self.bed, self._instance, self._said, self.form)
        faults = {name: fault.message for name, fault in verdict.faults.items()}
        told = {"valid": verdict.valid, "optimal": verdict.optimal is True, "checks": dict(verdict.checks), "faults": faults}
        worth = reward(self.bed, self._instance, verdict)
        return Heard(done=True, reward=worth, verdict={**told, "figures": dict(verdict.figures)})

    @property
    def state(self) -> Where:
        return self._state


class TestbedClient(EnvClient[Answer, Heard, Where]):
    """The client of such a server; use `.sync()` in code that is not asynchronous."""

    __test__ = False

    def _step_payload(self, action: Answer) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Heard]:
        seen = payload.get("observation") or {}
        reward, done = payload.get("reward"), bool(payload.get("done"))
        heard = Heard(messages=seen.get("messages", []), verdict=seen.get("verdict", {}), reward=reward, done=done)
        return StepResult(observation=heard, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> Where:
        return Where(**payload)


def app(testbed: str = "", prompt_format: str = "") -> Any:
    """The server as an ASGI application. Raises T2TError if there is no such testbed or prompt format."""
    make = functools.partial(TestbedEnvironment, testbed, prompt_format)
    name = f"t2t-{make().bed.name}"
    return create_app(make, Answer, Heard, env_name=name, max_concurrent_envs=SESSIONS, state_cls=Where)


@click.command()
@click.option("--testbed", default="", help="Which task (see t2t plugins; default: the first of them).")
@click.option("--prompt-format", default="", help="How questions are worded.  [default: the testbed's first]")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True)
def serve(testbed: str, prompt_format: str, host: str, port: int) -> None:
    """Serve a testbed as an OpenEnv environment."""
    import uvicorn

    uvicorn.run(app(testbed, prompt_format), host=host, port=port, log_level="warning")


if __name__ == "__main__":
    serve()
