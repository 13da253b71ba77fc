"""What is known of a model before it is loaded, from its folder or from the Hub."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reflash.engines.serve.weights import read_model
from reflash.errors import ConfigError
from tests.engines.sizes import QWEN3_8B, QWEN36_27B


def folder(tmp_path: Path, config: object = QWEN3_8B) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(config))
    return made


def test_without_weights_the_size_follows_from_the_config(tmp_path: Path) -> None:
    model = read_model(str(folder(tmp_path)), None)
    assert model.local
    assert model.facts.weights / 2e9 == pytest.approx(8.19, rel=0.01)


def test_the_index_of_the_weights_says_their_size(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 12345}}))
    assert read_model(str(made), None).facts.weights == 12345


def test_without_an_index_the_files_are_weighed_each_once(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made / "model.safetensors").write_bytes(bytes(1000))
    (made / "consolidated.safetensors").write_bytes(bytes(1000))
    facts = read_model(str(made), None).facts
    assert (facts.weights, facts.weights_from) == (1000, "its weight files")


def test_a_model_on_the_hub_is_weighed_without_being_fetched() -> None:
    script = Path(__file__).with_name("model_hub.py")
    answer = subprocess.run(
        [sys.executable, str(script), json.dumps(QWEN36_27B)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == [False, 16_000_000_000, "its weight files"]


@pytest.mark.parametrize("name", ["/nowhere/model", "./model", "a/b/c", "model"])
def test_a_model_that_is_nowhere_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"there is no folder {name}, and it is no Hub id"):
        read_model(name, None)


def test_a_folder_that_is_no_model_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no readable config\.json"):
        read_model(str(tmp_path), None)
    strange = {"model_type": "new", "num_hidden_layers": 3}
    with pytest.raises(ConfigError, match=r"does not say its 'num_attention_heads'.*kind: endpoint"):
        read_model(str(folder(tmp_path, strange)), None)
