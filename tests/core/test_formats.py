"""`t2t export` and `t2t generate --format`: tables and data sets of any testbed, which come back as the same instances."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import guessing
from addition import t2t
from t2t_core.errors import T2TError
from t2t_core.plugins import installed
from t2t_core.store import formats
from t2t_core.store.instance_files import file_set, read_instances

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def _guessing() -> None:
    guessing.register()


def bed(name: str = "guessing") -> Any:
    return installed().testbeds.make(name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["guessing", "mapf-frozenlake", "tictactoe"])
def test_frozen_sets_come_back_equal_from_every_form_that_is_read(name: str, tmp_path: Path) -> None:
    sets = [bed(name).load_set(each) for each in bed(name).protected_sets()]
    t2t("export", "--testbed", name, "--set", "all", "--format", "hf", "--out", tmp_path / "hf")
    back = {i.id: i for i in read_instances(bed(name), tmp_path / "hf")}
    assert back == {i.id: i for each in sets for i in each.instances}
    for each in sets:
        t2t("export", "--testbed", name, "--set", each.name, "--format", "parquet", "--out", tmp_path / "one.parquet")
        assert read_instances(bed(name), tmp_path / "one.parquet") == list(each.instances)
        t2t("export", "--testbed", name, "--set", each.name, "--format", "jsonl", "--out", tmp_path / "one.jsonl")
        assert file_set(bed(name), tmp_path / "one.jsonl").sha256 == file_set(bed(name), tmp_path / "one.parquet").sha256


def test_a_table_shows_questions_without_labels(tmp_path: Path) -> None:
    t2t("export", "--set", "3agents", "--format", "parquet", "--prompt-format", "coordinates", "--out", tmp_path / "a.parquet")
    rows = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    lake = bed("mapf-frozenlake")
    first = lake.load_set("3agents").instances[0]
    assert rows[0]["prompt"] == [{"role": "user", "content": lake.prompt(lake.unlabelled(first), "coordinates")}]
    assert (rows[0]["size"], rows[0]["optimal_makespan"], rows[0]["requires_wait"]) == (
        first.size,
        first.optimal_makespan,
        first.requires_wait,
    )
    assert rows[0]["table"] == "3 agents" and json.loads(rows[0]["instance"]) == first.to_dict()


def test_the_same_command_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        t2t("generate", "--configuration", "random", "--count", 30, "--format", "hf", "--out", tmp_path / name)
    for path in sorted(p for p in (tmp_path / "a").rglob("*") if p.is_file()):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_a_drawn_set_says_how_it_was_drawn(tmp_path: Path) -> None:
    configuration = tmp_path / "c.json"
    configuration.write_text(json.dumps({"3": {"data_ratio": 0.5, "hole_ratio": 0.123, "wait_ratio": 0.25},
                                         "5": {"data_ratio": 0.5, "hole_ratio": 0.2, "wait_ratio": 0}}))  # fmt: skip
    draw = ("generate", "--configuration", configuration, "--count", 20, "--seed", 7)
    t2t(*draw, "--format", "hf", "--out", tmp_path / "hf")
    t2t(*draw, "--out", tmp_path / "a.jsonl")
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "| 3 | 0.5 | 0.123 | 0.25 |" in card and "`seed` 7" in card and "`count` 20" in card and "| 3 | 10 |" in card
    assert hashlib.sha256((tmp_path / "a.jsonl").read_bytes()).hexdigest() in card and "Kept for measuring" not in card
    assert json.loads(re.findall(r"```json\n(.*?)```", card, re.DOTALL)[0])["3"]["hole_ratio"] == 0.123
    assert read_instances(bed("mapf-frozenlake"), tmp_path / "hf") == read_instances(bed("mapf-frozenlake"), tmp_path / "a.jsonl")


@pytest.mark.train
@pytest.mark.parametrize("name", ["mapf-frozenlake", "tictactoe"])
def test_datasets_loads_the_folder_by_the_code_on_its_card(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    t2t("export", "--testbed", name, "--set", "all", "--format", "hf", "--out", tmp_path / "hf")
    card = (tmp_path / "hf" / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace("path/to/this/folder", str(tmp_path / "hf")), names)
    first, *rest = [bed(name).load_set(each) for each in bed(name).protected_sets()]
    assert names["instances"] == list(first.instances)
    for each in rest:
        (rows,) = datasets.load_dataset(str(tmp_path / "hf"), each.name).values()
        assert [row["id"] for row in rows] == [instance.id for instance in each.instances]


@pytest.mark.train
def test_the_page_loads_a_set_back(tmp_path: Path, monkeypatch: Any) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    t2t("export", "--set", "all", "--format", "hf", "--out", "lakes")
    page = Path(__file__).parents[2] / "docs" / "data.md"
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[0], names)
    assert names["instances"] == list(bed("mapf-frozenlake").load_set("3agents").instances)


def test_rows_of_verl_and_skyrl_hold_the_question_and_the_instance(tmp_path: Path) -> None:
    for form, key in (("verl", "reward_model"), ("skyrl", "reward_spec")):
        t2t("export", "--testbed", "guessing", "--set", "numbers", "--format", form, "--out", tmp_path / form)
        rows = parquet.read_table(tmp_path / form).to_pylist()
        back = [bed().read_instance(json.loads(row[key]["ground_truth"])) for row in rows]
        assert back == list(bed().load_set("numbers").instances)
        assert rows[0]["data_source"] == "t2t/guessing" and rows[0]["prompt"][0]["role"] == "user"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--set", "numbers", "--format", "csv"), "no format 'csv'"),
        (("--set", "numbers", "--format", "movingai"), "no format 'movingai'"),  # another testbed's
        (("--format", "parquet"), "name a file or sets"),
        (("--set", "numbers", "--format", "parquet", "--prompt-format", "x"), "no prompt format 'x'"),
    ],
)
def test_what_cannot_be_written_is_said(words: tuple[str, ...], what: str, tmp_path: Path) -> None:
    with pytest.raises(T2TError, match=what):
        t2t("export", "--testbed", "guessing", *words, "--out", tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_only_lines_go_to_standard_output_and_answers_are_lines() -> None:
    draw = ("generate", "--configuration", "random", "--count", 3, "--format", "parquet")
    with pytest.raises(T2TError, match="only JSON Lines go to standard output"):
        t2t(*draw, "--out", "-")
    with pytest.raises(T2TError, match="answers are written as JSON Lines"):
        t2t(*draw, "--answers-from", "cbs", "--out", "x")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet", None])
def test_a_broken_table_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    if content is None:
        import pyarrow

        parquet.write_table(pyarrow.table({"instance": ["{", "1"]}), path)
    else:
        path.write_bytes(content)
    with pytest.raises(T2TError) as caught:
        read_instances(bed(), path)
    assert str(path) in caught.value.where


def test_without_pyarrow_the_message_says_what_to_install(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(T2TError, match="needs pyarrow") as caught:
        t2t("export", "--testbed", "guessing", "--set", "numbers", "--format", "parquet", "--out", tmp_path / "x")
    assert "[data]'" in str(caught.value.next)


def test_a_format_that_does_not_load_is_named(monkeypatch: Any) -> None:
    monkeypatch.setattr(type(bed()), "file_formats", {"odd": "no_such_module:X"}, raising=False)
    with pytest.raises(T2TError, match="format odd of guessing cannot be loaded"):
        formats.of(bed())
