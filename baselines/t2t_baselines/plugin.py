"""What this room registers: names, and the code behind each."""

from __future__ import annotations

from t2t_core.hookspecs import hookimpl
from t2t_core.registry import Registry

MODEL = ("torch", "transformers")  # needed to run a language model
WEIGHTS = ("torch", "safetensors")  # needed to run a step policy


@hookimpl
def register_policies(registry: Registry) -> None:
    registry.add("cbs", "t2t_baselines.exact:Exact", "the exact solver, optimal in the instance's own objective")
    registry.add("prioritized", "t2t_baselines.prioritized:Prioritized", "prioritised planning in a few random orders")
    registry.add("pibt", "t2t_baselines.pibt:Pibt", "priority inheritance with backtracking")
    registry.add("independent", "t2t_baselines.independent:Independent", "shortest paths that ignore the other agents")
    registry.add("random", "t2t_baselines.random_play:RandomPlay", "random legal play: a walk on a lake, a free cell")
    registry.add("minimax", "t2t_baselines.tictactoe:Minimax", "tic-tac-toe: the exact player (p=0.5: half its moves are random)")
    registry.add("first-free", "t2t_baselines.tictactoe:FirstFree", "tic-tac-toe: the first free cell")
    registry.add("ppo", "t2t_baselines.stepwise.policy:PpoPolicy", "a step policy of the trainer ppo, ppo:FOLDER", WEIGHTS)
    registry.add("sb3", "t2t_baselines.stepwise.sb3:Sb3Policy", "a policy of the trainer sb3, sb3:FOLDER (or a zip)")
    registry.add("step", "t2t_baselines.stepwise.policy:ImportedPolicy", "your agent: step:MODULE:ATTRIBUTE,trust_code=true")
    registry.add("tiny", "t2t_baselines.tiny.policy:Tiny", "a toy language model that shows the pipeline (tiny:FOLDER)", MODEL)


@hookimpl
def register_designers(registry: Registry) -> None:
    room = "t2t_baselines.curricula"
    registry.add("uniform", f"{room}.uniform:Uniform", "the same weight on every cell (domain randomisation)")
    registry.add("easy-to-hard", f"{room}.easy_to_hard:EasyToHard", "a hand-made schedule, small open maps first")
    registry.add("learning-progress", f"{room}.learning_progress:LearningProgress", "absolute learning progress (ALP) over cells")
    registry.add("level-replay", f"{room}.replay:LevelReplay", "prioritized level replay (PLR) over cells")
    registry.add("learnability", f"{room}.learnability:Learnability", "sampling for learnability p(1-p) (SFL) over cells")
    registry.add("sec", f"{room}.sec:SelfEvolving", "a bandit on |advantage| (SEC) over cells")
    registry.add("dump", f"{room}.dump:Dump", "upper confidence bounds on |advantage| (DUMP) over cells")
    registry.add("adarft", f"{room}.adarft:AdaRft", "a target difficulty that follows success in training (AdaRFT)")
    registry.add("thompson", f"{room}.thompson:Thompson", "Thompson sampling over cells, living groups as success")
    registry.add("e2h", f"{room}.e2h:E2H", "schedules from easy to hard cells, e2h:cosine, e2h:gaussian")
    registry.add("success-window", f"{room}.window:SuccessWindow", "a window of difficulties that moves up when mastered (RLVE)")
    registry.add("accel", f"{room}.accel:Accel", "random edits of the past configuration that taught most (ACCEL)")
    registry.add("probe", f"{room}.probe:Probe", "short trial runs of several configurations, their cost charged; the best one")
    registry.add("comfort-zone", f"{room}.extremes:comfort_zone", "negative control: the easiest quarter of the cells")
    registry.add("too-hard", f"{room}.extremes:too_hard", "negative control: the hardest quarter of the cells")


@hookimpl
def register_trainers(registry: Registry) -> None:
    registry.add("ppo", "t2t_baselines.stepwise.ppo:Ppo", "PPO on the step environment, one network for all agents", WEIGHTS)
    registry.add("sb3", "t2t_baselines.stepwise.sb3:Sb3", "an algorithm of Stable-Baselines3 on the step environment")


@hookimpl
def register_presets(registry: Registry) -> None:
    registry.add("ppo", "t2t_baselines.stepwise.presets:ppo", "the loop with a PPO policy, in minutes on two CPU cores")
