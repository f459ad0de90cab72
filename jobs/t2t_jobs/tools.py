"""An agent's six tools: what chat models are offered, and what happens when one is called.

The tools reach the workspace, the scores of the untrained bases and the submission of a job, and nothing else. If an agent makes
a mistake, it gets a text that says what is wrong, why, and what to do next; nothing that it writes raises an exception. What is
wrong with this machine does raise one: it is the user who must mend it, and the agent would only waste its turns on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from t2t_core.errors import T2TError
from t2t_core.records import Tool, ToolCall
from t2t_core.store import jsonlines
from t2t_jobs.workspace import Workspace

_TEXTS: Mapping[str, str] = {
    "path": "path of a file in the workspace, for example job.toml",
    "content": "the file's whole text",
    "old": "the text to replace; it must stand in the file exactly once",
    "new": "the text to put in its place",
}


def _tool(name: str, description: str, *arguments: str) -> Tool:
    properties = {argument: {"type": "string", "description": _TEXTS[argument]} for argument in arguments}
    schema = {"type": "object", "properties": properties, "required": list(arguments), "additionalProperties": False}
    return Tool(name, description, schema)


SUBMIT = "submit_job"
BASELINES = "get_baseline_scores"
TOOLS = (
    _tool("read_file", "Read a file of the workspace.", "path"),
    _tool("write_file", "Write a whole file of the workspace; one that is there is replaced.", "path", "content"),
    _tool("edit_file", "Replace a piece of text in a file of the workspace.", "path", "old", "new"),
    _tool("list_files", "List the files of the workspace with their sizes."),
    _tool(BASELINES, "The scores of the untrained bases in the hidden evaluation."),
    _tool(
        SUBMIT,
        "Submit the workspace as a job. Everything that is wrong with it comes back at once; a valid job is trained and ends the "
        "episode. The fewer submissions, the better.",
    ),
)
_BY_NAME = {tool.name: tool for tool in TOOLS}


@dataclass(frozen=True)
class Submitted:
    """The outcome of a submission: the text for the agent, whether the job is valid, and whether it could be read at all."""

    text: str
    valid: bool
    parsable: bool


@dataclass(frozen=True)
class Result:
    """The outcome of a call: the text for the agent, whether the call failed, and the submission if it was one."""

    text: str
    failed: bool = False
    submitted: Submitted | None = None


@dataclass(frozen=True)
class Toolbox:
    """What the tools work on: the workspace, `baselines`, which returns the untrained bases' scores, and `submit`, which submits
    the workspace as it is."""

    workspace: Workspace
    baselines: Callable[[], Mapping[str, float]]
    submit: Callable[[], Submitted]

    def run(self, call: ToolCall) -> Result:
        """Make a call. A call that the agent got wrong has a failed result. Whatever goes wrong outside the workspace (no budget
        left, a full disk, a missing library) is not the agent's mistake and raises T2TError."""
        try:
            given = arguments_of(call)
            if call.name not in (BASELINES, SUBMIT):
                return self._edit(call.name, given)
        except T2TError as error:
            return Result(f"error: {error}", failed=True)
        if call.name == BASELINES:
            return Result("\n".join(f"{base}: {score:.3f}" for base, score in self.baselines().items()))
        submitted = self.submit()
        return Result(submitted.text, not submitted.valid, submitted)

    def _edit(self, name: str, given: Mapping[str, str]) -> Result:
        workspace = self.workspace
        match name:
            case "read_file":
                return Result(workspace.read(given["path"]))
            case "write_file":
                workspace.write(given["path"], given["content"])
                return Result(f"{given['path']} is written")
            case "edit_file":
                workspace.edit(given["path"], given["old"], given["new"])
                return Result(f"{given['path']} is changed")
            case _:  # list_files: `arguments_of` lets no other name through
                return Result("\n".join(workspace.list()))


def arguments_of(call: ToolCall) -> dict[str, str]:
    """A call's arguments as texts by name. Raises T2TError if there is no such tool, or if it takes other arguments."""
    tool = _BY_NAME.get(call.name)
    if tool is None:
        raise T2TError(f"there is no tool {ascii(call.name)[1:-1][:60]}", next=f"call one of {', '.join(_BY_NAME)}")
    required = tool.parameters["required"]
    shape = "{" + ", ".join(f'"{name}": "..."' for name in required) + "}"
    data = _object(call, shape)
    for name in required:
        if name not in data:
            raise T2TError(f"{call.name} needs the argument {name}", next=f"give {shape}")
        if not isinstance(data[name], str):
            raise T2TError(f"the argument {name} of {call.name} must be a text", next=f"give {shape}")
    unknown = [name for name in data if name not in required]
    if unknown:
        raise T2TError(f"{call.name} takes no argument {ascii(unknown[0])[1:-1][:60]}", next=f"give {shape}")
    return {name: data[name] for name in required}


def _object(call: ToolCall, shape: str) -> dict[str, Any]:
    try:
        data = jsonlines.loads(call.arguments.strip() or "{}")
    except jsonlines.Unreadable as error:
        raise T2TError(f"the arguments of {call.name} are no JSON", cause=str(error), next=f"give {shape}") from None
    if not isinstance(data, dict):
        raise T2TError(f"the arguments of {call.name} are no JSON object", next=f"give {shape}")
    return data
