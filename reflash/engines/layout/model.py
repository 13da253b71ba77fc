"""What a model's config.json says of its size. Pure: a config in, figures out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The figures that decide on how many GPUs a model is served, and with which flags."""

    model_type: str  # of the whole model: "qwen3", "qwen3_5"
    hybrid: bool  # some layers keep a state a sequence instead of a cache a token
    multimodal: bool  # it has a part that sees or hears
    context: int | None  # the most tokens it was made for
    weights: int  # bytes
    weights_from: str  # where that figure is from
    splits: tuple[int, ...]  # counts that a tensor-parallel size must divide
    kv_heads: int  # a size above this gives each GPU one head again
    cache_per_token: int  # bytes in all its full-attention layers, at two bytes a number
    state_per_sequence: int  # bytes in its other layers, 0 where there are none
    hidden: int = 0  # numbers of a hidden state
    layers: int = 0
    columns: int = 0  # of a feed-forward matrix, of one expert's where there are several
    extra_layers: int = 0  # that guess further tokens (MTP)
    vocabulary: int | None = None  # ids that its embedding has


def model_facts(config: Mapping[str, Any], weights: int | None) -> ModelFacts:
    """Read a config.json; `weights` is what the weight files hold in bytes, None where they are not at hand.

    Raises KeyError where a figure that is needed is missing.
    """
    text: Mapping[str, Any] = config.get("text_config") or config
    kind = str(config.get("model_type", ""))
    full, other = _layers(text)
    heads = int(text["num_attention_heads"])
    kv_heads = int(text.get("num_key_value_heads") or heads)
    linear = [int(text[k]) for k in ("linear_num_key_heads", "linear_num_value_heads") if k in text and other]
    return ModelFacts(
        model_type=kind,
        hybrid=other > 0,
        multimodal="vision_config" in config or "audio_config" in config or kind in ("qwen3_5", "qwen3_5_moe"),
        context=text.get("max_position_embeddings"),
        weights=weights or round(_parameters(text) * _bytes_a_parameter(config)),
        weights_from="its weight files" if weights else "its config.json",
        splits=(heads, *linear),
        kv_heads=kv_heads,
        cache_per_token=2 * full * _cache_numbers(text, kv_heads),
        state_per_sequence=other * _state(text),
        hidden=int(text["hidden_size"]),
        layers=full + other,
        columns=int(text.get("moe_intermediate_size") or text.get("intermediate_size") or 0),
        extra_layers=int(text.get("mtp_num_hidden_layers") or text.get("num_nextn_predict_layers") or 0),
        vocabulary=text.get("vocab_size"),
    )


def _layers(text: Mapping[str, Any]) -> tuple[int, int]:
    """Layers that keep a cache of every token, and layers that keep a state."""
    layers = int(text["num_hidden_layers"])
    types = text.get("layer_types")
    if types:
        full = sum("linear" not in t and "mamba" not in t for t in types)
    elif text.get("full_attention_interval") and "linear_num_value_heads" in text:
        full = layers // int(text["full_attention_interval"])
    else:
        full = layers
    return full, layers - full


def _head(text: Mapping[str, Any]) -> int:
    return int(text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"])


def _cache_numbers(text: Mapping[str, Any], kv_heads: int) -> int:
    """Numbers that one token keeps in one layer; with latent attention (MLA) one compressed vector."""
    if text.get("kv_lora_rank"):
        return int(text["kv_lora_rank"]) + int(text.get("qk_rope_head_dim") or 0)
    return 2 * kv_heads * _head(text)


def _state(text: Mapping[str, Any]) -> int:
    """Bytes that one sequence keeps in a gated-delta layer: a matrix a head in 32 bits, the convolution's tail."""
    if "linear_num_value_heads" not in text:
        return 0
    keys = int(text["linear_num_key_heads"]) * int(text["linear_key_head_dim"])
    values = int(text["linear_num_value_heads"]) * int(text["linear_value_head_dim"])
    tail = int(text.get("linear_conv_kernel_dim") or 4) - 1
    return 4 * values * int(text["linear_key_head_dim"]) + 2 * tail * (2 * keys + values)


def _parameters(text: Mapping[str, Any]) -> int:
    hidden, heads = int(text["hidden_size"]), int(text["num_attention_heads"])
    full, other = _layers(text)
    queries = heads * _head(text) * (2 if text.get("attn_output_gate") else 1)
    kept = _cache_numbers(text, int(text.get("num_key_value_heads") or heads))
    attention = hidden * (queries + kept) + heads * _head(text) * hidden
    ends = int(text["vocab_size"]) * hidden * (1 if text.get("tie_word_embeddings") else 2)
    return full * attention + other * _mixer(text, hidden) + (full + other) * _feed_forward(text, hidden) + ends


def _mixer(text: Mapping[str, Any], hidden: int) -> int:
    if "linear_num_value_heads" not in text:
        return 4 * hidden * hidden
    keys = int(text["linear_num_key_heads"]) * int(text["linear_key_head_dim"])
    heads = int(text["linear_num_value_heads"])
    values = heads * int(text["linear_value_head_dim"])
    return hidden * (2 * keys + 2 * values + 2 * heads) + values * hidden


def _feed_forward(text: Mapping[str, Any], hidden: int) -> int:
    experts = text.get("num_experts") or text.get("n_routed_experts") or text.get("num_local_experts")
    if not experts:
        return 3 * hidden * int(text["intermediate_size"])
    wide = int(text.get("moe_intermediate_size") or text["intermediate_size"])
    shared = int(text.get("shared_expert_intermediate_size") or wide * int(text.get("n_shared_experts") or 0))
    return 3 * hidden * (int(experts) * wide + shared) + hidden * int(experts)


def _bytes_a_parameter(config: Mapping[str, Any]) -> float:
    """Engines serve 32-bit weights in 16 bits; quantised ones as they are, with their scales."""
    quantised = config.get("quantization_config") or {}
    told = " ".join(str(quantised.get(k, "")) for k in ("quant_method", "quant_algo", "format", "bits")).lower()
    if not quantised:
        return 2.0
    if any(word in told for word in ("fp4", "awq", "gptq", "4", "mxfp4")) and "fp8" not in told:
        return 0.6
    return 1.1
