"""Sets as a task group of lm-evaluation-harness: a Parquet file and a task for each set, and a group with the plain mean of them.

    t2t export --set all --format lm-eval --out tasks
    lm_eval run --include_path tasks --tasks NAME --log_samples --output_path out ...

The harness opens data by absolute paths, so the folder stays where it was written; writing it again is one command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_core.errors import T2TError
from t2t_core.records import InstanceSet
from t2t_core.store import folders
from t2t_core.store.formats import About, FileFormat
from t2t_core.store.parquet import as_bytes

if TYPE_CHECKING:
    from t2t_core.hookspecs import AnyTestbed

MAX_TOKENS = 4096  # as `t2t bench` has it
_TASK = """\
task: {task}
dataset_path: parquet
dataset_kwargs: {{data_files: {{test: {path}}}}}
output_type: generate_until
test_split: test
doc_to_text: "{{{{prompt[0]['content']}}}}"
doc_to_target: "{{{{id}}}}"
process_results: !function {module}.process_results
generation_kwargs: {{until: [], do_sample: false, temperature: 0.0, max_gen_toks: {tokens}}}
metric_list:
{metrics}
metadata: {{version: 1.0, sha256: {sha256}}}
"""
_GROUP = """\
group: {group}
task: [{tasks}]
aggregate_metric_list:
{metrics}
metadata: {{version: 1.0}}
"""
_MODULE = '''\
"""Written by `t2t export --format lm-eval`: how answers are scored."""

from t2t.lm_eval_scores import scores


def process_results(doc, results):
    return scores({testbed!r}, {form!r}, doc, results)
'''


def _write(testbed: AnyTestbed, sets: Sequence[InstanceSet], out: Path, about: About) -> None:
    if testbed.turns > 1:
        what = f"{testbed.name} is played in turns, and the harness asks once"
        raise T2TError(what, where="--format lm-eval", next="Inspect AI and verifiers play it")
    form = about.prompt_format or testbed.prompt_formats[0]
    group, home = _word(testbed.name), out.absolute()
    module = f"{group}_scores"
    names = [metric.name for metric in testbed.metrics if metric.kind == "rate"] + ["reward"]
    tasks = []
    for each in sets:
        path = home / "data" / f"{each.name}.parquet"
        folders.write_atomic(path, as_bytes(testbed, each, form))
        task = f"{group}_{_word(each.name)}"
        metrics = "\n".join(f"  - {{metric: {name}, aggregation: mean, higher_is_better: true}}" for name in names)
        facts = {"task": task, "path": json.dumps(str(path)), "module": module, "metrics": metrics}
        text = _TASK.format(**facts, tokens=MAX_TOKENS, sha256=json.dumps(each.sha256))
        folders.write_atomic(home / f"{task}.yaml", text)
        tasks.append(task)
    means = "\n".join(f"  - {{metric: {name}, aggregation: mean, weight_by_size: false}}" for name in names)
    folders.write_atomic(home / f"{group}.yaml", _GROUP.format(group=group, tasks=", ".join(tasks), metrics=means))
    folders.write_atomic(home / f"{module}.py", _MODULE.format(testbed=testbed.name, form=form))


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


TASK_GROUP = FileFormat(write=_write)
