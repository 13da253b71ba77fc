"""A model of the Hub, looked at without fetching its weights: the cache first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from reflash.environment.facts import Model
from tests.engines.model_hub import COMMIT
from tests.engines.sizes import QWEN36_27B
from tests.environment.recorded import recorded, troubled

ROOT = Path(__file__).parents[2]
CARD = "`vllm>=0.19.0` is recommended\n```\nvllm serve own/model --reasoning-parser qwen3 --port 8000\n```\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    generation = {"eos_token_id": [248046, 248044], "temperature": 1.0, "top_k": 20, "do_sample": True}
    named = {f"w{i}": f"model-0000{i}-of-00002.safetensors" for i in (1, 2)}
    index = {"metadata": {"total_size": 16_000_000_000}, "weight_map": named}
    (folder / "config.json").write_text(json.dumps(QWEN36_27B))
    (folder / "README.md").write_text(CARD)
    (folder / "generation_config.json").write_text(json.dumps(generation))
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


def looked_at(folder: Path, cache: Path, revision: str = "", answers: bool = True) -> Model:
    arguments = [str(folder), str(cache), revision, "yes" if answers else "no"]
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("hub.py")), *arguments], capture_output=True, env=environment
    )
    assert done.returncode == 0, done.stderr.decode()
    return TypeAdapter(Model).validate_json(done.stdout)


def test_card_config_index_and_generation_are_read_and_weights_left_there(repository: Path, tmp_path: Path) -> None:
    model = looked_at(repository, tmp_path / "cache")
    assert (model.error, model.weights, model.to_fetch, model.broken) == ("", 16_000_000_000, 16_000_000_000, None)
    assert [(a.package, a.version, a.strength) for a in model.asks] == [("vllm", "0.19.0", "recommended")]
    assert (model.parsers, model.template, model.hybrid) == (("qwen3",), True, True)
    assert model.generation is not None
    assert (model.generation.stops, model.generation.sampling["top_k"]) == ((248046, 248044), 20)
    assert (model.pinned, model.revision, model.newest) == (False, COMMIT, COMMIT)


def test_what_the_cache_holds_is_read_without_the_hub(repository: Path, tmp_path: Path) -> None:
    first = looked_at(repository, tmp_path / "cache")
    again = looked_at(repository, tmp_path / "cache", answers=False)
    assert again == replace(first, newest="", to_fetch=0)


def test_a_commit_is_pinned(repository: Path, tmp_path: Path) -> None:
    assert looked_at(repository, tmp_path / "cache", revision=COMMIT).pinned is True


def test_a_model_that_neither_cache_nor_hub_has_is_a_fact(repository: Path, tmp_path: Path) -> None:
    unread = looked_at(repository, tmp_path / "cache", answers=False).error
    assert "config.json of own/model cannot be had from the Hub" in unread
    (repository / "config.json").unlink()
    assert "cannot be had" in looked_at(repository, tmp_path / "other").error


def test_a_shard_that_is_cut_in_the_cache_is_named_and_one_that_is_not_there_yet_is_not(
    repository: Path, tmp_path: Path
) -> None:
    folder = Path(looked_at(repository, tmp_path / "cache").folder)
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"\0" * 4)
    broken = looked_at(repository, tmp_path / "cache", answers=False).broken
    assert broken == ("model-00001-of-00002.safetensors cannot be read (error)",)


@pytest.mark.parametrize(
    ("fault", "check", "status"),
    [
        ({"pinned": False, "revision": "a" * 40, "newest": "b" * 40}, "model.revision", "warn"),
        ({"pinned": True, "revision": "a" * 40, "to_fetch": 2**50, "broken": None}, "model.room", "fail"),
        ({"generation": None}, "model.generation", "warn"),
        ({"parsers": ["kimi_k2"]}, "engine.parser", "warn"),
    ],
)
def test_each_fault_is_named_by_one_check(fault: dict[str, Any], check: str, status: str) -> None:
    planted = {f"model__{name}": value for name, value in fault.items()}
    assert troubled(recorded("pro6000x4", **planted)) == {check: status}
