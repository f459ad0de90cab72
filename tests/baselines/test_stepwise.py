"""Step policies on the board: PPO's, Stable-Baselines3's and users' own objects answer by playing the step environment."""

from __future__ import annotations

import sys
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from t2t_baselines.stepwise import playing, ppo, sb3
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_core.hookspecs import TrainingJob, TrainingOrder
from t2t_core.plugins import installed
from t2t_core.records import Sampling, Task
from t2t_core.run.experiment import Experiment, resolve
from t2t_core.seeding import Stream
from t2t_envs.frozen_lake.generation.configuration import Configuration
from t2t_envs.frozen_lake.generation.generator import generate
from t2t_envs.frozen_lake.instance import Instance
from t2t_envs.frozen_lake.verifier import verify

LAKES = list(generate(Configuration.uniform(0.2, 0.3), 48, num_agents=2, seed=3))
TEAMS = [*LAKES[:4], *generate(Configuration.uniform(0.2, 0.3), 4, num_agents=4, seed=4)]
SMALL = {"steps": 2048, "lakes": 16, "horizon": 16, "minibatches": 4, "hidden": 16}


def job(folder: Path, settings: dict[str, Any], checkpoint: Path | None = None, instances: Any = LAKES) -> TrainingJob:
    return TrainingJob(checkpoint, instances, installed().testbeds.make("mapf-frozenlake"), settings, folder, seed=1)


def order(settings: dict[str, Any]) -> TrainingOrder:
    return TrainingOrder(None, installed().testbeds.make("mapf-frozenlake"), settings, 48)


def tasks(instances: Any = TEAMS) -> list[Task]:
    return [Task(x.id or str(i), 0, "no prose is read", x, i) for i, x in enumerate(instances)]


def answers(policy: Any, instances: Any = TEAMS) -> list[str]:
    responses = dict(policy.respond(tasks(instances), Sampling()))
    return [responses[i].text for i in range(len(responses))]


# --- what the network sees


def test_the_features_are_what_they_say() -> None:
    """On a lake made by hand: which cells are closed, which move leads nearer, where the others are and where they would go."""
    from t2t_envs.frozen_lake.gym.gym_env import MAPFFrozenLakeEnv

    env = MAPFFrozenLakeEnv(desc=["a.#", ".B.", "A.b"], observation="padded", max_size=4)
    seen = env.reset(seed=0)[0][None]
    features = ppo.features(seen, 1, ppo.Ways())
    assert features.shape == (1, 2, 5 * 9 + 1)
    closed, nearer, others, goals, downhill = features[0, 0, :-1].reshape(5, 3, 3)
    assert closed.tolist() == [[1, 1, 1], [1, 0, 0], [1, 0, 0]]  # agent a stands in the upper left corner
    assert nearer[1:, 1:].tolist() == [[0, 0.25], [-0.25, 0]] and features[0, 0, -1] == 2 / 16
    assert not others.any() and goals.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert not downhill.any()  # b goes to (1, 2) or (2, 1), which are out of sight
    wide = ppo.features(seen, 2, ppo.Ways())[0, 0, :-1].reshape(5, 5, 5)
    assert np.argwhere(wide[2]).tolist() == [[4, 4]] and np.argwhere(wide[4]).tolist() == [[3, 4], [4, 3]]


def test_distances_are_shortest_ways() -> None:
    for instance in TEAMS:
        free = np.ones((1, instance.size, instance.size), bool)
        free[0][tuple(zip(*instance.holes, strict=True)) if instance.holes else ([], [])] = False
        goal = np.zeros_like(free)
        goal[0][instance.goals[0]] = True
        distances = ppo.distances(free, goal)[0]
        from t2t_baselines.board import UNREACHABLE, Board

        expected = np.array(Board(instance).distances(Board(instance).number(instance.goals[0]))).reshape(distances.shape)
        assert np.where(distances == ppo.UNREACHED, UNREACHABLE, distances).tolist() == expected.tolist()


def test_draws_follow_the_shares_and_never_what_is_ruled_out() -> None:
    shares = np.array([[[0.5, 0.0, 0.25, 0.25, 0.0]]])
    drawn = [int(ppo.draw(shares, [Stream(seed)])[0, 0]) for seed in range(2000)]
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == counts[4] == 0 and abs(counts[0] - 1000) < 120 and abs(counts[2] - 500) < 100


# --- training and playing


@pytest.mark.thorough
def test_ppo_trains_saves_and_plays_what_it_has_saved(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ticks: list[Any] = []
    first = job(tmp_path / "a", SMALL)
    result = ppo.Ppo().train(TrainingJob(**{**vars(first), "progress": ticks.append}))
    assert result.samples == 2048 and result.updates == len(ticks) == 4 and 0 <= result.metrics["solved"] <= 1
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["model.safetensors", "ppo.json"]
    again = ppo.Ppo().train(job(tmp_path / "b", SMALL))
    assert (tmp_path / "a" / ppo.WEIGHTS).read_bytes() == (tmp_path / "b" / ppo.WEIGHTS).read_bytes()
    policy = installed().policies.make(f"ppo:{tmp_path / 'a'}")
    alone = [answers(policy, [instance])[0] for instance in TEAMS[:1]]
    assert answers(policy) == answers(installed().policies.make(f"ppo:{again.checkpoint}")) and answers(policy)[:1] == alone
    for instance, answer in zip(TEAMS, answers(policy), strict=True):
        checks = verify(instance, answer).checks
        assert all(passed for name, passed in checks.items() if name != "goal_reached")  # blocked moves break no rule
    further = ppo.Ppo().train(job(tmp_path / "c", SMALL, tmp_path / "a"))
    assert (tmp_path / "c" / ppo.WEIGHTS).read_bytes() != (tmp_path / "a" / ppo.WEIGHTS).read_bytes() and further.samples == 2048


@pytest.mark.train
def test_ppo_learns_in_seconds(tmp_path: Path) -> None:
    lakes = list(generate(Configuration.uniform(0.2, 0.3), 512, num_agents=2, seed=3))
    ppo.Ppo().train(job(tmp_path, {"steps": 80_000}, instances=lakes))
    fresh = list(generate(Configuration.uniform(0.2, 0.3), 120, num_agents=2, seed=9))
    rates = []
    for argument in ("", str(tmp_path)):
        replies = answers(installed().policies.make(f"ppo:{argument}"), fresh)
        rates.append(np.mean([verify(x, reply).valid for x, reply in zip(fresh, replies, strict=True)]))
    assert rates[1] > rates[0] + 0.15, rates


def test_training_instances_must_not_be_of_a_protected_set(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    kept = installed().testbeds.make("mapf-frozenlake").load_set("validation_2agents").instances[:1]
    for trainer in (ppo.Ppo(), sb3.Sb3()):
        with pytest.raises(T2TError, match="belong to the set"):
            trainer.train(job(tmp_path, {}, instances=[*LAKES, *kept]))


@pytest.mark.thorough
@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "DQN"])
def test_sb3_trains_and_plays_from_weights_alone(algorithm: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    settings = {"algorithm": algorithm, "layers": "16", "steps": 600, "lakes": 4}
    result = sb3.Sb3().train(job(tmp_path / "a", settings))
    assert result.samples >= 600
    sb3.Sb3().train(job(tmp_path / "b", settings, tmp_path / "a"))
    policy = installed().policies.make(f"sb3:{tmp_path / 'b'}")
    assert policy.describe()["caveat"] == playing.CAVEAT and policy.describe()["algorithm"] == algorithm
    assert all(verify(x, reply).checks["conflict_free"] for x, reply in zip(TEAMS, answers(policy), strict=True))
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["model.safetensors", "sb3.json"]
    (tmp_path / "b" / "model.safetensors").write_bytes(b"\x80\x04pickle")
    with pytest.raises(T2TError, match="no weights"):
        answers(installed().policies.make(f"sb3:{tmp_path / 'b'}"), TEAMS[:1])


PPO_OTHERWISE: dict[str, Any] = {
    "steps": 1024, "lakes": 8, "horizon": 8, "epochs": 2, "minibatches": 2, "learning_rate": 3e-3, "gamma": 0.5, "gae": 0.5,
    "clip": 0.01, "entropy": 0.5, "value": 2.0, "max_norm": 0.01, "hidden": 8, "view": 2,
}  # fmt: skip
SB3_SMALL = {"algorithm": "A2C", "layers": "8", "steps": 256, "lakes": 4}
SB3_OTHERWISE: dict[str, Any] = {
    "algorithm": "PPO", "layers": "8-8", "steps": 600, "lakes": 2, "learning_rate": 0.01, "gamma": 0.5,
}  # fmt: skip


def weights(trainer: Any, folder: Path, settings: dict[str, Any]) -> bytes:
    trainer.train(job(folder, settings))
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.train
def test_every_setting_of_ppo_does_something(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert {field.name for field in fields(ppo.Settings)} == {*PPO_OTHERWISE, "threads"}
    usual = weights(ppo.Ppo(), tmp_path / "usual", SMALL)
    for name, value in PPO_OTHERWISE.items():
        assert weights(ppo.Ppo(), tmp_path / name, {**SMALL, name: value}) != usual, name


@pytest.mark.train
def test_every_setting_of_sb3_does_something(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    assert {field.name for field in fields(sb3.Settings)} == {*SB3_OTHERWISE, "threads"}
    usual = weights(sb3.Sb3(), tmp_path / "usual", SB3_SMALL)
    for name, value in SB3_OTHERWISE.items():
        assert weights(sb3.Sb3(), tmp_path / name, {**SB3_SMALL, name: value}) != usual, name


@pytest.mark.train
@pytest.mark.parametrize("trainer", [ppo.Ppo(), sb3.Sb3()])
def test_threads_are_torchs(trainer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch, given = pytest.importorskip("torch"), []
    pytest.importorskip("stable_baselines3")
    real = torch.set_num_threads
    monkeypatch.setattr(torch, "set_num_threads", lambda count: (given.append(count), real(count)))
    trainer.train(job(tmp_path, {**(SMALL if isinstance(trainer, ppo.Ppo) else SB3_SMALL), "threads": 2}))
    assert 2 in given
    real(1)


def test_a_zip_of_sb3_is_loaded_by_those_who_trust_it(tmp_path: Path) -> None:
    made = pytest.importorskip("stable_baselines3").PPO("MlpPolicy", sb3.every_agent_a_slot(LAKES, 2, 0.99), device="cpu")
    made.save(tmp_path / "model.zip")
    with pytest.raises(T2TError, match="trust_code"):
        installed().policies.make(f"sb3:{tmp_path / 'model.zip'}")
    trusted = installed().policies.make(f"sb3:{tmp_path / 'model.zip'},trust_code=true")
    assert "runs its own code" in trusted.describe()["caveat"] and len(answers(trusted, TEAMS[:1])) == 1


class Evil:
    def __reduce__(self) -> Any:
        return print, ("run",)


def test_a_zip_of_sb3_plays_from_its_weights_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = pytest.importorskip("stable_baselines3").PPO("MlpPolicy", sb3.every_agent_a_slot(LAKES, 2, 0.99), device="cpu", seed=1)
    made.save(tmp_path / "model.zip")
    named, trusted = (f"sb3:{tmp_path / 'model.zip'},{how}" for how in ("layers=64-64", "trust_code=true"))
    alone = installed().policies.make(named)
    assert answers(alone) == answers(installed().policies.make(trusted))
    assert "runs its own code" not in alone.describe()["caveat"] and alone.describe()["layers"] == "64-64"
    with pytest.raises(T2TError, match="don't fit"):
        answers(installed().policies.make(named.replace("64-64", "32")))

    import torch

    bad = named.replace("model.zip", "bad.zip")
    for name, content, told in (("policy.pth", Evil(), "no weights"), ("other.pth", {}, "no policy.pth")):
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive, archive.open(name, "w") as entry:
            torch.save(content, entry)
        with pytest.raises(T2TError, match=told):
            answers(installed().policies.make(bad))
    (tmp_path / "bad.zip").write_bytes(b"no zip")
    with pytest.raises(T2TError, match="cannot be read"):
        answers(installed().policies.make(bad))
    assert "run" not in capsys.readouterr().out


def test_a_zip_of_another_algorithm(tmp_path: Path) -> None:
    made = pytest.importorskip("stable_baselines3").A2C("MlpPolicy", sb3.every_agent_a_slot(LAKES, 2, 0.99), device="cpu")
    made.save(tmp_path / "model.zip")
    named = installed().policies.make(f"sb3:{tmp_path / 'model.zip'},trust_code=true,algorithm=A2C")
    assert len(answers(named, TEAMS[:1])) == 1 and named.describe()["algorithm"] == "A2C"


def test_a_greedy_agent_takes_the_likeliest_step(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ppo.Ppo().train(job(tmp_path, SMALL))
    drawn, likeliest = (installed().policies.make(f"ppo:{tmp_path},greedy={word}") for word in ("false", "true"))
    assert answers(drawn) != answers(likeliest)
    again = {
        policy: [dict(policy.respond([Task("x", n, "", TEAMS[0], n)], Sampling()))[0].text for n in range(6)]
        for policy in (drawn, likeliest)
    }
    assert len(set(again[likeliest])) == 1 < len(set(again[drawn]))


class Downhill:
    """Somebody's agent: the first legal action that the mask of the planes allows."""

    def predict(self, observation: Any) -> Any:
        return [4] * ((observation.shape[0] - 1) // 2), None


def test_a_python_object_plays_through_the_library_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    act = playing.from_predict(Downhill().predict)
    policy = playing.StepPolicy(act, {"observation": "planes"}, {"policy": "mine"})
    still = [verify(x, reply) for x, reply in zip(TEAMS, answers(policy), strict=True)]
    assert {verdict.failure for verdict in still} == {"goal_reached"}
    monkeypatch.setitem(sys.modules, "my_agent", type(sys)("my_agent"))
    sys.modules["my_agent"].__dict__.update(agent=Downhill(), Agent=Downhill, nothing=3)
    for name in ("agent", "Agent"):
        named = installed().policies.make(f"step:my_agent:{name},trust_code=true,observation=planes")
        assert answers(named) == answers(policy) and "runs its own code" in named.describe()["caveat"]
    for argument, word in (("agent", "trust_code"), ("nothing,trust_code=true", "predict"), ("agent,trust_code=maybe", "one of")):
        with pytest.raises(T2TError, match=word):
            installed().policies.make(f"step:my_agent:{argument}")


def test_an_agent_beside_which_the_command_runs_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The working directory is not on the path of a console script. A fault in the user's module is reported as that."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    for name, code in (("agent_here", "class Agent:\n    def predict(self, seen): return 0\n"), ("broken_agent", "1 / 0\n")):
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert installed().policies.make("step:agent_here:Agent,trust_code=true")
    for name, said in (("broken_agent", "ZeroDivisionError"), ("no_such_agent", "there is no module no_such_agent")):
        with pytest.raises(T2TError, match=said) as error:
            installed().policies.make(f"step:{name}:Agent,trust_code=true")
        assert "plugin" not in str(error.value)


# --- round the loop


def test_a_step_policy_does_not_talk(tmp_path: Path) -> None:
    policy = installed().policies.make("ppo")
    with pytest.raises(T2TError, match="cannot talk"):
        list(policy.respond([Task("design-1", 0, "design!", None, 1)], Sampling()))
    for designer in ("checkpoint", "base"):
        for more in (["--dry-run"], ["--out", str(tmp_path / designer)]):
            result = CliRunner().invoke(cli, ["run", "--preset", "ppo", "--designer", designer, *more])
            assert result.exit_code != 0 and isinstance(result.exception, T2TError) and "cannot design" in str(result.exception)
    assert CliRunner().invoke(cli, ["run", "--preset", "ppo", "--designer", "learnability", "--dry-run"]).exit_code == 0


def test_impossible_settings_are_found_before_anything_begins() -> None:
    bad: list[dict[str, Any]] = [
        {"steps": 0}, {"gamma": 1.5}, {"minibatches": 7}, {"hiden": 3}, {"learning_rate": -1}, {"lakes": "many"},
    ]  # fmt: skip
    for settings in bad:
        with pytest.raises(T2TError):
            ppo.Ppo().check(order(settings))
    for settings in ({"algorithm": "SAC"}, {"layers": "x"}, {"layers": ""}, {"steps": 0}, {"gamma": 2}):
        with pytest.raises(T2TError):
            sb3.Sb3().check(order(settings))
    made: Experiment = resolve("ppo", None, [], {}, {})
    assert made.trainer == "ppo" and made.designer == "rule"


@pytest.mark.parametrize("text", ["{}", "[", '{"view":0,"hidden":16}', '{"view":true,"hidden":16}', '{"view":3,"hidden":9}'])
def test_a_damaged_checkpoint_is_named(text: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ppo.save(ppo.make_network(3, 16), tmp_path, 3, 16)
    (tmp_path / ppo.ARCHITECTURE).write_text(text)
    with pytest.raises(T2TError):
        answers(installed().policies.make(f"ppo:{tmp_path}"), TEAMS[:1])


def test_a_lake_that_is_solved_by_one_step_is_answered_by_it() -> None:
    lake = Instance(3, [], [(0, 0)], [(0, 1)])
    policy = playing.StepPolicy(lambda seen, masks, streams: [[2] for _ in seen], {"observation": "flat"})
    assert verify(lake, answers(policy, [lake])[0]).cost == 1
