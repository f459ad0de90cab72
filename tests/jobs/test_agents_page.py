"""docs/agents.md: each of its commands is run, on a pretend family where a real one would train."""

import os
import re
import shlex
from pathlib import Path

import desks
import pytest
from chat_model import ChatModel
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_jobs import hidden, office
from t2t_jobs.probe import probe
from t2t_jobs.reward import DEFAULT

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\S*)[^\n]*\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [line for language, block in BLOCKS if not language for line in block.splitlines() if line.strip()]
WITH_WEIGHTS = ("train-agent", "llm:hf:", "tiny", "python -m")  # tests/jobs/test_train_agent.py and test_tiny_agent.py run these


@pytest.fixture(autouse=True)
def pretended(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing here is about power cuts
    monkeypatch.setattr(office, "probe", lambda folder, family, *_: probe(folder, family))
    monkeypatch.setattr(hidden, "baseline_scores", lambda *_: {"small": 0.1, "large": 0.25})
    desks.register()


def test_there_are_commands_of_every_kind():
    assert {shlex.split(line)[1] for line in COMMANDS if line.startswith("t2t ")} == {"episode", "bench-agents", "train-agent"}


@pytest.mark.parametrize("line", [line for line in COMMANDS if not any(word in line for word in WITH_WEIGHTS)])
def test_it_runs(line, tmp_path):
    with ChatModel() as server:
        meant = line.replace("draw-optimal", "pretend").replace("llm:openai:MODEL,", f"llm:endpoint:MODEL,base_url={server.url},")
        meant = meant.replace("http://localhost:8000/v1", server.url)
        program, *words = shlex.split(meant)
        words[words.index("--out") + 1] = str(tmp_path / "out")
        result = CliRunner().invoke(cli, [*words, "--pool", "pretend"], catch_exceptions=False)
    assert program == "t2t" and result.exit_code == 0 and (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("line", [line for line in COMMANDS if "train-agent" in line])
def test_a_training_can_be_asked_for(line):
    words = [word for word in shlex.split(line)[1:] if word != "--dry-run"]
    result = CliRunner().invoke(cli, [*words, "--families", "pretend", "--dry-run"], catch_exceptions=False)
    assert result.exit_code == 0 and "320 episodes" in result.output


def test_its_figures_are_those_of_the_code():
    weights = f"{DEFAULT.validation} · validation + {DEFAULT.quality:.2f} · quality + {DEFAULT.speed} · speed"
    assert weights in PAGE and f"{DEFAULT.post} · score + {1 - DEFAULT.post} · uplift" in PAGE
    assert f"worth −{-DEFAULT.unparsable}" in PAGE and f"{DEFAULT.decay} less for each further one" in PAGE
