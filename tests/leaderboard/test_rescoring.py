import hashlib
import json
import shutil

import pytest
from click.testing import CliRunner

import addition
from t2t_core.cli import cli
from t2t_core.errors import T2TError
from t2t_leaderboard import comparison, rescoring, submission


@pytest.fixture(autouse=True)
def _addition():
    addition.register()


def t2t(*arguments):
    result = CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def benched(tmp_path_factory):
    addition.register()
    folder = tmp_path_factory.mktemp("bench") / "out"
    t2t("bench", "--testbed", "addition", "--policy", "adder", "--policy", "adder:off=3", "--samples", 2, "--out", folder)
    return folder


@pytest.fixture
def out(benched, tmp_path):
    return shutil.copytree(benched, tmp_path / "out")


def row_of(out, policy="adder"):
    return next(p.parent for p in out.glob("rows/*/row.json") if json.loads(p.read_text())["policy"] == policy)


def edit_line(path, number, change):
    lines = path.read_text().splitlines()
    record = json.loads(lines[number - 1])
    change(record)
    lines[number - 1] = json.dumps(record)
    path.write_text("\n".join(lines) + "\n")


def problems(out):
    return "\n".join(rescoring.verify(out).problems)


def test_untouched_folder_is_verified(out):
    result = t2t("verify", out)
    assert result.return_value == 0
    assert "verified: 160 answers of 2 row(s)" in result.stdout


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda r: r.update(text="999999"), "verdict on 'one_digit_0001', sample 0 does not follow from the text"),
        (lambda r: r["verdict"].update(optimal=False), "optimal: False there, True recomputed"),
        (lambda r: r.update(verdict=None), "there is none"),
        (lambda r: r.update(instance="zzz"), "an answer to 'zzz', sample 0, which is not in the set"),
        (lambda r: r.update(sample=1), "a second answer to 'one_digit_0001', sample 1"),
        (lambda r: r.update(sample=True), "which is not in the set"),
        (lambda r: r.update(text=None), "text: expected `str`, got `null`"),
        (lambda r: r.update(completion_tokens=1), "is not the one in log.jsonl"),
        (lambda r: r.update(text=r["text"] + " "), "is not the one in log.jsonl"),
    ],
)  # fmt: skip
def test_changed_answer_is_found(out, change, complaint):
    path = row_of(out) / "answers.jsonl"
    edit_line(path, 3, change)
    assert complaint in problems(out) and f"{path}, line" in problems(out)


def test_dropped_torn_and_moved_answers_are_found(out):
    path = row_of(out) / "answers.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    assert "no answer to 'one_digit_0001', sample 0 (1 are missing)" in problems(out)
    path.write_text("".join([lines[1], lines[0], *lines[2:]]))
    assert "not in the order" in problems(out)
    path.write_text("".join(lines)[:-20])
    assert f"{path}, line 80" in problems(out)


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("rows", 0, "total", "valid", "value"), 99.0, "total.valid.value: 99.0 there, 100.0 recomputed"),
        (("rows", 1, "total", "valid", "low"), 99.0, "total.valid.low: 99.0 there"),
        (("rows", 0, "answers", "errors"), 7, "answers.errors: 7 there, 0 recomputed"),
        (("rows", 0, "policy"), "gpt-9", "policy: 'gpt-9' there, 'adder' recomputed"),
        (("rows", 0, "kind"), "reported", "kind: 'reported' there"),
        (("rows", 0, "extra"), 1, "extra should not be there"),
        (("rows",), [], "rows: [] there"),
    ],
)
def test_changed_figure_is_found(out, path, value, complaint):
    file = out / "leaderboard.json"
    board = json.loads(file.read_text())
    at = board["tables"][0]
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    file.write_text(json.dumps(board))
    assert complaint in problems(out)


def test_swapped_instance_is_found(out):
    path = out / "instances" / "one_digit.jsonl"
    edit_line(path, 2, lambda r: r.update(a=0, b=0, label=0))
    assert "SHA-256" in problems(out) and "not the first instances of the evaluation set one_digit" in problems(out)
    manifest = out / "run.json"
    record = json.loads(manifest.read_text())
    record["settings"]["sets"][0]["file_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(record))
    assert "not the first instances of the evaluation set one_digit" in problems(out)


def test_page_shows_the_outcome(out):
    edit_line(row_of(out) / "answers.jsonl", 1, lambda r: r.update(text="<script>"))
    result = t2t("verify", out)
    assert result.return_value == 1 and "NOT verified" in result.stdout
    for name in ("leaderboard.html", "leaderboard.md"):
        assert "NOT VERIFIED" in (out / name).read_text().replace("\\", "")
    assert not json.loads((out / "verification.json").read_text())["verified"]
    (row_of(out) / "answers.jsonl").write_text("nonsense\n")
    t2t("verify", out)
    assert "NOT VERIFIED" in (out / "leaderboard.html").read_text()


def test_strangers_folder_is_read_with_suspicion(out, tmp_path):
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"secret": 4711}\n')
    answers = row_of(out) / "answers.jsonl"
    answers.unlink()
    answers.symlink_to(secret)
    assert "answers.jsonl is a link" in problems(out) and "4711" not in problems(out)
    manifest = out / "run.json"
    record = json.loads(manifest.read_text())
    for change in ({"name": "../../etc/passwd"}, {"base": "a/b"}, {"sha256": 3}):
        spoilt = json.loads(json.dumps(record))
        spoilt["settings"]["sets"][0].update(change)
        manifest.write_text(json.dumps(spoilt))
        with pytest.raises(T2TError):
            rescoring.verify(out)
    for change in ({"samples": 10**9}, {"samples": True}, {"testbed": "nope"}, {"sets": [3]}):
        manifest.write_text(json.dumps({**record, "settings": {**record["settings"], **change}}))
        with pytest.raises(T2TError):
            rescoring.verify(out)
    with pytest.raises(T2TError, match="no such folder"):
        rescoring.verify(tmp_path / "nothing")


# --- submissions


@pytest.fixture
def submitted(out, tmp_path):
    return submission.make(out, "adder-1", tmp_path / "results", "adder", "2026-07-31")


def test_submission_is_made_and_verified(submitted):
    assert submitted.name == "2026-07-31_adder-1"
    assert sorted(p.name for p in submitted.iterdir()) == ["answers.jsonl", "metadata.json"]
    result = t2t("verify", submitted)
    assert result.return_value == 0 and "verified: 80 answers" in result.stdout


def spoil(folder, change, reseal=False):
    path = folder / "metadata.json"
    metadata = json.loads(path.read_text())
    change(metadata)
    if reseal:
        metadata["seal"] = submission.seal(metadata)
    path.write_text(json.dumps(metadata))
    return "\n".join(submission.verify(folder).problems)


def test_renamed_model_is_found(submitted):
    assert "changed after it was sealed" in spoil(submitted, lambda m: m.update(policy="gpt-9"))
    assert "changed after it was sealed" in spoil(submitted, lambda m: m["describe"].update(name="gpt-9"))
    assert "the folder is" in spoil(submitted, lambda m: m.update(name="gpt-9"), reseal=True)


def test_changed_count_figure_and_question_are_found_even_where_resealed(submitted):
    before = (submitted / "metadata.json").read_text()
    for change, complaint in [
        (lambda m: m["answers"].update(lines=79), "79 answers claimed, 80 asked"),
        (lambda m: m["tables"]["one digit"]["total"]["valid"].update(low=99.9), "total.valid.low: 99.9 there"),
        (lambda m: m["tables"]["one digit"]["answers"].update(errors=1), "answers.errors: 1 there, 0 recomputed"),
        (lambda m: m["settings"].update(prompt_format="words"), "prompts are not those"),
        (lambda m: m["settings"].update(limit=3), "not in the set"),
        (lambda m: m["settings"]["sets"][0].update(sha256="0" * 64), "recorded 0000"),
        (lambda m: m["settings"]["sets"][0].update(base="two_digit"), "not in the set"),
    ]:
        (submitted / "metadata.json").write_text(before)
        assert complaint in spoil(submitted, change, reseal=True)


def test_changed_answer_of_a_submission_is_found(submitted):
    path = submitted / "answers.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    edit_line(path, 5, lambda r: r.update(text=r["text"] + " "))  # the verdict stays: only the hash tells
    assert any("not the answers that were sealed" in p for p in submission.verify(submitted).problems)
    path.write_text("".join(lines[:-1]))
    assert "1 are missing" in "\n".join(submission.verify(submitted).problems)
    path.write_text("".join([*lines, lines[0]]))
    assert "a second answer" in "\n".join(submission.verify(submitted).problems)
    path.write_text("".join(lines))
    (submitted / "run.sh").write_text("rm -rf /")
    assert "does not belong here" in "\n".join(submission.verify(submitted).problems)
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(T2TError, match="link"):
        submission.verify(submitted)


def test_what_cannot_be_submitted(out, tmp_path):
    for name in ("../up", "Name", "", "a/b"):
        with pytest.raises(T2TError, match="not a usable name"):
            submission.make(out, name, tmp_path, "adder")
    with pytest.raises(T2TError, match="which row"):
        submission.make(out, "x", tmp_path)
    with pytest.raises(T2TError, match="no finished row"):
        submission.make(out, "x", tmp_path, "nobody")
    with pytest.raises(T2TError, match="not a date"):
        submission.make(out, "x", tmp_path, "adder", "../../2026")
    submission.make(out, "x", tmp_path, "adder", "2026-07-31")
    with pytest.raises(T2TError, match="there is a submission"):
        submission.make(out, "x", tmp_path, "adder", "2026-07-31")
    edit_line(row_of(out) / "answers.jsonl", 1, lambda r: r.update(text="0"))
    with pytest.raises(T2TError, match="does not verify"):
        submission.make(out, "y", tmp_path, "adder")
    own = tmp_path / "own.jsonl"
    own.write_text('{"id": "x1", "a": 1, "b": 2, "label": 3}\n')
    t2t("bench", "--testbed", "addition", "--policy", "adder", "--instances", own, "--out", tmp_path / "own")
    with pytest.raises(T2TError, match="set of your own"):
        submission.make(tmp_path / "own", "z", tmp_path)


# --- comparison


def test_paired_difference_of_two_rows(out, submitted):
    a, b = comparison.read_side(row_of(out)), comparison.read_side(row_of(out, "adder:off=3"))
    by_metric = {c.metric: c for c in comparison.compare(a, b, seed=1)}
    assert (by_metric["valid"].difference.value, by_metric["optimal"].difference.value) == (0, 100)
    assert by_metric["mean gap"].difference.value == -3
    assert by_metric["optimal"].difference.test == "sign flips", "two answers per instance"
    assert by_metric["optimal"].holm >= by_metric["optimal"].difference.p
    same = comparison.compare(a, comparison.read_side(submitted))
    assert all(c.difference.value == 0 and c.difference.p == 1 for c in same)


def test_one_answer_per_instance_gets_mcnemar(tmp_path):
    for name, policy in (("a", "adder"), ("b", "adder:every=4")):
        t2t("bench", "--testbed", "addition", "--policy", policy, "--out", tmp_path / name)
    result = t2t("compare", tmp_path / "a", tmp_path / "b", "--json")
    by_metric = {c["metric"]: c["difference"] for c in json.loads(result.stdout)["comparisons"]}
    assert (by_metric["valid"]["higher"], by_metric["valid"]["lower"], by_metric["valid"]["test"]) == (10, 0, "exact McNemar")
    assert by_metric["valid"]["p"] == pytest.approx(2 / 2**10)
    assert by_metric["valid"]["low"] > 0
    assert "exact McNemar" in t2t("compare", tmp_path / "a", tmp_path / "b").stdout


def test_what_two_benches_have_in_common_is_compared(out, tmp_path):
    t2t("bench", "--testbed", "addition", "--policy", "adder:off=3", "--limit", 3, "--samples", 2, "--out", tmp_path / "few")
    a, b = comparison.read_side(row_of(out)), comparison.read_side(tmp_path / "few")
    by_metric = {c.metric: c for c in comparison.compare(a, b)}
    assert (by_metric["optimal"].a, by_metric["optimal"].b, by_metric["optimal"].difference.instances) == (100, 0, 6)
    said = "A answered 40 instances and B 6; compared are the 6 that both did"
    assert comparison.in_common(a, b) == said and comparison.in_common(a, a) == ""
    assert said in " ".join(t2t("compare", row_of(out), tmp_path / "few").stdout.split())
    assert json.loads(t2t("compare", row_of(out), tmp_path / "few", "--json").stdout)["in_common"] == said


def test_an_interval_without_width_is_none(tmp_path):
    for name, policy in (("a", "adder"), ("b", "adder:every=4")):
        t2t("bench", "--testbed", "addition", "--policy", policy, "--limit", 1, "--out", tmp_path / name)
    one_each = json.loads(t2t("compare", tmp_path / "a", tmp_path / "b", "--json").stdout)["comparisons"]
    assert one_each and all(c["difference"]["low"] is None is c["difference"]["high"] for c in one_each)
    table = t2t("compare", tmp_path / "a", tmp_path / "b").stdout.split("p (Holm)")[1].split("each difference")[0]
    assert " to " not in table


def test_nothing_in_common_is_refused(out, tmp_path):
    t2t("bench", "--testbed", "addition", "--policy", "adder", "--digits", "two", "--out", tmp_path / "others")
    with pytest.raises(T2TError, match="no instance in common"):
        t2t("compare", row_of(out), tmp_path / "others")
    with pytest.raises(T2TError, match="which row"):
        t2t("compare", out, out)
