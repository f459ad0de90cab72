"""What the JSON files of a bench folder and of a submission hold; `folder` and `submission` say where they lie."""

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
    """A set of a bench: its own hash, that of the file with the instances asked, and of how many instances these are the first.
    `base` is the name the testbed knows it by (a twin's is that of the set it is a twin of)."""

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
    """What names the question: `settings` in a bench's run.json and in a submission. `system_prompt` is left out of the file
    if there is none."""

    testbed: str
    sets: list[SetRecord]
    limit: int | None
    samples: Annotated[int, Meta(ge=1, le=MAX_SAMPLES)]
    seed: int
    prompt_format: str
    system_prompt: str = ""

    def written(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {name: value for name, value in plain(self).items() if value or name != "system_prompt"}


@dataclass(frozen=True, kw_only=True)
class RowRecord:
    """`row.json`: one policy without its transport, the name the user gave it, what it says of itself, up to which limit it was
    asked (absent from earlier versions: that of the folder), the hash of those prompts, how it was asked at each start, and the
    version of the testbed's reader that gave the verdicts in answers.jsonl."""

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
    """The answers of a submission: how many lines, and their hash."""

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
    """`leaderboard.json` as far as a check goes by it. Its figures are not read: they are computed again from the answers and
    held against what stands there. `answer_pages` is absent from format 1."""

    format: Count
    reported: bool = True
    answer_pages: bool = False


@dataclass(frozen=True, kw_only=True)
class VerificationRecord:
    """`verification.json`: what `t2t verify` last said; `layout` is that of the pages, absent from the first one. `moved`
    verdicts were given by another reader than the testbed's present one, `reader`, and are others under it."""

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
