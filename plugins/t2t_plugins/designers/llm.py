"""Designers that ask a language model: any policy (`llm:openai:gpt-5.4`), the untrained one (`base`), or the current one
(`checkpoint`, the paper's method).

The model gets one prompt, may think, and ends with one JSON object (`designers.reader` says how it is read). A policy whose
`describe()` has `"brief": "compact"` gets the compact form instead (t2t_plugins.contexts.compact). A failed call is repeated.
If a reply cannot be read, for example because it was cut off in its thoughts, one second call asks for the JSON alone. If that
reply cannot be read either, the proposal has no configuration and the loop keeps the previous one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from t2t_core import transport
from t2t_core.errors import T2TError
from t2t_core.evaluation.evaluate import read_sampling
from t2t_core.guard import PluginFault
from t2t_core.hookspecs import Brief, Policy
from t2t_core.loop.context import readable
from t2t_core.plugins import installed
from t2t_core.records import ASKED_AGAIN, Message, Proposal, Response, Sampling, Task
from t2t_core.registry import Spec
from t2t_core.settings import integer, no_argument, one_of, read_settings
from t2t_core.text import one_line
from t2t_plugins.contexts.compact import brief_text, proposal_text, read_compact
from t2t_plugins.designers.reader import Form, read_reply

_READERS = {"attempts": integer(1, 20), "brief": one_of(("auto", "prose", "compact")), "finish": one_of(("on", "off"))}
CUT = "Your reply was cut off before its end."
UNREAD = "No configuration could be read from your reply: {why}."
FINISH = "Do not think any further: reply with the JSON object of your proposal alone, in the format that was asked for."
_THOUGHTS = 20_000  # how many characters at the end of a reply are shown again


@dataclass(frozen=True)
class Manner:
    """How a designer asks: greedily unless told otherwise (our choice). attempts: calls made before it gives up. brief: the
    form of the prompt; "auto" asks the policy. finish: whether an unreadable reply is followed by a call without thinking that
    asks for the JSON alone. That applies to prose only: a policy that designs in the compact form has learnt it by heart and
    cannot follow other words."""

    sampling: Sampling = Sampling()
    attempts: int = 3
    brief: str = "auto"
    finish: str = "on"

    @classmethod
    def read(cls, settings: Mapping[str, str], where: str) -> Manner:
        """Read temperature, max_tokens, thinking, top_p, top_k, min_p, attempts, brief and finish. Raises T2TError for anything
        else."""
        spec, sampling = read_sampling(Spec(where, "", settings), Sampling())
        return cls(sampling, **read_settings(spec.settings, where, _READERS))


class LanguageModelDesigner:
    """Asks the policy that `policy` makes from the brief, and reads its reply."""

    def __init__(
        self, policy: Callable[[Brief], Policy], manner: Manner, own: Policy | None = None, asks_own_policy: bool = False
    ) -> None:
        self._policy, self._manner, self.asks_own_policy = policy, manner, asks_own_policy
        if callable(end := getattr(own, "close", None)):
            self.close = end  # the designer's own engine must not outlive the design
        self.settings = {**asdict(manner.sampling), "attempts": manner.attempts, "brief": manner.brief}
        self.settings["finish"] = manner.finish

    def propose(self, brief: Brief) -> Proposal:
        policy = self._policy(brief)
        compact = self._compact(policy)
        prompt = brief_text(brief.previous.to_dict(), brief.state.knobs, brief.compact) if compact else brief.text
        brief.shown(prompt)
        responses: list[Response] = []
        while len(responses) < self._manner.attempts and (not responses or (responses[-1].error and not responses[-1].lasting)):
            task = Task(f"design-{brief.seed}", len(responses), prompt, None, brief.seed)
            responses.append(self._call(policy, task))
        reply = responses[-1]
        if reply.error:
            why = f"the call failed {len(responses)} times; the last time: {reply.error}"
            return Proposal(reply.text, None, notes=(why,), prompt=prompt, responses=responses)
        form, cut = form_of(brief, compact), reply.finish_reason == "length"
        reading = read_reply(reply.text, form, cut=cut)
        refused = reply.finish_reason == "refusal"
        if reading.data is not None or refused or compact or self._manner.finish == "off":
            return Proposal(reply.text, reading.data, reading.summary, reading.notes, prompt, responses)
        why = CUT if cut else UNREAD.format(why="; ".join(reading.notes).rstrip(".") or "there is no JSON object in it")
        wish = Task(f"design-{brief.seed}", len(responses), f"{why} {FINISH}", None, brief.seed)
        last = self._finish(policy, prompt, reply.text, wish)
        responses.append(last)
        again = read_reply(last.text, form, cut=last.finish_reason == "length")
        notes = (*reading.notes, ASKED_AGAIN, *((last.error,) if last.error else again.notes))
        asked = f"{prompt}\n\n## Asked once more\n\n{wish.prompt}"
        return Proposal(f"{reply.text}\n\n{last.text}", again.data, again.summary, notes, asked, responses)

    def _finish(self, policy: Policy, prompt: str, reply: str, task: Task) -> Response:
        """The answer to the request for the JSON alone, made after the prompt and the first reply."""
        said = Message("assistant", reply[-_THOUGHTS:] or "(nothing)")
        task = replace(task, messages=(Message("user", prompt), said, Message("user", task.prompt)), turn=1)
        return self._call(policy, task, replace(self._manner.sampling, thinking=False))

    def _call(self, policy: Policy, task: Task, sampling: Sampling | None = None) -> Response:
        sampling = sampling or self._manner.sampling
        try:
            return next((r for _, r in policy.respond([task], sampling)), Response("", error="no answer came"))
        except PluginFault as fault:  # a plugin policy's fault counts as a failed call, and the next call may succeed
            return Response("", finish_reason="error", error=one_line(fault.what, 500))
        except T2TError:  # repeating the call would not fix a user's mistake
            raise
        except Exception as error:  # noqa: BLE001 - of a policy that the registry did not guard
            return Response("", finish_reason="error", error=one_line(f"{type(error).__name__}: {error}", 500))

    def _compact(self, policy: Policy) -> bool:
        form = self._manner.brief if self._manner.brief != "auto" else policy.describe().get("brief", "prose")
        return bool(form == "compact")


def form_of(brief: Brief, compact: bool) -> Form:
    """What a reply to the brief may contain."""
    current = brief.previous.to_dict()
    knobs = brief.state.knobs

    def shown(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
        text = proposal_text(configuration, knobs) if compact else readable(configuration)
        data: Mapping[str, Any] = json.loads(text)
        return (read_compact(data, knobs) or data) if compact else data

    def of_list(values: Sequence[Any]) -> Mapping[str, Any]:
        return (read_compact({"": list(values)}, knobs) or {})[""]

    known = [(c, shown(c)) for c in (*(r.configuration for r in brief.state.rounds), current)]
    names = tuple(knob.name for knob in knobs)
    testbed = brief.state.testbed
    parts = ("cells",) if testbed.joint_cells else ()
    signed = tuple(knob.name for knob in knobs if knob.low < 0)
    return Form(tuple(current), names, testbed.group_of, known, of_list if compact else None, parts, signed)


def llm(argument: str, settings: Mapping[str, str]) -> LanguageModelDesigner:
    """`llm:<policy>`: settings about asking (those of `Manner.read`) stay here, and the others go to the policy."""
    spec = Spec.parse(argument)
    if not spec.name:
        raise T2TError("the designer llm needs a policy", next="write llm:<policy>, for example llm:openai:gpt-5.4")
    if not getattr(installed().policies.find(spec.name).load(), "talks", True):
        raise T2TError(
            f"the policy {spec.name} cannot design: it has no words of its own",
            where=f"designer llm:{spec.name}",
            next="name a language model, for example llm:openai:gpt-5.4",
        )
    own = {key: value for key, value in settings.items() if key in _READERS}
    others = {**spec.settings, **{key: value for key, value in settings.items() if key not in _READERS}}
    to_policy, sampling = read_sampling(Spec(spec.name, spec.argument, others), Sampling())
    policy = installed().policies.make(to_policy)
    manner = Manner(sampling, **read_settings(own, "designer llm", _READERS))
    return LanguageModelDesigner(lambda brief: policy, manner, policy)


def _transport(argument: str) -> Sequence[str]:
    """How the policy is asked, and how often."""
    return (*transport.names(installed().policies, Spec.parse(argument)), "attempts")


llm.transport = _transport  # type: ignore[attr-defined]


def checkpoint(argument: str, settings: Mapping[str, str]) -> LanguageModelDesigner:
    """The current policy designs its own environment (the paper's method)."""
    no_argument(argument, "designer checkpoint")
    manner = Manner.read(settings, "designer checkpoint")
    return LanguageModelDesigner(lambda brief: _own(brief)(brief.checkpoint), manner, asks_own_policy=True)


def base(argument: str, settings: Mapping[str, str]) -> LanguageModelDesigner:
    """The untrained policy designs (the paper's designer ablation)."""
    no_argument(argument, "designer base")
    manner = Manner.read(settings, "designer base")
    return LanguageModelDesigner(lambda brief: _own(brief)(brief.base), manner, asks_own_policy=True)


def _own(brief: Brief) -> Callable[[Path | None], Policy]:
    if brief.policy is None:
        raise T2TError("there is no run whose policy could design", next="use llm:<policy>, or give a run with --run DIR")
    return brief.policy
