"""`grpo`: GRPO for embedded policies (our choice throughout).

It computes what `trl-grpo` computes (a test checks that losses and gradients equal TRL's), but without the framework, in which a
model of 100,000 parameters would spend most of its time. It trains on whole conversations: an update plays `prompts` x `group`
of them at once, turn by turn. Each turn is a row, and only the policy's own tokens in it are in the loss. A conversation has one
reward, and all of its turns share its advantage.

`trainer` is what a run calls, `training` a round, `playing` the conversations of an update, `batch` the arithmetic on them,
`states` what is saved between updates.
"""

from t2t_plugins.trainers.grpo.trainer import Grpo

__all__ = ["Grpo"]
