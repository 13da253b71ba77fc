"""Which GPUs serve a model: the least that it fits on, and as many replicas as there is room for."""

from __future__ import annotations

import pytest

from reflash.engines.layout.fit import Ask, Layout, lay_out, sizes
from reflash.engines.layout.gpus import Gpu, NvmlCards, chosen, visible
from reflash.engines.layout.model import ModelFacts, model_facts
from reflash.errors import ConfigError
from tests.engines.sizes import GIB, LARGE, QWEN3_8B, QWEN36_27B, SMALL, cards

ASK = Ask(context=32768, share=0.92)


def indexes(layout: Layout) -> list[list[int]]:
    return [[gpu.index for gpu in group] for group in layout.replicas]


@pytest.mark.parametrize(("facts", "billions"), [(SMALL, 8.19), (LARGE, 26.9)])
def test_the_size_follows_from_the_config(facts: ModelFacts, billions: float) -> None:
    assert facts.weights / 2e9 == pytest.approx(billions, rel=0.01)
    assert facts.weights_from == "its config.json"


def test_a_mixture_of_experts_counts_every_expert() -> None:
    # Qwen3-30B-A3B: 30.5 billion in all
    config = {
        **QWEN3_8B,
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_key_value_heads": 4,
        "num_experts": 128,
        "moe_intermediate_size": 768,
        "intermediate_size": 6144,
    }
    assert model_facts(config, None).weights / 2e9 == pytest.approx(30.5, rel=0.01)


def test_quantised_weights_are_smaller_and_the_weight_files_decide_where_they_are_there() -> None:
    fp8 = model_facts({**QWEN36_27B, "quantization_config": {"quant_method": "fp8"}}, None)
    fp4 = model_facts({**QWEN36_27B, "quantization_config": {"quant_algo": "NVFP4"}}, None)
    assert LARGE.weights > fp8.weights > fp4.weights > 14e9
    assert model_facts(QWEN36_27B, 65 * GIB).weights == 65 * GIB


def test_a_hybrid_model_keeps_a_cache_in_a_quarter_of_its_layers_and_a_state_in_the_others() -> None:
    assert LARGE.hybrid
    assert not SMALL.hybrid
    assert LARGE.cache_per_token == 16 * 2 * 4 * 256 * 2  # full layers, keys and values, heads, size, bytes
    assert LARGE.state_per_sequence == pytest.approx(154e6, rel=0.01)


def test_a_large_card_holds_a_replica_each() -> None:
    assert indexes(lay_out(cards(4, 96, "RTX PRO 6000"), LARGE, ASK, "m")) == [[0], [1], [2], [3]]


def test_small_cards_join_in_groups_of_the_least_size_that_fits() -> None:
    assert indexes(lay_out(cards(8, 24), LARGE, ASK, "m")) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert indexes(lay_out(cards(8, 32), LARGE, ASK, "m")) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_a_card_too_many_is_left_idle() -> None:
    assert indexes(lay_out(cards(3, 32), LARGE, ASK, "m")) == [[0, 1]]


def test_a_layout_says_its_arithmetic() -> None:
    [note] = lay_out(cards(1), LARGE, ASK, "Qwen3.6-27B").notes
    assert "1 replica with TP 1 on GPUs 0 (NVIDIA H200)" in note
    assert "50.1 of weights + 2.1 for one whole sequence + 3.0 beside = 55.2 GiB a GPU" in note
    assert "76.6 GiB left for sequences" in note


def test_nothing_that_fits_is_an_error_with_the_arithmetic_and_what_would_fit() -> None:
    with pytest.raises(ConfigError) as caught:
        lay_out(cards(2, 24, "RTX 4090"), LARGE, ASK, "Qwen3.6-27B")
    said = str(caught.value)
    assert "TP 1: 50.1 of weights" in said
    assert "TP 2: 25.0 of weights" in said
    assert "2 x RTX 4090 of 24.0 GiB" in said
    assert "22.1 GiB a GPU" in said
    assert "1 of 61 GiB, or 2 of 32 GiB, or 4 of 18 GiB" in said
    assert "now 32768" in said


def test_what_would_fit_does_fit() -> None:
    assert indexes(lay_out(cards(4, 18), LARGE, ASK, "m")) == [[0, 1, 2, 3]]
    assert indexes(lay_out(cards(1, 61), LARGE, ASK, "m")) == [[0]]


def test_a_shorter_context_and_a_coarser_cache_fit_on_less() -> None:
    long = Ask(context=131072, share=0.92)
    assert indexes(lay_out(cards(2, 24), SMALL, Ask(8192, 0.92), "m")) == [[0], [1]]
    assert indexes(lay_out(cards(2, 32), SMALL, long, "m")) == [[0, 1]]
    assert indexes(lay_out(cards(2, 32), SMALL, Ask(131072, 0.92, cache_bytes=1.0), "m")) == [[0], [1]]


def test_the_config_may_say_otherwise() -> None:
    assert indexes(lay_out(cards(4), SMALL, Ask(8192, 0.92, tp=2), "m")) == [[0, 1], [2, 3]]
    assert indexes(lay_out(cards(4), SMALL, Ask(8192, 0.92, replicas=1), "m")) == [[0]]
    tight = lay_out(cards(1, 24), LARGE, Ask(8192, 0.92, tp=1), "m")
    assert "does not fit with TP 1; the config asks for it" in tight.notes[-1]


def test_more_than_there_are_is_an_error_with_both_numbers() -> None:
    with pytest.raises(ConfigError, match=r"3 replicas of 2 GPUs are 6, but 4 can be used"):
        lay_out(cards(4), SMALL, Ask(8192, 0.92, tp=2, replicas=3), "m")
    with pytest.raises(ConfigError, match=r"1 replicas of 8 GPUs are 8, but 4 can be used"):
        lay_out(cards(4), SMALL, Ask(8192, 0.92, tp=8), "m")


def test_a_card_that_somebody_uses_is_left_out_unless_it_is_named() -> None:
    mixed = [*cards(1, used=40 * GIB), *cards(1, first=1)]
    layout = lay_out(mixed, SMALL, ASK, "m")
    assert indexes(layout) == [[1]]
    assert "GPU 0 is left out: 40.0 of its 141.0 GiB are in use" in layout.notes[0]
    assert indexes(lay_out(mixed, SMALL, Ask(32768, 0.92, named=True), "m")) == [[0], [1]]
    with pytest.raises(ConfigError, match="no GPU to serve m: GPU 0 is left out"):
        lay_out(mixed[:1], SMALL, ASK, "m")


def test_cards_of_two_kinds_are_never_in_one_group() -> None:
    mixed = [*cards(3, 32, "RTX 5090"), *cards(3, 32, "V100", first=3)]
    assert indexes(lay_out(mixed, LARGE, ASK, "m")) == [[0, 1], [3, 4]]


def test_a_kind_that_is_too_small_is_left_idle() -> None:
    assert indexes(lay_out([*cards(1, 24, "small"), *cards(1, 141, first=1)], LARGE, ASK, "m")) == [[1]]


def test_heads_are_split_evenly() -> None:
    assert sizes(LARGE) == [1, 2, 4, 8]
    seven = model_facts({**QWEN3_8B, "num_attention_heads": 28, "num_key_value_heads": 4}, None)
    assert sizes(seven) == [1, 2, 4]


def test_a_size_that_does_not_split_them_is_an_error_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match=r"heads of m \(24, 16, 48; 4 for .* over 3 GPUs; over 1, 2, 4, 8 they can"):
        lay_out(cards(4), LARGE, Ask(8192, 0.92, tp=3), "m")


def test_cuda_visible_devices_is_heeded_by_index_and_by_uuid() -> None:
    assert [g.index for g in visible(cards(4), None)] == [0, 1, 2, 3]
    assert [g.index for g in visible(cards(4), "3,1")] == [3, 1]
    assert [g.index for g in visible(cards(4), "GPU-0002")] == [2]
    assert visible(cards(4), "") == []


@pytest.mark.parametrize(("said", "words"), [("7", "7 is no GPU"), ("MIG-x", "MIG"), ("1,1", "GPU 1 twice")])
def test_a_gpu_that_is_not_there_is_an_error_that_lists_those_that_are(said: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        visible(cards(2), said)


def test_gpus_of_the_config_are_named_in_its_errors() -> None:
    with pytest.raises(ConfigError, match=r"engine.gpus: 5 is no GPU .* there are 0 \(GPU-0000-abc…, NVIDIA H200\)"):
        chosen(cards(1), ["5"], "engine.gpus")


def test_the_driver_is_asked_without_harm_where_there_is_none() -> None:
    assert all(isinstance(gpu, Gpu) for gpu in NvmlCards().gpus())
