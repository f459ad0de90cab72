"""What this room registers through the suite's hooks."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry
from t2t_plugins.contexts.variants import VARIANTS, variant
from t2t_plugins.policies.endpoint.factory import EndpointFactory
from t2t_plugins.policies.endpoint.providers import PROVIDERS

MODEL = ("torch", "transformers")  # the modules that train or run a local model


@hookimpl
def register_policies(registry: Registry) -> None:
    registry.add("answers", "t2t_plugins.policies.answers:StoredAnswers", "stored completions, answers:FILE.jsonl")
    registry.add("hf", "t2t_plugins.policies.hf:HuggingFace", "a language model run here by transformers, hf:FOLDER_OR_ID")
    registry.add("vllm", "t2t_plugins.policies.vllm:Vllm", "a language model run here by vLLM, vllm:FOLDER_OR_ID")
    for provider in PROVIDERS.values():
        registry.add(provider.name, EndpointFactory(provider.name), f"{provider.name}:MODEL at {provider.title}")


@hookimpl
def register_designers(registry: Registry) -> None:
    registry.add("random", "t2t_plugins.designers.simple:Random", "a fresh random configuration every round")
    registry.add("fixed", "t2t_plugins.designers.simple:Fixed", "keeps the configuration of round 0 (the control)")
    on = "on valid rates; rule:failures on failure types"
    registry.add("rule", "t2t_plugins.designers.rule:Rule", f"a transparent heuristic {on}")
    registry.add("checkpoint", "t2t_plugins.designers.llm:checkpoint", "the current policy designs (the paper's method)")
    registry.add("base", "t2t_plugins.designers.llm:base", "the untrained policy designs")
    registry.add("shuffled", "t2t_plugins.designers.controls:Shuffled", "control: another's edits at other groups, shuffled:rule")
    registry.add("mislabelled", "t2t_plugins.designers.controls:Mislabelled", "control: another sees failures under wrong names")
    registry.add("schedule", "t2t_plugins.designers.controls:Schedule", "control: what a file says, schedule:FILE.json")
    registry.add("llm", "t2t_plugins.designers.llm:llm", "any policy that can talk: llm:openai:gpt-5.4, llm:hf:FOLDER")


@hookimpl
def register_contexts(registry: Registry) -> None:
    registry.add("F", "t2t_plugins.contexts.failures:Failures", "failure breakdown of the latest validation (examples=2)")
    registry.add("G", "t2t_plugins.contexts.guideline:Guideline", "the testbed's design guideline")
    registry.add("H", "t2t_plugins.contexts.history:History", "earlier rounds (H:no_round_0, last=3)")
    registry.add("S", "t2t_plugins.contexts.summary:Summary", "the designer's own explanation, carried on")
    registry.add("T", "t2t_plugins.contexts.training:Training", "facts about the training (T:bookkeeping, T:full)")
    for name, modules in VARIANTS.items():
        registry.add(name, variant(name), f"the paper's variant {modules}")


@hookimpl
def register_trainers(registry: Registry) -> None:
    registry.add("none", "t2t_plugins.trainers.none:NoTrainer", "trains nothing: evaluate and design only")
    registry.add("trl-grpo", "t2t_plugins.trainers.trl_grpo.trainer:Grpo", "GRPO by TRL, with the length-aware reward")
    registry.add("grpo", "t2t_plugins.trainers.grpo:Grpo", "GRPO for embedded policies, on whole conversations", MODEL)
    registry.add("trl-sft", "t2t_plugins.trainers.trl_sft:Sft", "supervised training on any policy's valid answers")


@hookimpl
def register_trackers(registry: Registry) -> None:
    room = "t2t_plugins.trackers"
    board = "event files for TensorBoard in the run's folder, or tensorboard:FOLDER"
    registry.add("tensorboard", f"{room}.tensorboard:TensorBoard", board, ("tensorboard",))
    registry.add("wandb", f"{room}.wandb:Wandb", "Weights & Biases, wandb:PROJECT (WANDB_MODE=offline keeps it here)", ("wandb",))
    registry.add("mlflow", f"{room}.mlflow:Mlflow", "MLflow, mlflow:EXPERIMENT (where MLFLOW_TRACKING_URI says)", ("mlflow",))
    registry.add("trackio", f"{room}.trackio:Trackio", "trackio on this machine, trackio:PROJECT", ("trackio",))
