"""Preregistered studies on the pretend testbed, with a policy that learns what it is trained on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.evaluation.stats import holm
from t2t_core.hookspecs import TrainingJob
from t2t_core.loop.sweep import PlannedRun
from t2t_core.plugins import installed
from t2t_core.records import Proposal, Response, TrainingResult
from t2t_core.run.progress import Reporter
from t2t_core.seeding import Stream
from t2t_core.store.paths import SafePath
from t2t_core.study import outcomes
from t2t_core.study.comparing import compare
from t2t_core.study.plan import code_hash, read_plan
from t2t_core.study.running import run_plan
from t2t_core.study.study_document import study_document

pytestmark = pytest.mark.usefixtures("lake_plugins", "learning")
PLAN = """
title = "Practice makes"
seeds = [1, 2]
measure = [{set = "2agents"}, {set = "3agents", metric = "valid"}]
margin = 5.0
start = "random"
[experiment]
testbed = "lake"
policy = "learner:{checkpoint}"
checkpoint = "{plan}/start"
trainer = "practice"
context = "F"
rounds = 2
generation = {samples = 20}
validation = {set = "validation"}
evaluation = {agents = "2,3"}
[arms.fixed]
designer = "fixed"
[arms.fixed-again]
designer = "fixed"
replica = 1
[arms.both]
designer = "schedule:{plan}/both.json"
[arms.neither]
designer = "lazy"
[gate]
positive = "both"
negative = "neither"
at_least = 0.5
above = -90.0
[primary]
arm = "both"
against = "fixed"
[[secondary]]
arm = "both"
against = "neither"
[[secondary]]
arm = "fixed-again"
against = "fixed"
"""


class Practice:
    """Each instance of a group makes the policy a little better there."""

    def train(self, job: TrainingJob) -> TrainingResult:
        assert job.checkpoint is not None
        skills = json.loads((job.checkpoint / "skills.json").read_text())
        chance = Stream.of(job.seed, "practice")
        for instance in job.instances:
            skills[instance.group] = min(0.98, skills[instance.group] + 0.015 * (0.8 + 0.4 * chance.uniform()))
        job.folder.mkdir(parents=True)
        (job.folder / "skills.json").write_text(json.dumps(skills))
        (job.folder / "model.safetensors").write_text(json.dumps(skills))
        return TrainingResult(job.folder, {}, len(job.instances), 2, 10 * len(job.instances))


class Learner:
    """Repeats the number where its skill in the group is above the number's difficulty."""

    def __init__(self, argument: str = "", settings: Mapping[str, str] | None = None) -> None:
        self.skills = json.loads((Path(argument) / "skills.json").read_text())

    def describe(self) -> Mapping[str, Any]:
        return {"name": "learner", "deterministic": True, "batch_size": None}

    def respond(self, tasks: Sequence[Any], sampling: Any) -> Iterator[tuple[int, Response]]:
        for position, task in enumerate(tasks):
            hard = Stream.of(task.instance.number, task.instance_id).uniform()
            right = hard < self.skills[task.instance.group]
            yield position, Response(str(task.instance.number) if right else "?", completion_tokens=3)


class Lazy:
    """Puts the whole budget on the first group."""

    def propose(self, brief: Any) -> Any:
        values = brief.previous.to_dict()
        for place, group in enumerate(values):
            values[group]["data_ratio"] = float(place == 0)
        return Proposal("", values)


@pytest.fixture
def learning(lake_plugins: None) -> Iterator[None]:
    plugins = installed()
    plugins.trainers.add("practice", lambda argument, settings: Practice())
    plugins.policies.add("learner", Learner)
    plugins.designers.add("lazy", lambda argument, settings: Lazy())
    yield
    del plugins.trainers.entries["practice"], plugins.policies.entries["learner"], plugins.designers.entries["lazy"]


def planned(folder: Path, text: str = PLAN) -> Path:
    (folder / "start").mkdir(parents=True, exist_ok=True)
    (folder / "start" / "skills.json").write_text('{"3": 0.1, "4": 0.1}')
    half = {"data_ratio": 0.5, "hole_ratio": 0.2, "wait_ratio": 0.5}
    (folder / "both.json").write_text(json.dumps({"3": half, "4": half}))
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def t2t(*arguments: Any, code: int = 0) -> str:
    """What the command prints, its error included."""
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    error = result.exception
    return result.output + (f"{error} {error.where} {error.cause}" if isinstance(error, T2TError) else "")


def test_a_study_runs_compares_and_goes_on(tmp_path: Path) -> None:
    path = planned(tmp_path)
    output = t2t("sweep", "--plan", path, "--out", tmp_path / "out")
    assert "Primary: both minus fixed" in output and "names no hash of the code" in output
    result = json.loads((tmp_path / "out" / "study.json").read_text())
    by_role = {d["role"]: d for d in result["differences"]}
    assert by_role["gate"]["value"] > 0 and result["leverage"] is True
    arms = {arm["arm"]: arm for arm in result["arms"]}
    for d in result["differences"]:
        assert d["value"] == pytest.approx(arms[d["arm"]]["mean"] - arms[d["against"]]["mean"])
        assert d["low"] <= d["value"] <= d["high"] and d["detectable"] >= 0
    assert arms["both"]["worst_quarter"] >= arms["neither"]["worst_quarter"]
    assert arms["both"]["area_over_tokens"] is not None and arms["fixed"]["tokens"] == 400
    secondary = [d for d in result["differences"] if d["role"] == "secondary"]
    assert [d["p_holm"] for d in secondary] == pytest.approx(list(holm({d["arm"]: d["p"] for d in secondary}).values()))
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file() and p.name != ".lock"}
    t2t("report", tmp_path / "out", "--out", tmp_path / "study.html")
    page = (tmp_path / "study.html").read_text()
    for text in ("Comparisons at a glance", "The gate holds", "Every seed", "On the way", "5 points to either side of zero"):
        assert text in page, text
    t2t("sweep", "--plan", path, "--out", tmp_path / "out")
    assert before == {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file() and p.name != ".lock"}
    changed = planned(tmp_path, PLAN.replace("margin = 5.0", "margin = 9.0"))
    assert "another plan" in t2t("sweep", "--plan", changed, "--out", tmp_path / "out", code=1)


@pytest.mark.thorough
def test_no_designer_is_compared_before_the_last_arm_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls = planned(tmp_path), []
    train = Practice.train

    def stopped(self: Practice, job: TrainingJob) -> TrainingResult:
        calls.append(job.seed)
        if len(calls) > 8:
            raise T2TError("stopped here")
        return train(self, job)

    monkeypatch.setattr(Practice, "train", stopped)
    output = t2t("sweep", "--plan", path, "--out", tmp_path / "out", code=1)
    assert "stopped here" in output and "Primary" not in output and "better" not in output
    gate = {("both", "neither"), ("fixed-again", "fixed")}
    compared = {tuple(line.split(":")[0].split(" minus ")) for line in map(str.strip, output.splitlines()) if " minus " in line}
    assert compared <= gate
    assert not (tmp_path / "out" / "study.json").exists()
    monkeypatch.setattr(Practice, "train", train)
    t2t("sweep", "--plan", path, "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "study.json").read_text())["seeds"] == [1, 2]


@pytest.mark.thorough
def test_chance_is_common_and_byte_identical_runs_count_once(tmp_path: Path) -> None:
    """The same configuration draws the same instances in every arm of a seed, but for a replica."""
    text = PLAN.replace("[arms.neither]", '[arms.twin]\ndesigner = "fixed"\n[arms.neither]')
    text += '[[secondary]]\narm = "twin"\nagainst = "fixed"\n[[secondary]]\narm = "both"\nagainst = "twin"\n'
    text += '[[secondary]]\narm = "neither"\nagainst = "fixed"\n[[secondary]]\narm = "neither"\nagainst = "twin"\n'
    file = read_plan(planned(tmp_path, text))
    result = compare(file, run_plan(file, tmp_path / "out", Reporter(lambda line: None)))
    by_pair = {(d.arm, d.against): d for d in result.differences if d.role == "secondary"}
    assert by_pair["twin", "fixed"].verdict == "one designer" and by_pair["twin", "fixed"].p_holm is None
    assert by_pair["twin", "fixed"].identical == 2
    assert by_pair["neither", "fixed"].p_holm == by_pair["neither", "twin"].p_holm
    once = [("both", "neither"), ("fixed-again", "fixed"), ("both", "twin"), ("neither", "fixed")]
    family = {str(pair): by_pair[pair].p or 0.0 for pair in once}
    assert by_pair["neither", "fixed"].p_holm == pytest.approx(holm(family)[str(("neither", "fixed"))])
    assert {arm.arm: arm.same_as for arm in result.arms if arm.same_as} == {"fixed": ["twin"], "twin": ["fixed"]}

    def drawn(arm: str, index: int) -> bytes:
        return (tmp_path / "out" / "seed_1" / arm / f"round_{index}" / "instances.jsonl").read_bytes()

    assert drawn("fixed", 0) == drawn("fixed-again", 0) == drawn("both", 0)
    assert drawn("fixed", 1) == drawn("twin", 1) != drawn("fixed-again", 1)


@pytest.mark.thorough
def test_the_arms_of_the_gate_come_first(tmp_path: Path) -> None:
    text = PLAN.replace("[arms.neither]", '[arms.later]\ndesigner = "random"\n[arms.neither]')
    file = read_plan(planned(tmp_path, text))
    said: list[str] = []
    run_plan(file, tmp_path / "out", Reporter(said.append))
    begun = [line for line in said if line.startswith("seed ")]
    assert [line for line in begun if "later" in line] == ["seed 1: later", "seed 2: later"]
    assert begun.index("seed 2: neither") < begun.index("seed 1: later")
    verdict = next(line for line in said if line.startswith("the gate, over 2 seeds"))
    assert said.index(verdict) < said.index("seed 1: later") and "it holds: designers can be told apart" in verdict
    gate = json.loads((tmp_path / "out" / "gate.json").read_text())
    whole = json.loads(json.dumps(asdict(compare(file, run_plan(file, tmp_path / "out", Reporter(said.append))))))
    assert gate["differences"] == [d for d in whole["differences"] if d["role"] in ("gate", "same")]
    assert gate["leverage"] is whole["leverage"] is True


@pytest.mark.thorough
def test_runs_that_were_done_elsewhere_ahead_make_the_same_study(tmp_path: Path) -> None:
    """The order is that of a cluster: the shared round of a seed first, and the arms of the gate before the others."""
    file = read_plan(planned(tmp_path, PLAN.replace("[arms.neither]", '[arms.later]\ndesigner = "random"\n[arms.neither]')))
    plain = compare(file, run_plan(file, tmp_path / "plain", Reporter(lambda line: None)))
    orders: list[list[str]] = []

    def ahead(seeds: Sequence[Sequence[PlannedRun]]) -> None:
        orders.extend([run.arm for run in runs] for runs in seeds)
        for runs in seeds:
            for run in (runs[0], *reversed(runs[1:])):
                run.run(Reporter(lambda line: None))

    result = compare(file, run_plan(file, tmp_path / "out", Reporter(lambda line: None), ahead))
    count, arms = len(file.plan.seeds), list(file.plan.arms)
    assert result == plain
    assert orders == [["base", *file.plan.gate_arms()]] * count + [["base", *arms]] * count
    run_plan(file, tmp_path / "out", Reporter(lambda line: None), ahead)
    assert orders[2 * count :] == [], "nothing is left to do"


def test_a_machine_with_other_code_does_no_run_of_a_study(tmp_path: Path) -> None:
    file = read_plan(planned(tmp_path))

    def ahead(seeds: Sequence[Sequence[PlannedRun]]) -> None:
        replace(seeds[0][0], code="0" * 64).run(Reporter())  # type: ignore[call-arg]

    with pytest.raises(T2TError, match="has other code than the study"):
        run_plan(file, tmp_path / "out", Reporter(lambda line: None), ahead)


@pytest.mark.thorough
def test_what_is_kept_of_a_seed_gives_the_study_again(tmp_path: Path) -> None:
    path, out = planned(tmp_path), tmp_path / "out"
    t2t("sweep", "--plan", path, "--out", out)
    kept = {name: (out / name).read_bytes() for name in ("study.json", "study.md", "code.json")}
    for place in (*out.glob("seed_*"), out / "study.json", out / "study.md"):
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    assert sum(file.stat().st_size for file in out.glob("outcomes/*")) < 40_000
    output = t2t("sweep", "--plan", path, "--out", out)
    assert kept == {name: (out / name).read_bytes() for name in kept} and "round 0" not in output
    assert not list(out.glob("seed_*"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"plan": "', '"plan": "0', "plan: expected `str` matching regex"),
        ('"fixed-again":', '"foxed-again":', "the plan has no arm 'foxed-again'"),
        ('"updates": 2', '"updates": -2', ">= 0"),
        ('"3": "', '"3": "1', "not those to the set"),
        ('"3": "0', '"3": "x', ".valid.3: expected"),
        ('"3": "1', '"3": "x', ".valid.3: expected"),
    ],
)
def test_outcomes_that_were_edited_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path, out = planned(tmp_path), tmp_path / "out"
    t2t("sweep", "--plan", path, "--out", out)
    kept = out / "outcomes" / "seed_2.json"
    edited = kept.read_text().replace(old, new)
    assert edited != kept.read_text()
    kept.write_text(edited)
    before = (out / "study.json").read_bytes()
    assert said in t2t("sweep", "--plan", path, "--out", out, code=1) and (out / "study.json").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"sha256": ["nonsense"]}', r"sha256\[0\]"), ("{}", "sha256: is missing"), ('{"sha256": "a"}', "sha256"), ("[]", "object")],
)
def test_a_damaged_record_of_the_code_is_refused_by_its_field(tmp_path: Path, text: str, said: str) -> None:
    folder = SafePath(tmp_path)
    assert outcomes.code_hashes(folder) == [], "a study that has not begun"
    (tmp_path / outcomes.CODE).write_text(text)
    with pytest.raises(T2TError, match=said) as error:
        outcomes.code_hashes(folder)
    assert "code.json" in str(error.value)
    (tmp_path / outcomes.CODE).write_text(json.dumps({"sha256": ["ab" * 32]}))
    assert outcomes.code_hashes(folder) == ["ab" * 32]


def test_a_world_without_leverage_ranks_nobody(tmp_path: Path) -> None:
    text = PLAN.replace('negative = "neither"', 'negative = "fixed-again"').replace("at_least = 0.5", "at_least = 90.0")
    file = read_plan(planned(tmp_path, text))
    result = compare(file, run_plan(file, tmp_path / "out", Reporter(lambda line: None)))
    assert result.leverage is False
    lead = study_document(result).lead[0]
    assert "No leverage at this budget" in lead.text and lead.tone == "bad"  # type: ignore[union-attr]


@pytest.mark.thorough
def test_every_deviation_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Lazy, brief: Any) -> Any:
        raise ValueError("no idea")

    monkeypatch.setattr(Lazy, "propose", fails)
    file = read_plan(planned(tmp_path, f'code = "{"0" * 64}"\n' + PLAN))
    trials = run_plan(file, tmp_path / "out", Reporter(lambda line: None))
    deviations = "\n".join(compare(file, trials).deviations)
    assert "the code is not the plan's" in deviations and "seed 2, neither: 1 of 1 designs failed" in deviations


@pytest.mark.thorough
def test_a_plan_with_the_right_hash_has_no_deviation(tmp_path: Path) -> None:
    printed = t2t("sweep", "--plan", planned(tmp_path), "--dry-run")
    code = printed.split('"')[1]
    assert code == code_hash() and "2 seeds x 4 arms" in printed and not (tmp_path / "out").exists()
    file = read_plan(planned(tmp_path, f'code = "{code}"\n' + PLAN))
    assert compare(file, run_plan(file, tmp_path / "out", Reporter(lambda line: None))).deviations == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seeds = [1, 2]", "seeds = [1, 1]", "seeds"),
        ("margin = 5.0", "margin = 0", "margin"),
        ("margin = 5.0", "", "margin"),
        ("title =", "titel =", "titel"),
        ('arm = "both"', 'arm = "bot"', "no arm"),
        ('designer = "lazy"', 'designer = "lasy"', "lasy"),
        ("[arms.both]", "[arms.base]", "base"),
        ('context = "F"', 'context = "Q"', "Q"),
        ("rounds = 2", "rouns = 2", "rouns"),
        ('against = "fixed"', 'against = "both"', "nothing new"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_before_anything_runs(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = planned(tmp_path, PLAN.replace(old, new, 1))
    assert said in t2t("sweep", "--plan", path, "--out", tmp_path / "out", code=1)
    assert not (tmp_path / "out").exists()


def test_options_beside_a_plan_are_refused(tmp_path: Path) -> None:
    path = planned(tmp_path)
    assert "--seeds" in t2t("sweep", "--plan", path, "--seeds", "1", "--out", tmp_path / "o", code=1)
    assert "folder" in t2t("sweep", "--plan", path, code=1)
    assert "--dry-run needs --plan" in t2t("sweep", "--dry-run", code=1)


def test_anybodys_designer_enters_a_frozen_plan(tmp_path: Path) -> None:
    path = planned(tmp_path)
    t2t("bench-designers", "--plan", path, "--designer", "random", "--seeds", 1, "--out", tmp_path / "mine")
    result = json.loads((tmp_path / "mine" / "study.json").read_text())
    assert [arm["arm"] for arm in result["arms"]] == ["fixed", "both", "neither", "entry"] and result["seeds"] == [1]
    assert result["arms"][-1]["designer"] == "random" and result["arms"][-1]["gain"] is not None
    assert "random" in t2t("bench-designers", tmp_path / "mine")
    many = ("--seeds", 9, "--out", tmp_path / "x")
    assert "the plan has 2 seeds" in t2t("bench-designers", "--plan", path, "--designer", "random", *many, code=1)


@pytest.mark.thorough
def test_a_probe_pays_for_what_it_tries(tmp_path: Path) -> None:
    """The learner's instances take 10 tokens each to train on, and its answers 3."""
    text = PLAN.replace("[arms.neither]", '[arms.probe]\ndesigner = "probe:instances=40"\n[arms.neither]')
    file, out = read_plan(planned(tmp_path, text)), tmp_path / "out"
    trials = run_plan(file, out, Reporter(lambda line: None))
    proposal = json.loads((out / "seed_1" / "probe" / "round_0" / "proposal.json").read_text())
    answers = json.loads((out / "seed_1" / "probe" / "round_0" / "breakdown.json").read_text())["total"]["answers"]
    tried = 1 + 2 + 2 * 2  # as it is, more of either group, either way of both levels
    kept = json.loads((out / "seed_1" / "probe" / "round_0" / "trials.json").read_text())["trials"]
    assert [(trial["updates"], trial["tokens"]) for trial in kept] == [(2, 10 * 40 + 3 * answers)] * tried
    assert not (out / "seed_1" / "fixed" / "round_0" / "trials.json").exists()
    name, _, rates = proposal["summary"].partition(" did best; ")
    by_candidate = {c.rsplit(" ", 1)[0]: float(c.rsplit(" ", 1)[1].rstrip("%")) for c in rates.split(", ")}
    assert len(by_candidate) == tried and by_candidate[name] == max(by_candidate.values()) > min(by_candidate.values())
    probe = {arm.arm: arm for arm in compare(file, trials).arms}["probe"]
    assert probe.design_tokens == tried * (10 * 40 + 3 * answers) and probe.tokens == 400
    assert [record.tokens for record in trials.arms["probe"][0].rounds] == [200, 200 + probe.design_tokens]
    assert [record.tokens for record in trials.arms["fixed"][0].rounds] == [200, 200]


@pytest.mark.thorough
def test_a_trial_leaves_the_run_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A designer that tries and then keeps what there is ends in the bytes of one that never tried."""
    tried: list[Any] = []

    def tries(self: Lazy, brief: Any) -> Any:
        tried.append(brief.trial({"3": {"data_ratio": 7.0}}, 16))
        return Proposal("", brief.previous.to_dict())

    monkeypatch.setattr(Lazy, "propose", tries)
    file = read_plan(planned(tmp_path, PLAN))
    trials = run_plan(file, tmp_path / "out", Reporter(lambda line: None))
    assert [run.digest for run in trials.arms["neither"]] == [run.digest for run in trials.arms["fixed"]]
    assert len(tried) == 2 and all(set(trial.breakdown["groups"]) == {"3", "4"} for trial in tried)
