"""Where tokenizers are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, models

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.errors import RenderError
from reflash.render.load import load_renderer
from reflash.render.tokenizer import LoadedTokenizer, load_tokenizer

TEMPLATE = "{% for m in messages %}{{ m.content }}<end>{% endfor %}"


def folder(at: Path, **said: Any) -> Path:
    at.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    tokenizer.add_special_tokens([AddedToken("<end>", normalized=False), AddedToken("<stop>", normalized=False)])
    tokenizer.save(str(at / "tokenizer.json"))
    (at / "tokenizer_config.json").write_text(json.dumps(said))
    return at


def load(path: Path | str) -> LoadedTokenizer:
    return load_tokenizer(ModelConfig(name="model", tokenizer=str(path)))


def test_a_folder_gives_tokenizer_template_and_end_marks(tmp_path: Path) -> None:
    at = folder(tmp_path, eos_token={"content": "<end>"}, bos_token="<stop>", chat_template="other")
    (at / "chat_template.jinja").write_text(TEMPLATE)
    (at / "generation_config.json").write_text('{"eos_token_id": [3, 2]}')
    loaded = load(at)
    assert loaded.template == TEMPLATE  # the file beside it wins
    assert loaded.stop_ids == (3, 2)
    assert loaded.special == {"eos_token": "<end>", "bos_token": "<stop>"}


def test_a_tokenizer_json_finds_what_lies_beside_it(tmp_path: Path) -> None:
    loaded = load(folder(tmp_path, eos_token="<end>", chat_template=TEMPLATE) / "tokenizer.json")
    assert loaded.template == TEMPLATE
    assert loaded.stop_ids == (2,)


def test_of_several_templates_the_default_one_is_taken(tmp_path: Path) -> None:
    several = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": TEMPLATE}]
    assert load(folder(tmp_path, chat_template=several)).template == TEMPLATE


def test_added_tokens_named_only_in_the_config_are_added(tmp_path: Path) -> None:
    loaded = load(folder(tmp_path, added_tokens_decoder={"4": {"content": "<new>", "special": True}}))
    assert loaded.tokenizer.encode("a<new>").ids == [0, 4]


def test_the_digest_follows_vocabulary_and_template(tmp_path: Path) -> None:
    first = load(folder(tmp_path / "one", chat_template=TEMPLATE))
    assert load(folder(tmp_path / "two", chat_template=TEMPLATE)).digest == first.digest
    assert load(folder(tmp_path / "three", chat_template=TEMPLATE + " ")).digest != first.digest


@pytest.mark.parametrize("name", ["./nowhere/at/all", "nowhere.json", "no-such-folder"])
def test_a_place_that_does_not_exist_is_named(name: str) -> None:
    with pytest.raises(RenderError, match=f"{name}: no such file or folder; set model.tokenizer"):
        load(name)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(RenderError, match=r"tokenizer\.json: not a tokenizer"):
        load(tmp_path)


def test_a_folder_without_any_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(RenderError, match=r"holds no tokenizer\.json"):
        load(tmp_path)


def test_a_folder_of_older_files_is_converted(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text('{"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}')
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')
    assert load(tmp_path).tokenizer.encode("abb").ids == [2, 1]


def test_a_hub_id_is_found_in_the_cache_and_one_that_is_not_is_named_with_the_remedy(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--acme--tiny"
    folder(repository / "snapshots" / commit, eos_token="<end>", chat_template=TEMPLATE)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    script = """
from reflash.config.model import ModelConfig
from reflash.errors import RenderError
from reflash.render.tokenizer import load_tokenizer
print(load_tokenizer(ModelConfig(name="acme/tiny")).stop_ids)
try:
    load_tokenizer(ModelConfig(name="acme/absent", revision="v2"))
except RenderError as error:
    print(error)
"""
    environment = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[0] == "(2,)"
    assert "acme/absent at v2: no tokenizer here" in run.stdout
    assert "set model.tokenizer to a folder" in run.stdout


def test_no_template_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    config = ModelConfig(name="model", tokenizer=str(folder(tmp_path)))
    with pytest.raises(RenderError, match=r"has no chat template; set model\.chat_template"):
        load_renderer(config, ThinkingConfig())


@pytest.mark.parametrize("as_file", [True, False])
def test_the_config_s_template_takes_the_place_of_the_tokenizer_s(tmp_path: Path, as_file: bool) -> None:
    from reflash.types import Message

    text = "{% for m in messages %}b{{ m.content }}{% endfor %}"
    (tmp_path / "mine.jinja").write_text(text)
    config = ModelConfig(
        name="model",
        tokenizer=str(folder(tmp_path / "model", chat_template=TEMPLATE)),
        chat_template=str(tmp_path / "mine.jinja") if as_file else text,
    )
    assert load_renderer(config, ThinkingConfig()).prompt([Message("user", "a")], "", thinking=True) == (1, 0)


def test_a_template_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    config = ModelConfig(name="model", tokenizer=str(folder(tmp_path)), chat_template="absent.jinja")
    with pytest.raises(RenderError, match=r"absent\.jinja: model\.chat_template names no file"):
        load_renderer(config, ThinkingConfig())
