"""Local models: answers in batches, the two engines, and the messages for a user without a model or a network."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest

from t2t_core.errors import T2TError
from t2t_core.records import Message, Sampling, Task
from t2t_core.testing import check_policy
from t2t_envs.frozen_lake import Configuration, generate, make_prompt
from t2t_envs.frozen_lake.testbed import make
from t2t_plugins.policies import chat
from t2t_plugins.policies.chat import chat_prompt, chat_prompts
from t2t_plugins.policies.hf import HuggingFace, own_formats
from t2t_plugins.policies.vllm import Vllm

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A toy policy of random weights that are large enough to have opinions."""
    pytest.importorskip("transformers")
    from t2t_baselines.tiny.model import make_model, make_tokenizer

    where = tmp_path_factory.mktemp("model")
    model = make_model(1, num_hidden_layers=2, max_position_embeddings=2048)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(6)
    model.config.t2t_prompt_format = model.config.t2t_brief = "compact"
    model.save_pretrained(where)
    make_tokenizer().save_pretrained(where)
    return where


@pytest.fixture(scope="module")
def tasks():
    instances = generate(Configuration.uniform(0.3, 0.0), 24, seed=2)
    return [Task(i.id, 0, make_prompt(i, "compact"), i.unlabelled(), n) for n, i in enumerate(instances)]


def ask(policy, tasks, sampling):
    answers = dict(policy.respond(tasks, sampling))
    assert sorted(answers) == list(range(len(tasks)))
    return [answers[i] for i in range(len(tasks))]


@pytest.mark.train
def test_both_engines_and_any_batching_give_the_same_greedy_answers(folder, tasks):
    sampling = Sampling(max_tokens=20)
    fast = ask(HuggingFace(str(folder), {"engine": "fast"}), tasks, sampling)
    plain = ask(HuggingFace(str(folder), {"engine": "plain"}), tasks, sampling)
    small = ask(HuggingFace(str(folder), {"batch_size": "5"}), tasks, sampling)
    facts = [[(r.text, r.prompt_tokens, r.completion_tokens, r.finish_reason) for r in rs] for rs in (fast, plain, small)]
    assert facts[0] == facts[1] == facts[2]
    assert len({r.text for r in fast}) > 3 and all(r.completion_tokens <= 20 for r in fast)
    assert all(r.finish_reason == "length" for r in fast if r.completion_tokens == 20 and not r.text.endswith("<|im_end|>"))


@pytest.mark.train
@pytest.mark.parametrize("engine", ["fast", "plain"])
def test_samples_depend_on_the_tasks_seeds(folder, tasks, engine):
    hot = Sampling(temperature=1.0, max_tokens=12)
    policy = HuggingFace(str(folder), {"engine": engine})
    first, again = (ask(policy, tasks[:6], hot) for _ in range(2))
    other = ask(policy, [Task(t.instance_id, 1, t.prompt, t.instance, t.seed + 100) for t in tasks[:6]], hot)
    assert [r.text for r in first] == [r.text for r in again] != [r.text for r in other]


@pytest.mark.train
def test_it_keeps_the_contract_and_says_what_form_it_was_taught(folder):
    policy = HuggingFace(str(folder), {"batch_size": "7"})
    check_policy(policy, make(), sampling=Sampling(max_tokens=8))
    long = [Task("long", 0, "x" * 3000, None, 0), Task("short", 0, "N 3", None, 1)]
    answers = ask(policy, long, Sampling(max_tokens=8))
    assert "leaves no room in a context of 2048" in answers[0].error and answers[1].error is None
    said = policy.describe()
    assert said["prompt_format"] == said["brief"] == "compact" and said["model"] == str(folder)
    assert own_formats("Qwen/Qwen3-4B") == {}


@pytest.mark.train
def test_an_adapter_changes_the_answers(folder, tasks, tmp_path):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    config = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config).save_pretrained(tmp_path)
    plain, adapted = (
        [r.text for r in ask(HuggingFace(str(folder), settings), tasks[:8], Sampling(max_tokens=12))]
        for settings in ({}, {"lora": str(tmp_path)})
    )
    assert plain != adapted


@pytest.mark.train
def test_a_model_that_cannot_be_had_is_one_clear_error(folder, tasks, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(T2TError, match="could not be loaded") as refusal:
        ask(HuggingFace("somebody/no-such-model", {}), tasks[:1], Sampling())
    assert "hf download somebody/no-such-model" in str(refusal.value)
    with pytest.raises(T2TError, match="no folder"):
        HuggingFace("./nowhere", {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(T2TError, match="no folder"):  # and not a model of that name on the hub
        HuggingFace("file", {})
    with pytest.raises(T2TError, match="needs a model"):
        HuggingFace("", {})
    with pytest.raises(T2TError, match="did you mean engine"):
        HuggingFace("x", {"engin": "fast"})
    with pytest.raises(T2TError, match="adapter could not be loaded"):
        ask(HuggingFace(str(folder), {"lora": str(tmp_path)}), tasks[:1], Sampling())


@pytest.mark.train
def test_weights_that_are_not_safetensors_are_refused(folder, tasks, tmp_path):
    import shutil

    shutil.copytree(folder, tmp_path / "pickled")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save({}, tmp_path / "pickled" / "pytorch_model.bin")
    with pytest.raises(T2TError, match="could not be loaded"):
        ask(HuggingFace(str(tmp_path / "pickled"), {}), tasks[:1], Sampling())


@pytest.mark.train
def test_code_that_comes_with_a_checkpoint_runs_only_where_the_user_says_so_by_name(folder, tasks, tmp_path, monkeypatch):
    import json
    import shutil

    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    strange, ran = tmp_path / "strange", tmp_path / "ran"
    shutil.copytree(folder, strange)
    config = json.loads((strange / "config.json").read_text())
    config |= {"model_type": "strange", "auto_map": {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}}
    (strange / "config.json").write_text(json.dumps(config))
    (strange / "code.py").write_text(f"open({str(ran)!r}, 'w').write('ran')\nraise RuntimeError('it ran')\n")
    with pytest.raises(T2TError, match="could not be loaded") as refusal:
        ask(HuggingFace(str(strange), {}), tasks[:1], Sampling())
    assert not ran.exists() and "trust_remote_code" in str(refusal.value)
    with pytest.raises(T2TError, match="RuntimeError: it ran"):
        ask(HuggingFace(str(strange), {"trust_remote_code": "true"}), tasks[:1], Sampling())
    assert ran.read_text() == "ran", "where it is said by name"


def test_vllm_missing_is_one_clear_sentence(tasks, monkeypatch):
    from importlib import util

    monkeypatch.setattr(util, "find_spec", lambda name: None)
    with pytest.raises(T2TError, match="vLLM is not installed"):
        ask(Vllm("some/model", {}), tasks[:1], Sampling())


class PretendLLM:
    """vLLM's offline engine as far as the policy uses it: 20 tokens of context, a token a character, and an echo."""

    model_config = SimpleNamespace(max_model_len=20)

    def __init__(self, model, **options):
        if model == "no/gpu":
            raise RuntimeError("Failed to infer device type")
        self.options = options

    def get_tokenizer(self):
        class Tokenizer:
            chat_template = ""

            def __call__(self, texts, add_special_tokens):
                return {"input_ids": [[ord(c) for c in text] for text in texts]}

        return Tokenizer()

    def generate(self, prompts, params_of, use_tqdm, lora_request):
        for prompt, params in zip(prompts, params_of, strict=True):
            ids = prompt["prompt_token_ids"][: params.max_tokens]
            cut = "length" if len(ids) == params.max_tokens else "stop"
            yield SimpleNamespace(outputs=[SimpleNamespace(text="".join(map(chr, ids)), token_ids=ids, finish_reason=cut)])


@pytest.fixture
def pretend_vllm(monkeypatch):
    module = ModuleType("vllm")
    module.__spec__ = ModuleSpec("vllm", None)
    module.LLM, module.SamplingParams = PretendLLM, SimpleNamespace
    monkeypatch.setitem(sys.modules, "vllm", module)


def test_vllm_is_asked_all_at_once_and_a_prompt_too_long_is_an_error_of_its_own(pretend_vllm):
    policy = Vllm("m", {"enforce_eager": "true", "dtype": "float32", "max_model_len": "20"})
    tasks = [Task(str(n), 0, "x" * n, None, n) for n in (5, 20, 15, 3)]
    answers = ask(policy, tasks, Sampling(max_tokens=8))
    assert [(r.completion_tokens, r.finish_reason) for r in answers] == [(5, "stop"), (0, "error"), (5, "length"), (3, "stop")]
    assert "a prompt of 20 tokens leaves no room in a context of 20" in answers[1].error
    assert policy._load().options == {"enforce_eager": True, "dtype": "float32", "max_model_len": 20}


def test_vllm_is_told_how_to_sample(pretend_vllm, monkeypatch):
    policy, told = Vllm("m", {}), []
    engine = policy._load()
    own = engine.generate
    monkeypatch.setattr(engine, "generate", lambda asked, how, **more: told.extend(how) or own(asked, how, **more))
    ask(policy, [Task("a", 0, "x", None, 7)], Sampling(0.6, 8, None, 0.95, 20, 0.01))
    assert vars(told[0]) == {"temperature": 0.6, "max_tokens": 8, "top_p": 0.95, "top_k": 20, "min_p": 0.01, "seed": 7}


def test_vllm_that_cannot_start_and_an_adapter_that_is_none_are_one_clear_sentence(pretend_vllm, tasks, tmp_path):
    with pytest.raises(T2TError, match="^vLLM could not start\n") as refusal:
        ask(Vllm("no/gpu", {}), tasks[:1], Sampling())
    assert "Failed to infer device type" in refusal.value.cause and "hf:no/gpu" in refusal.value.next
    with pytest.raises(T2TError, match="there is no adapter"):
        ask(Vllm("m", {"lora": str(tmp_path)}), tasks[:1], Sampling())
    (tmp_path / "adapter_config.json").write_text('{"r": 12}')
    assert Vllm("m", {"lora": str(tmp_path)})._load().options == {"enable_lora": True, "max_lora_rank": 16}


def test_the_thinking_switch_is_passed_on_only_where_it_is_set():
    class Template:
        chat_template = "x"

        def apply_chat_template(self, messages, **options):
            return f"{messages[0]['content']} {options}"

    texts = [chat_prompt(Template(), [Message("user", "hello")], thinking) for thinking in (None, True, False)]
    assert "thinking" not in texts[0] and "'enable_thinking': True" in texts[1] and "'enable_thinking': False" in texts[2]
    Template.chat_template = ""
    assert chat_prompt(Template(), [Message("user", "hello")], True) == "hello"


class Templated:
    """What a tokenizer with that template does, without its weights' library in the way."""

    def __init__(self, template):
        pytest.importorskip("transformers.utils.chat_template_utils")  # here and not first in the child, whose time is short
        self.chat_template, self.name_or_path = template, "stranger"

    def apply_chat_template(self, said, tokenize, add_generation_prompt, **switch):
        from transformers.utils.chat_template_utils import render_jinja_template

        rendered, _ = render_jinja_template(
            [said], chat_template=self.chat_template, add_generation_prompt=add_generation_prompt, **switch
        )
        return rendered[0]


HELLO = [Message("user", "hello")]
LOOPS = "{% for a in range(99999) %}" * 4 + "x" + "{% endfor %}" * 4


def test_a_template_is_rendered_in_the_order_of_the_conversations():
    template = Templated("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ enable_thinking }}")
    said = [[Message("user", str(n)), Message("assistant", "\udc80")] for n in range(600)]
    prompts = chat_prompts(template, [(messages, ()) for messages in said], False)
    assert prompts == [f"<user>{n}<assistant>\udc80False" for n in range(600)]
    template.chat_template = "another"
    assert chat_prompt(template, HELLO) == "another"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        (LOOPS, "did not come to an end"),
        ("{{ 'x' * 10**12 }}", "it fails: MemoryError|it ended the process"),
        ("{{ range(99999) | list * 99999 }}", "it fails|it ended the process"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "it fails: RecursionError|it ended the process"),
        ("{% for a in range(999) %}{{ 'x' * 99999 }}{% endfor %}", "longer than"),
        ("{{ messages.nothing.there }}", "it fails: UndefinedError"),
        ("{% if", "it fails: TemplateSyntaxError"),
        ("{{ ().__class__.__base__.__subclasses__() }}", "it fails: SecurityError"),
        ("{{ raise_exception('no system message\x1b') }}", "no system message"),
    ],
)
def test_a_template_that_fails_or_never_ends_is_one_clear_sentence(template, complaint, monkeypatch):
    monkeypatch.setattr(chat, "SECONDS", 5)
    stranger = Templated(template)
    with pytest.raises(T2TError, match=complaint) as error:
        chat_prompt(stranger, HELLO)
    assert "stranger" in error.value.where and "\x1b" not in str(error.value)
    stranger.chat_template = "{{ messages[0].content }}"
    assert chat_prompt(stranger, HELLO) == "hello", "the next one is rendered all the same"


def test_a_renderer_ends_with_its_tokenizer_and_holds_nothing_of_its_parents(tmp_path):
    import fcntl

    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stranger = Templated("{{ messages[0].content }}")
        chat_prompt(stranger, HELLO)
        child = stranger._t2t_renderer._process._child
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the child has no copy that would still hold it
    del stranger
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


BROKEN = {
    "no JSON": "{",
    "a list": "[]",
    "deep": '{"a":' * 100_000,
    "digits": '{"vocab_size": ' + "9" * 100_000 + "}",
    "nothing": "",
    "another kind": '{"model_type": "no such"}',
    "values of another type": '{"model_type": "qwen3", "hidden_size": "x", "num_attention_heads": []}',
    "negative": '{"model_type": "qwen3", "hidden_size": -5, "vocab_size": -1}',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "generation_config.json"])
def test_a_broken_configuration_is_one_clear_sentence(folder, tasks, tmp_path, file, text):
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model" / file).write_text(text)
    try:
        list(HuggingFace(str(tmp_path / "model"), {}).respond(tasks[:1], Sampling(max_tokens=1)))
    except T2TError as error:
        assert str(tmp_path) in str(error)
    else:
        assert file != "config.json", "what it says of the model must be read"


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_a_configuration_that_is_a_pipe_or_huge_is_not_read(folder, tasks, tmp_path, file):
    for number, plant in enumerate((os.mkfifo, lambda path: (path.touch(), os.truncate(path, 1 << 40)))):
        shutil.copytree(folder, tmp_path / str(number))
        (tmp_path / str(number) / file).unlink()
        plant(tmp_path / str(number) / file)
        with pytest.raises(T2TError, match="cannot be read"):
            list(HuggingFace(str(tmp_path / str(number)), {}).respond(tasks[:1], Sampling(max_tokens=1)))
