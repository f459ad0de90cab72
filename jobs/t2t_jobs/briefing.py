"""What an agent is told of its task: the text that opens an episode, and the files that lie in its workspace at the start.

It is the simplified view that the neighbouring system shows too: quality is told as three quarters gain and one quarter score,
and that fewer submissions are better; the weights of the three parts are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2t_jobs.family import Family
from t2t_jobs.job import FILE, document

EXAMPLES = 3
_GRADE = """Your job is graded by what it teaches. The trained model answers a hidden evaluation that nobody can read: a quarter
of the grade is its score there, three quarters how much better it is than the best untrained base in the same evaluation
(get_baseline_scores tells what those reach). A job that is not valid, or dies, teaches nothing. Fewer submissions are better,
and a quick job is a little better than a slow one."""


_CODE = {
    "reward.py": "`def reward(terms, verdict, instance)` returns a number that is added to the training's reward",
    "environment.py": "`def generate(count, seed)` returns the instances of a round, as a list of objects",
}


def task_text(family: Family, allow_code: Sequence[str] = ()) -> str:
    """The task in words, with everything that may be edited, and the files of code that a job may bring."""
    budget = family.budget
    bases = "\n".join(f'- "{name}": {base.description}' for name, base in family.bases.items())
    bounds = "\n".join(f"- {key}: {bound.words()}{_why(bound.description)}" for key, bound in family.bounds.items())
    return f"""# {family.title}

{family.description}

You write a training job: the file {FILE}, a table of settings in TOML. The one that lies in the workspace is complete and
valid; what your file leaves out keeps its value there. Change what you think will teach more, then submit it with submit_job.

{_GRADE}

## Bases

{bases}

## What may be edited

{bounds}

## Limits

A job has {budget.cpu_seconds:g} CPU-seconds, its evaluation included, and trains on at most {budget.conversations}
conversations (rounds x generation.samples x training.epochs x training.group). You have {budget.submissions} submissions,
{budget.turns} turns and {budget.tokens} tokens.
{_code(allow_code)}"""


def _code(allow_code: Sequence[str]) -> str:
    if not allow_code:
        return ""
    told = "\n".join(f"- {name}: {_CODE.get(name, 'allowed')}" for name in allow_code)
    return f"\n## Code\n\nBeside {FILE} the job may bring these files. They run shut in: no network, no other file.\n\n{told}\n"


def _why(description: str) -> str:
    return f". {description[:1].upper()}{description[1:]}" if description else ""


def opening_files(family: Family, allow_code: Sequence[str] = ()) -> Mapping[str, str]:
    """The workspace at the start: the task, the job to start from, development examples."""
    return {"README.md": task_text(family, allow_code), FILE: document(family.start), "examples.md": _examples(family)}


def _examples(family: Family) -> str:
    shown = [
        f"## Example {number}\n\nThe model is asked:\n\n{_quoted(example.prompt)}\n\n"
        f"A good answer:\n\n{_quoted(example.answer)}\n"
        for number, example in enumerate(family.examples(EXAMPLES), 1)
    ]
    return "# Development examples\n\nNone of them is in the hidden evaluation.\n\n" + "\n".join(shown)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or ">"
