"""Instances as a folder that `datasets.load_dataset` reads: a Parquet file for each set, and a card that says what they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_core import __version__
from t2t_core.records import InstanceSet
from t2t_core.store import folders
from t2t_core.store.formats import About, FileFormat
from t2t_core.store.parquet import as_bytes

if TYPE_CHECKING:
    from t2t_core.hookspecs import AnyTestbed

SPLITS = {"validation": "validation", "train": "train"}  # every other kind of set is a test set
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def _write(testbed: AnyTestbed, sets: Sequence[InstanceSet], out: Path, about: About) -> None:
    for each in sets:
        path = out / each.name / f"{_split(each)}-00000-of-00001.parquet"
        folders.write_atomic(path, as_bytes(testbed, each, about.prompt_format))
    folders.write_atomic(out / "README.md", card(testbed, sets, about))


def card(testbed: AnyTestbed, sets: Sequence[InstanceSet], about: About) -> str:
    """The data set's README: the header that the Hub reads, and what somebody needs who finds it there."""
    kept = [each.name for each in sets if each.kind in ("evaluation", "validation", "twin")]
    warning = (
        f"**Kept for measuring**: {', '.join(f'`{name}`' for name in kept)}. Whoever trains on them has nothing left to be "
        f"measured by. `t2t generate` never draws their instances, {testbed.sameness}.\n\n"
        if kept
        else ""
    )
    form = about.prompt_format or testbed.prompt_formats[0]
    return (
        f"{_header(testbed, sets)}# {testbed.title}\n\n"
        f"Instances of the testbed `{testbed.name}`, written by t2t-core {__version__}. The questions are worded in the format "
        f"`{form}`.\n\n{warning}{_sets(testbed, sets)}{_generator(testbed, about)}{_columns(testbed, sets)}"
    )


_HEADER = """---
license: mit
language:
- en
task_categories:
- text-generation
pretty_name: {title}
tags:
- benchmark
- planning
- reinforcement-learning
size_categories:
- {size}
configs:
{configs}
---

"""
_CONFIG = """- config_name: {name}
  data_files:
  - split: {split}
    path: {path}"""


def _header(testbed: AnyTestbed, sets: Sequence[InstanceSet]) -> str:
    total = sum(len(each.instances) for each in sets)
    size = next((name for most, name in _SIZES if total < most), "n>1M")
    configs = [
        _CONFIG.format(name=_text(each.name), split=_split(each), path=_text(f"{each.name}/{_split(each)}-*.parquet"))
        for each in sets
    ]
    return _HEADER.format(title=_text(testbed.title), size=_text(size), configs="\n".join(configs))


def _sets(testbed: AnyTestbed, sets: Sequence[InstanceSet]) -> str:
    lines = ["| set | split | instances | SHA-256 of its JSON Lines |", "|---|---|---:|---|"]
    lines += [f"| `{s.name}` | {_split(s)} | {len(s.instances):,} | `{s.sha256}` |" for s in sets]
    counts = Counter(testbed.place(instance).group for each in sets for instance in each.instances)
    lines += ["", f"| {testbed.group} | instances |", "|---|---:|"]
    return "\n".join([*lines, *(f"| {group} | {counts[group]:,} |" for group in counts), "", ""])


def _generator(testbed: AnyTestbed, about: About) -> str:
    """The settings and the configuration that they were drawn by; nothing for sets that were not drawn here."""
    if about.configuration is None:
        return ""
    facts = [f"`{name}` {value}" for name, value in about.settings.items() if value not in (None, "", ())]
    names = list(dict.fromkeys(name for knobs in about.configuration.values() for name in knobs if name != "cells"))
    lines = ["## The generator", "", "Drawn with " + ", ".join(facts) + ", from this configuration:", ""]
    lines += [f"| {testbed.group} | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for group, knobs in about.configuration.items():
        values = [f"{knobs[name]:.4g}" if isinstance(knobs.get(name), float | int) else "–" for name in names]
        lines.append(f"| {group} | " + " | ".join(values) + " |")
    exact = json.dumps(about.configuration, indent=1)
    return "\n".join([*lines, "", f"<details><summary>As JSON</summary>\n\n```json\n{exact}\n```\n\n</details>", "", ""])


def _columns(testbed: AnyTestbed, sets: Sequence[InstanceSet]) -> str:
    return f"""## Columns

`prompt` is a list of chat messages and shows no label. `instance` is the whole instance as JSON, with its labels; the other
columns repeat parts of it, and say where it stands on the board (`table`, `column`, `group`, `cell`).

```python
import json
from datasets import load_dataset
from t2t_core.plugins import installed

testbed = installed().testbeds.make("{testbed.name}")
rows = load_dataset("path/to/this/folder", {_text(sets[0].name)}, split={_text(_split(sets[0]))})
instances = [testbed.read_instance(json.loads(row["instance"])) for row in rows]
```

Answers to them, as `{{"id": ..., "text": ...}}` a line, are scored by `t2t bench --testbed {testbed.name} --policy answers:FILE`.
"""


def _split(given: InstanceSet) -> str:
    return SPLITS.get(given.kind, "test")


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


DATA_SET = FileFormat(write=_write)
