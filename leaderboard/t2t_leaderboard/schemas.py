"""What the JSON files of a bench folder and of a submission hold; `folder` and `submission` say where they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from t2t_core.evaluation.row_tables import RowTable
from t2t_core.records import Sampling
from t2t_core.store.schema import Count, Sha256, plain

MAX_SAMPLES = 1000
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}\Z")]
Date = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")]


@dataclass(frozen=True, kw_only=True)
class SetRecord:
    """A set of a bench: its own hash, the hash of the file with the instances asked, and the number of those instances. `base` is
    the name by which the testbed knows the set; for a twin, it is the name of the set that it is a twin of."""

    name: Name
    base: Name
    kind: str
    sha256: Sha256
    file_sha256: Sha256
    instances: Count
    of: Count
    twin_seed: int | None
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """What identifies the question: `settings` in a bench's run.json and in a submission. The file omits `system_prompt` if
    there is none."""

    testbed: str
    sets: list[SetRecord]
    limit: int | None
    samples: Annotated[int, Meta(ge=1, le=MAX_SAMPLES)]
    seed: int
    prompt_format: str
    system_prompt: str = ""

    def written(self) -> dict[str, Any]:
        """The settings as they are written to the file."""
        return {name: value for name, value in plain(self).items() if value or name != "system_prompt"}


@dataclass(frozen=True, kw_only=True)
class RowRecord:
    """`row.json`: one policy without its transport, the user's name for it, what it says about itself, the limit up to which it
    was asked (earlier versions omit it and mean the folder's), the hash of those prompts, how it was asked at each start, and
    the version of the testbed's reader that gave the verdicts in answers.jsonl."""

    format: int
    policy: str
    label: str = ""
    sampling: Sampling
    describe: dict[str, Any]
    limit: int | None = None
    prompts_sha256: str
    sessions: list[dict[str, Any]] = field(default_factory=list)
    reader: int = 1


@dataclass(frozen=True, kw_only=True)
class AnswersRecord:
    """The answers of a submission: the number of lines, and their hash."""

    lines: Count
    sha256: Sha256


@dataclass(frozen=True, kw_only=True)
class SubmissionRecord:
    """`metadata.json`: one row as a submission; `seal` is the hash of everything else in it."""

    format: int
    kind: str
    name: str
    date: Date
    policy: str
    sampling: Sampling
    describe: dict[str, Any]
    prompts_sha256: str
    settings: BenchSettings
    answers: AnswersRecord
    tables: dict[str, RowTable]
    sessions: list[dict[str, Any]]
    seal: Sha256
    reader: int = 1


@dataclass(frozen=True, kw_only=True)
class BoardHead:
    """The part of `leaderboard.json` that a check relies on. Its figures are not read: they are computed again from the answers
    and compared with the file. Format 1 has no `answer_pages`."""

    format: Count
    reported: bool = True
    answer_pages: bool = False


@dataclass(frozen=True, kw_only=True)
class VerificationRecord:
    """`verification.json`: what `t2t verify` last said. `layout` is the layout of the pages; the first layout omits it. `moved`
    counts the verdicts that another reader gave and that differ under the testbed's present one, `reader`."""

    verified: bool
    version: Annotated[str, Meta(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+-]{0,39}\Z")]
    layout: int = 1
    answers: Count
    rows: Count
    problems: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    moved: Count = 0
    reader: int = 1
