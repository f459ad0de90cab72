"""Check that the installed native core loads and solves. The script needs no other file, so it runs wherever a wheel is built."""

import os
import sys

from t2t_envs.frozen_lake import Instance, solve, verify
from t2t_envs.frozen_lake.solver import native_core

core = native_core()
if core is None:
    sys.exit("the installed wheel has no native core")
lake = Instance(size=3, holes=[(0, 1)], starts=[(2, 0), (1, 0)], goals=[(1, 2), (2, 2)])
solution = solve(lake)
paths = "\n".join(f"Agent {a}: {' -> '.join(f'({r},{c})' for r, c in path)}" for a, path in enumerate(solution.paths))
verdict = verify(lake, f"<answer>\n{paths}\n</answer>")
print(os.path.basename(core.__file__), "cost", solution.cost, "valid", verdict.valid)
sys.exit(0 if verdict.valid and solution.cost == 3 else "it solves wrongly")
