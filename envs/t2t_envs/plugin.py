"""What this room registers through the suite's hooks."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry


@hookimpl
def register_testbeds(registry: Registry) -> None:
    registry.add("mapf-frozenlake", "t2t_envs.frozen_lake.testbed:make", "multi-agent path finding on frozen lakes")
    registry.add("tictactoe", "t2t_envs.tictactoe.testbed:make", "tic-tac-toe against an opponent of chosen strength, in turns")


@hookimpl
def register_presets(registry: Registry) -> None:
    lake, board = "t2t_envs.frozen_lake.presets", "t2t_envs.tictactoe.presets"
    registry.add("tiny", f"{lake}:tiny", "the loop in minutes on two CPU cores, with the embedded toy policy")
    registry.add("short-rounds", f"{lake}:short_rounds", "eight rounds of nine updates, for studies of designers")
    registry.add("paper", f"{lake}:paper", "the paper's setting: Qwen3-4B on four GPUs of 80 GB")
    registry.add("paper-lora", f"{lake}:paper_lora", "the paper's setting with adapters, on one GPU of 80 GB")
    registry.add("single-gpu", f"{lake}:single_gpu", "Qwen3-0.6B with adapters on one GPU of 24 GB")
    registry.add("api-designer", f"{lake}:api_designer", "Qwen3-1.7B trained here, designed by a model behind an API")
    registry.add("tictactoe", f"{board}:road", "tic-tac-toe, from the warm-up through three rounds in minutes on two CPU cores")
    registry.add("tictactoe-stage1", f"{board}:stage1", "tic-tac-toe, the talk's first stage: opponents of p 0.2 to 0.7")
    registry.add("tictactoe-stage2", f"{board}:stage2", "tic-tac-toe, its second: strong opponents, a higher temperature")
