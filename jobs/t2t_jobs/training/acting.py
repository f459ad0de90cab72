"""Which agents can be trained, and how a trained version becomes an agent that acts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.registry import Spec
from t2t_core.store.paths import SafePath
from t2t_jobs.agents.llm import LanguageModelAgent

_TRAINABLE = "tiny, tiny:FOLDER, or llm:hf:MODEL,protocol=text"


@dataclass(frozen=True)
class Trainee:
    """An agent whose weights are on this machine; `start` is the checkpoint that its training begins from."""

    spec: Spec
    start: str

    @classmethod
    def parse(cls, text: str) -> Trainee:
        """Make one from an agent's name as on the command line. Raises T2TError if it has no weights that could be trained."""
        spec = Spec.parse(text)
        if spec.name == "tiny":
            return cls(spec, str(installed().agents.make(spec).checkpoint))
        policy = Spec.parse(spec.argument)
        if spec.name != "llm" or policy.name != "hf" or not policy.argument:
            raise T2TError(f"the agent {text} cannot be trained", cause="it has no weights here", next=f"name {_TRAINABLE}")
        agent = installed().agents.make(spec)
        if agent.protocol == "tools":
            raise T2TError(
                f"the agent {text} cannot be trained by tool calls",
                cause="training needs a local model's exact words, and tool calls are parsed out of them",
                next="add protocol=text",
            )
        return cls(spec, policy.argument)

    def at(self, version: int, versions: SafePath, lora: bool) -> LanguageModelAgent:
        """The agent with the weights of that version."""
        folder = str((versions / str(version)).path)
        if self.spec.name == "tiny":
            made = replace(self.spec, argument=folder)
        else:
            policy = Spec.parse(self.spec.argument)
            own = {**policy.settings, "lora": folder} if lora else policy.settings
            policy = replace(policy, argument=policy.argument if lora else folder, settings=own)
            made = replace(self.spec, argument=str(policy))
        agent: LanguageModelAgent = installed().agents.make(made)
        return agent
