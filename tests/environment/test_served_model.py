"""What an environment's transformers makes of a model's folder: ours, on folders made for it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from reflash.environment.collect.served_model import tried_by
from reflash.environment.facts import Model
from tests.qwen_files import qwen3_tokenizer_folder


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Qwen3's tokenizer, made once."""
    return qwen3_tokenizer_folder(tmp_path_factory.mktemp("qwen3"))


def tried(folder: Path, kind: str = "qwen3") -> Model:
    (folder / "config.json").write_text(json.dumps({"model_type": kind, "architectures": ["Qwen3ForCausalLM"]}))
    return tried_by(Model(str(folder), folder=str(folder), model_type=kind), sys.executable, "")


def test_tokenizer_template_and_type_are_tried(qwen3: Path) -> None:
    model = tried(qwen3)
    assert (model.type_known, model.tokenizer, model.renders, model.registered) == (True, "", "", None)
    assert model.thinking is True


def test_a_folder_without_a_tokenizer_and_of_an_unknown_type_is_told(tmp_path: Path) -> None:
    model = tried(tmp_path, "a_type_that_nobody_knows")
    assert model.type_known is False
    assert model.tokenizer
    assert model.renders is None


def test_a_template_that_fails_is_told_and_unharmful(qwen3: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(qwen3, tmp_path / "copy"))
    (folder / "chat_template.jinja").write_text("{{ raise_exception('no\\x1b[31m such turn') }}")
    model = tried(folder)
    assert "such turn" in (model.renders or "")
    assert "\x1b" not in (model.renders or "")


def test_a_model_of_the_hub_is_left_alone() -> None:
    model = Model("owner/name")
    assert tried_by(model, "/no/such/python", "vllm") is model
