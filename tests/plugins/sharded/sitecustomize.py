"""Lets Accelerate use FSDP on a CPU. Accelerate 1.15 turns that wish into plain data parallelism without a word: MULTI_CPU is
not among the kinds of machine whose state it makes into FSDP. Python imports this module in every process that has its folder on
the path; only those of a launched training are changed. Where a stand-in for vLLM is on the path too, they do without it: TRL
would take it for the real one."""

import os
import sys


def install() -> None:
    from accelerate import state
    from accelerate.utils import DistributedType

    original = state.AcceleratorState.__init__

    def init(self, *arguments, **named):
        if not state.AcceleratorState._shared_state:
            if not state.PartialState._shared_state:
                state.PartialState(True)
            shared = state.PartialState._shared_state
            if shared.get("distributed_type") == DistributedType.MULTI_CPU:
                shared["distributed_type"] = DistributedType.MULTI_XPU  # any kind of the list: inside it becomes FSDP
        original(self, *arguments, **named)

    state.AcceleratorState.__init__ = init


if "LOCAL_RANK" in os.environ:
    sys.path[:] = [place for place in sys.path if os.path.basename(place) != "one_gpu"]
    if os.environ.get("ACCELERATE_USE_FSDP") == "true":
        install()
