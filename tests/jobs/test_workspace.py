"""The workspace, the tools on it, and the two ways of calling them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_core.errors import T2TError
from t2t_core.records import Response, ToolCall
from t2t_core.store.paths import SafePath
from t2t_jobs.protocol import MOST_CALLS, PlainText, ToolCalls, read_calls
from t2t_jobs.tools import TOOLS, Submitted, Toolbox
from t2t_jobs.workspace import Limits, Workspace


def call(name, **arguments):
    return ToolCall("1", name, json.dumps(arguments))


def box(**files):
    made = Workspace(None, {name.replace("_toml", ".toml"): text for name, text in files.items()})
    return Toolbox(made, lambda: {"weak": 0.125, "strong": 0.25}, lambda: Submitted("2 faults", False, True))


# --- the workspace


def test_what_is_written_is_read_listed_and_mirrored(tmp_path):
    space = Workspace(SafePath(tmp_path) / "space", {"job.toml": "a = 1\n"})
    space.write("notes/plan.md", "é\n")
    space.edit("job.toml", "1", "2")
    assert space.read("./job.toml") == "a = 2\n" == (tmp_path / "space" / "job.toml").read_text()
    assert space.list() == ["job.toml (6 bytes)", "notes/plan.md (3 bytes)"]
    assert (tmp_path / "space" / "notes" / "plan.md").read_text() == "é\n"


@pytest.mark.parametrize("path", ["../job.toml", "/etc/passwd", "a/../../b", "~/x", "..", "a/.."])
def test_a_path_that_leads_out_is_refused_by_name(path):
    space = Workspace(None, {})
    for use in (lambda: space.read(path), lambda: space.write(path, "x"), lambda: space.edit(path, "a", "b")):
        with pytest.raises(T2TError, match="leads out of the workspace"):
            use()


@pytest.mark.parametrize("path", ["", ".", "a//b", "a/", ".hidden", "a b", "x\0y", "a/b/c/d/e", "x" * 200, "a\nb", "é.toml"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(T2TError, match="no path"):
        Workspace(None, {}).write(path, "x")


def test_a_link_on_the_disk_leads_nowhere(tmp_path):
    """If somebody on the machine puts a link where the agent writes, the mirror refuses it, and a read never follows it."""
    (tmp_path / "secret").write_text("secret")
    space = Workspace(SafePath(tmp_path) / "space", {"job.toml": "a\n"})
    (tmp_path / "space" / "link").symlink_to(tmp_path)
    with pytest.raises(T2TError):
        space.write("link/secret", "x")
    with pytest.raises(T2TError, match="no file"):
        Workspace(None, {}).read("link/secret")
    assert (tmp_path / "secret").read_text() == "secret"


def test_it_is_bounded():
    space = Workspace(None, {}, Limits(files=2, file_bytes=10, bytes=15))
    space.write("a", "0123456789")
    for path, text in (("b", "01234567890"), ("b", "012345")):
        with pytest.raises(T2TError, match="at most"):
            space.write(path, text)
    space.write("b", "01234")
    with pytest.raises(T2TError, match="too many"):
        space.write("c", "")
    space.write("a", "")  # and what was there may be replaced
    assert space.files == {"a": "", "b": "01234"}


def test_a_file_is_no_folder_and_half_a_surrogate_no_text():
    space = Workspace(None, {"a": "x"})
    for path, text in (("a/b", "x"), ("b", "\ud800")):
        with pytest.raises(T2TError):
            space.write(path, text)
    with pytest.raises(T2TError, match="2 times"):
        Workspace(None, {"a": "x x"}).edit("a", "x", "y")


@given(st.text(max_size=60))
def test_no_name_ever_leaves_the_folder(name):
    space = Workspace(None, {})
    try:
        space.write(name, "x")
    except T2TError:
        return
    (path,) = space.files
    assert not path.startswith("/") and ".." not in path.split("/") and "\0" not in path


# --- the tools


def test_every_tool_does_what_it_says():
    tools = box(job_toml="rounds = 1\n")
    assert tools.run(call("read_file", path="job.toml")).text == "rounds = 1\n"
    assert not tools.run(call("write_file", path="x.md", content="x")).failed
    assert not tools.run(call("edit_file", path="job.toml", old="1", new="2")).failed
    assert tools.workspace.files == {"job.toml": "rounds = 2\n", "x.md": "x"}
    assert "x.md (1 bytes)" in tools.run(call("list_files")).text
    assert tools.run(call("get_baseline_scores")).text == "weak: 0.125\nstrong: 0.250"
    submitted = tools.run(ToolCall("1", "submit_job", ""))
    assert submitted.submitted == Submitted("2 faults", False, True) and submitted.failed


@pytest.mark.parametrize(
    "wrong",
    [
        call("remove_file", path="job.toml"),
        call("read_file"),
        call("read_file", path=3),
        call("read_file", path="job.toml", encoding="utf-8"),
        ToolCall("1", "read_file", "{"),
        ToolCall("1", "read_file", "[1]"),
        ToolCall("1", "read_file", "[" * 100_000),
        ToolCall("1", "submit_job", '{"force": true}'),
    ],
)
def test_a_wrong_call_is_told_and_raises_nothing(wrong):
    result = box().run(wrong)
    assert result.failed and result.text.startswith("error: ") and "next:" in result.text


def test_the_schemas_name_every_argument():
    for tool in TOOLS:
        shown = tool.to_dict()["function"]["parameters"]
        assert set(shown["properties"]) == set(shown["required"]) and shown["additionalProperties"] is False


# --- plain text

SAID = """<think><submit_job/></think>First I look.
<read_file path='README.md' /> <list_files>
<write_file path=job.toml>
```toml
base = "strong"
```
</write_file>
<edit_file path="job.toml"><old>a <b></old><new></new></edit_file>
<submit_job>"""


def test_tags_are_read_in_their_order():
    read = [(call.name, json.loads(call.arguments)) for call in read_calls(SAID)]
    assert read == [
        ("read_file", {"path": "README.md"}),
        ("list_files", {}),
        ("write_file", {"path": "job.toml", "content": 'base = "strong"\n'}),
        ("edit_file", {"path": "job.toml", "old": "a <b>", "new": ""}),
        ("submit_job", {}),
    ]


def test_a_tag_that_is_not_closed_runs_to_the_end_and_takes_what_stands_in_it():
    (only,) = read_calls('<write_file path="a.md">\n<submit_job/>\n')
    assert json.loads(only.arguments) == {"path": "a.md", "content": "<submit_job/>\n"}


def test_the_form_of_open_models_is_read():
    (only,) = read_calls('<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>')
    assert (only.name, json.loads(only.arguments)) == ("read_file", {"path": "a"})


@given(st.text(alphabet="abc =\n", max_size=80), st.sampled_from(["job.toml", "notes/a.md"]))
def test_a_files_text_comes_through_a_tag(text, path):
    (only,) = read_calls(f'<write_file path="{path}">\n{text}\n</write_file>')
    assert json.loads(only.arguments) == {"path": path, "content": f"{text}\n"}


def test_calls_without_end_are_bounded():
    assert len(read_calls("<list_files/>" * 10_000)) == MOST_CALLS
    assert len(ToolCalls().calls(Response("", tool_calls=[call("list_files")] * 100))) == MOST_CALLS


def test_results_are_told_as_each_form_tells_them():
    calls = (ToolCall("x1", "list_files", "{}"), ToolCall("x2", "submit_job", "{}"))
    said, first, second = ToolCalls().spoken("Well.", calls, ["a", "b"])
    assert said.to_dict()["tool_calls"][1]["function"]["name"] == "submit_job"
    assert (first.role, first.tool_call_id, second.content) == ("tool", "x1", "b")
    said, told = PlainText().spoken("Well.", calls, ["a", "b"])
    assert told.role == "user" and told.content == "1. list_files:\na\n\n2. submit_job:\nb"
    for manner in (ToolCalls(), PlainText()):
        assert "No tool was called" in manner.spoken("Hm.", (), [])[-1].content
