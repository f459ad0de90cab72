"""`grpo`: GRPO for embedded policies (our choice throughout).

It computes what `trl-grpo` computes (a test holds losses and gradients equal to TRL's) without the framework around it, which
costs a model of a tenth of a million parameters most of its time. It trains on whole conversations: an update plays
`prompts` x `group` of them at once, turn by turn, and every turn is a row whose own tokens alone are in the loss. A
conversation's reward is that of the whole of it, and all of its turns share its advantage.

`trainer` is what a run calls, `training` a round, `playing` the conversations of an update, `batch` the arithmetic on them,
`states` what is saved between updates.
"""

from t2t_plugins.trainers.grpo.trainer import Grpo

__all__ = ["Grpo"]
