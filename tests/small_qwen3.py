"""A Qwen3 of ten million parameters that a real engine serves: random weights, but for what kind of token follows.

After a newline comes `<think>`, some of 400 words, `</think>`, some of 400 others, `<|im_end|>`: answers of some tens
of tokens that are thought through, end by themselves, and differ by seed. Greedy ones take the shortest way.
"""

from __future__ import annotations

import json
import shutil
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.qwen_files import qwen3_tokenizer_folder

VOCABULARY, HIDDEN, LAYERS, HEAD, FFN = 151_936, 32, 2, 32, 64
NEWLINE, THINK, END_OF_THOUGHT, END = 198, 151_667, 151_668, 151_645
WORDS, OTHER_WORDS = range(10_000, 10_400), range(20_000, 20_400)
# The kinds of token, and how probable each is to follow: of all its words together.
KINDS = ([NEWLINE], [THINK], list(WORDS), [END_OF_THOUGHT], list(OTHER_WORDS), [END])
FOLLOWS = {0: {1: 1.0}, 1: {2: 1.0}, 2: {2: 0.95, 3: 0.05}, 3: {4: 1.0}, 4: {4: 0.9, 5: 0.1}, 5: {5: 1.0}}
NEVER = -30.0  # logit of what does not follow
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "head_dim": HEAD,
    "intermediate_size": FFN,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "attention_bias": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 151_643,
    "eos_token_id": END,
}

Floats = NDArray[np.float32]


def small_qwen3(tmp: Path) -> Path:
    """A folder with config, weights and tokenizer, made once in `tmp`; skips where the tokenizer cannot be made."""
    folder = tmp / "small-qwen3"
    if not folder.exists():
        making = tmp / "small-qwen3.making"
        shutil.copytree(qwen3_tokenizer_folder(tmp), making)
        (making / "config.json").write_text(json.dumps(CONFIG))
        _write(making / "model.safetensors")
        making.rename(folder)
    return folder


def _write(path: Path) -> None:
    chance = np.random.default_rng(7)
    embedding, head = _ends(chance)
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": head, "model.norm.weight": np.ones(HIDDEN)}
    for layer in range(LAYERS):
        tensors |= {f"model.layers.{layer}.{name}": value for name, value in _layer(chance).items()}
    raw = {name: _bfloat16(value) for name, value in tensors.items()}
    header, at = {}, 0
    for name, value in tensors.items():
        end = at + len(raw[name])
        header[name] = {"dtype": "BF16", "shape": list(value.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    path.write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *raw.values()]))


def _ends(chance: np.random.Generator) -> tuple[Floats, Floats]:
    """The embedding says a token's kind in its first six places; the head turns it into logits of what follows."""
    kinds = len(KINDS)
    embedding = chance.normal(0, 0.02, (VOCABULARY, HIDDEN)).astype(np.float32)
    head = chance.normal(0, 0.02, (VOCABULARY, HIDDEN)).astype(np.float32)
    embedding[:, 0] += 1.0  # any other token is followed by what follows a newline
    head[:, :kinds] = NEVER
    for kind, tokens in enumerate(KINDS):
        embedding[tokens, :kinds] = np.eye(kinds)[kind]
        for before, following in FOLLOWS.items():
            if kind in following:
                head[tokens, before] = log(following[kind] / len(tokens))
    head[:, :kinds] /= np.sqrt(HIDDEN)  # the last norm makes a unit vector this long
    return embedding, head


def _layer(chance: np.random.Generator) -> dict[str, Floats]:
    shapes = {"q": (HEAD, HIDDEN), "k": (HEAD, HIDDEN), "v": (HEAD, HIDDEN), "o": (HIDDEN, HEAD)}
    mixing = {f"self_attn.{n}_proj.weight": chance.normal(0, 0.01, shape) for n, shape in shapes.items()}
    shapes = {"gate": (FFN, HIDDEN), "up": (FFN, HIDDEN), "down": (HIDDEN, FFN)}
    thinking = {f"mlp.{n}_proj.weight": chance.normal(0, 0.01, shape) for n, shape in shapes.items()}
    norms = {n: np.ones(HIDDEN) for n in ("input_layernorm.weight", "post_attention_layernorm.weight")}
    norms |= {f"self_attn.{n}_norm.weight": np.ones(HEAD) for n in "qk"}
    return {**mixing, **thinking, **norms}


def _bfloat16(values: Floats) -> bytes:
    """The upper halves of the 32-bit floats."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
