"""The toy policy's recipe: words, examples, teacher, and a warm-up of twenty updates."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from t2t_baselines.tiny import data, policy, teacher
from t2t_baselines.tiny.agreement import agreement
from t2t_baselines.tiny.policy import REMADE, shipped
from t2t_core.errors import T2TError
from t2t_core.hookspecs import Brief, RoundState
from t2t_core.plugins import installed
from t2t_core.records import Round
from t2t_core.seeding import Stream
from t2t_core.store.instance_files import file_set
from t2t_envs.frozen_lake import Instance, make_prompt, parse_answer, solve, verify
from t2t_envs.frozen_lake.sets import NAMES, load_set
from t2t_plugins.contexts import compact

LAKE = installed().testbeds.make("mapf-frozenlake")
KNOBS = LAKE.knobs(LAKE.request(1))


def test_the_teacher_writes_the_compact_forms_of_the_context_modules():
    for seed in range(30):
        rows = teacher.random_rows(Stream.of(seed, "rows"))
        configuration = {
            str(r.size): {"data_ratio": r.data / 100, "hole_ratio": r.hole / 100, "wait_ratio": r.wait / 100} for r in rows
        }
        groups = {
            str(r.size): {
                "answers": 100,
                "valid": r.valid,
                "optimal": r.optimal,
                "first_failures": {check: 100 - r.valid if check == r.failure else 0 for check in teacher.CHECKS},
            }
            for r in rows
        }
        assert teacher.brief(rows) == compact.render(configuration, KNOBS, {"groups": groups})
        proposal = compact.read_compact(json.loads(teacher.proposal(rows, Stream.of(seed, "noise"))), KNOBS)
        assert proposal is not None
        assert teacher.proposal(rows, Stream.of(seed, "noise")) == compact.proposal_text(proposal, KNOBS)


def of_round(index: int, rows: list[teacher.Row]) -> Round:
    knobs = {str(r.size): {"data_ratio": r.data / 100, "hole_ratio": r.hole / 100, "wait_ratio": r.wait / 100} for r in rows}
    counts = {
        str(r.size): {"answers": 100, "valid": r.valid, "optimal": r.optimal, "first_failures": {r.failure: 100 - r.valid}}
        for r in rows
    }
    return Round(index, knobs, {"groups": counts})


def test_a_teacher_tells_of_earlier_rounds_as_the_contexts_do():
    rounds = [teacher.random_rows(Stream.of(seed, "rows")) for seed in range(3)]
    state = RoundState(LAKE, [of_round(index, rows) for index, rows in enumerate(rounds)], knobs=KNOBS)
    sections = [installed().contexts.make(name).render(state, True) for name in ("F", "H")]
    assert teacher.brief(rounds[2], rounds[:2]) == compact.brief_text(state.rounds[-1].configuration, KNOBS, sections)


def test_the_teacher_without_noise_is_the_rule():
    from t2t_plugins.designers.rule import Rule

    assert Rule().floor == teacher.FLOOR and [100 * Rule().step * knob.moderate for knob in KNOBS[1:]] == [teacher.STEP] * 2
    assert (100 * Rule().high, 100 * Rule().low) == (teacher.HIGH, teacher.LOW)
    row = teacher.Row(3, 12, 20, 30, 90, 80, "hole_free")
    rows = [row, teacher.Row(4, 88, 3, 98, 10, 5, "conflict_free")]
    assert teacher.proposal(rows) == '{ "3":[ 50 , 25 , 35 ] , "4":[ 50 , 0 , 93 ] }'


def test_the_teacher_that_reads_failures_is_the_rule_that_does():
    for seed in range(20):
        rows = teacher.random_rows(Stream.of(seed, "rows"))
        past = of_round(0, rows)
        shares = {size: {**knobs, "data_ratio": 1 / len(rows)} for size, knobs in past.configuration.items()}
        previous = LAKE.read_configuration(shares)  # whole percents need not add up to 100
        asked = Brief("", RoundState(LAKE, [past]), previous, LAKE.request(100), 0)
        rule = installed().designers.make("rule:failures").propose(asked).parsed
        kept = LAKE.project(rule, previous, LAKE.request(100)).configuration.to_dict()
        for size, (share, hole, wait) in json.loads(teacher.by_failures(rows)).items():
            expected = kept[size]
            assert (hole, wait) == (round(100 * expected["hole_ratio"]), round(100 * expected["wait_ratio"]))
            assert abs(share - 100 * expected["data_ratio"]) <= 1


def instance_of(example: data.Example) -> Instance:
    """Reads a compact prompt back."""
    size, holes, *agents = example.prompt.splitlines()
    ends = [[tuple(map(int, cell.strip("()").split(","))) for cell in line.split(": ")[1].split(" -> ")] for line in agents]
    cells = [tuple(map(int, cell.strip("()").split(","))) for cell in holes.split()[1:]]
    instance = Instance(int(size.split()[1]), cells, [e[0] for e in ends], [e[1] for e in ends])
    assert make_prompt(instance, "compact") == example.prompt
    return instance


@pytest.fixture(scope="module")
def examples() -> list[data.Example]:
    return data.chunk(3, 0, (2, 3, 4, 5), 700, {}, 0.04)


def test_every_answer_is_valid_and_optimal(examples):
    lakes = [e for e in examples if e.kind != "design"]
    for example in lakes[::3]:
        instance = instance_of(example)
        verdict = verify(instance, example.answer)
        assert verdict.valid and verdict.costs["makespan"] == solve(instance).cost


def test_most_examples_need_coordination_and_all_agent_counts_and_sizes_occur(examples):
    kinds = Counter(e.kind for e in examples)
    lakes = sum(kinds[kind] for kind in data.KINDS)
    assert kinds["wait"] + kinds["interacting"] > lakes / 2
    assert min(kinds["wait"], kinds["interacting"], kinds["independent"], kinds["design"]) > 0
    assert {e.agents for e in examples if e.agents} == {2, 3, 4, 5}
    assert {e.prompt.split("\n")[0] for e in examples if e.agents == 2} == {f"N {n}" for n in range(3, 11)}


def test_independent_answers_prefer_down_up_left_right():
    examples = [e for e in data.chunk(1, 0, (2,), 400, {}, 0.04) if e.kind == "independent"]
    open_lake = [e for e in examples if instance_of(e).holes == ()]
    assert open_lake
    for example in open_lake:
        for path in parse_answer(example.answer).values():
            rows = [r for r, _ in path]
            turned = next((i for i in range(len(path) - 1) if rows[i] == rows[i + 1]), len(path) - 1)
            assert len(set(rows[turned:])) <= 1, "without holes a path first goes to its row, then along it"


def test_a_chunk_depends_on_seed_and_index_alone_and_keeps_out_of_the_excluded_forms(examples):
    assert data.chunk(3, 0, (2, 3, 4, 5), 700, {}, 0.04) == examples
    assert data.chunk(3, 1, (2,), 100, {}, 0.04) != data.chunk(4, 1, (2,), 100, {}, 0.04)
    seen = [instance_of(e) for e in data.chunk(3, 0, (2,), 400, {}, 0.04) if e.agents]
    small = [i for i in seen if i.size == 3]
    kept_out = data.by_cell(small)
    again = [instance_of(e).canonical() for e in data.chunk(3, 0, (2,), 400, kept_out, 0.04) if e.agents]
    assert again and not set(again) & {i.canonical() for i in small}


def test_the_skewed_diet_is_thick_where_maps_are_small():
    examples = data.skewed_chunk(0, 0, 2000, {})
    sizes = Counter(int(e.prompt.split("\n")[0].split()[1]) for e in examples)
    small, large = (sum(sizes[n] for n in names) for names in (range(3, 7), range(7, 11)))
    assert 0.6 < small / len(examples) < 0.95 and large > 0
    agents = Counter(e.agents for e in examples)
    assert set(agents) == {2, 3} and agents[2] > agents[3]
    assert data.skewed_chunk(0, 0, 2000, {}) == examples != data.skewed_chunk(1, 0, 2000, {})


@pytest.mark.parametrize("name", REMADE)
def test_what_studies_start_from_was_kept_out_of_every_set_that_it_is_measured_on(name):
    """The hashes in its recipe are those of the frozen sets and of the studies' files."""
    recipe = json.loads((shipped(name) / "recipe.json").read_text())
    assert recipe["excluded_sets"] == {name: load_set(name).sha256 for name in NAMES}
    root = Path(__file__).parents[2]
    assert len(recipe["kept_out"]) == 3
    for name, digest in recipe["kept_out"].items():
        assert hashlib.sha256((root / name).read_bytes()).hexdigest() == digest, name


@pytest.mark.parametrize(("name", "per_cell"), [("final", 20), ("development", 10)])
def test_the_fresh_sets_hold_every_hole_level_and_share_nothing(name, per_cell):
    root = Path(__file__).parents[2] / "studies"
    files = [root / "tiny/held_out_2agents.jsonl", *(root / "designers").glob("*_2agents.jsonl")]
    sets = {file.stem.removesuffix("_2agents"): file_set(LAKE, file).instances for file in files}
    sets["validation"] = load_set("validation_2agents").instances
    forms = {key: [LAKE.identity(instance) for instance in instances] for key, instances in sets.items()}
    others = {form for key, of_set in forms.items() if key != name for form in of_set}
    assert len(set(forms[name])) == len(forms[name]) == 80 * per_cell and not set(forms[name]) & others
    cells = Counter(LAKE.cell_of(LAKE.place(instance).cell) for instance in sets[name])
    rare = {"3x3 holes 5% wait", "3x3 holes 15% wait"}  # which have too few forms; other waits on 3x3 stand in for them
    assert set(cells) == {cell.name for cell in LAKE.cells(LAKE.request(1))} - rare
    assert {count for cell, count in cells.items() if not cell.startswith("3x3")} == {per_cell}


@pytest.mark.train
class TestWords:
    def test_reading_and_writing_lose_nothing_and_need_no_unknown_word(self, examples):
        from t2t_baselines.tiny.model import make_tokenizer, words

        tokenizer = make_tokenizer()
        assert len(words()) == len(set(words())) == len(tokenizer)
        texts = [e.prompt for e in examples] + [e.answer for e in examples] + ['Any text: {"a": [1.5, "e"]}\n\t~']
        for text, ids in zip(texts, tokenizer(texts)["input_ids"], strict=True):
            assert tokenizer.decode(ids) == text
            assert tokenizer.unk_token_id not in ids

    def test_a_cell_and_a_move_are_one_word(self):
        from t2t_baselines.tiny.model import make_tokenizer

        tokenizer = make_tokenizer()
        assert len(tokenizer("\nAgent 0: (2,0) -> (2,1) -> (2,2)")["input_ids"]) == 4


@pytest.mark.train
def test_twenty_updates_lower_the_loss_and_resume_to_the_same_weights(tmp_path, monkeypatch):
    from t2t_baselines.tiny import warmup

    monkeypatch.setattr(warmup, "CHUNK", 300)
    command = ["--steps", "20", "--agents", "2", "--toy", "--out"]
    warmup.main([*command, str(tmp_path / "whole")])
    (tmp_path / "parts").mkdir()

    def examples(chunk: int, stage: warmup.Stage) -> list[data.Example]:
        return data.chunk(0, chunk, (2,), 300, {}, stage.designs)

    warmup.Warmup(tmp_path / "parts", 0, examples).run(warmup.stages(20)[0], chunks=1)  # as if it had been stopped there
    warmup.main([*command, str(tmp_path / "parts")])
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts
    lines = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["loss"] < lines[0]["loss"] and lines[-1]["step"] == 30
    recipe = json.loads((tmp_path / "whole" / "recipe.json").read_text())
    assert recipe["seed"] == 0 and recipe["updates"] == 30 and recipe["parameters"] < 1_000_000
    assert (tmp_path / "whole" / "model.safetensors").stat().st_size < 5_000_000


@pytest.mark.train
def test_one_that_is_taught_anew_goes_on_from_what_it_was_and_resumes(tmp_path):
    from t2t_baselines.tiny import reteach

    command = ["--teacher", "failures", "--steps", "6", "--count", "60", "--toy", "--out"]
    reteach.main([*command, str(tmp_path / "whole")])
    reteach.main([*command, str(tmp_path / "whole")])  # done: nothing moves
    lines = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == 6 and lines[0]["loss"] < 3, "fresh weights would begin at about 6"
    recipe = json.loads((tmp_path / "whole" / "recipe.json").read_text())
    assert recipe["command"].startswith("python -m t2t_baselines.tiny.reteach --out DIR --policy tiny --teacher failures")
    assert recipe["updates"] == 6


@pytest.mark.train
def test_the_policy_that_was_taught_by_failures_designs_by_them():
    figures = agreement("tiny:failures", briefs=24, seed=1, teach=teacher.by_failures)
    assert figures["readable"] == 1 and figures["same_direction"] > 0.98
    assert figures["wait_ratio"] < 1 < figures["keep_wait_ratio"] and figures["hole_ratio"] < 1 < figures["keep_hole_ratio"]


@pytest.mark.parametrize(("name", "command"), REMADE.items())
def test_a_checkpoint_that_a_wheel_lacks_names_the_command_that_makes_it(name, command, monkeypatch, tmp_path):
    monkeypatch.setattr(policy, "shipped", lambda name="base": tmp_path / name)
    with pytest.raises(T2TError, match="not part of the wheel") as error:
        policy.Tiny(name)
    assert f"python -m t2t_baselines.tiny.{command}" in error.value.next
    with pytest.raises(T2TError, match="no checkpoint") as error:
        policy.Tiny("designed")
    assert "weak" not in error.value.cause
