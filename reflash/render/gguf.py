"""The tokenizer and chat template inside a `.gguf` file.

Only the head of the file is read, here: the `gguf` package's own reader makes an array of each string, two seconds for
the 98,000 of a small model where this takes a tenth of one.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from reflash.errors import RenderError

STRING, ARRAY = 8, 9
# By the format's numbers: u8 i8 u16 i16 u32 i32 f32 bool, then u64 i64 f64.
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # kinds of tokens that text is searched for before it is split

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_DIGITS_GPT2 = (r"\p{N}", _GPT2)
_LLAMA3 = (rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}",)
_QWEN2 = (rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_SYMBOLS}|{_SPACES}",)
_QWEN35 = (
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",
)
# What `tokenizer.ggml.pre` means: patterns that split text one after the other.
SPLITS: dict[str, tuple[str, ...]] = {
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
    **dict.fromkeys(("gpt-2", "mpt", "olmo", "jais", "trillion", "granite-docling"), (_GPT2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"), _DIGITS_GPT2),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "dbrx", "smaug-bpe"), _LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan"), _QWEN2),
    "qwen35": _QWEN35,
}
COMPOSED = frozenset({"qwen2", "deepseek-r1-qwen", "qwen35"})  # text is put into NFC first
WHOLE_WORDS = frozenset({"llama-bpe", "llama3", "llama-v3", "falcon3"})  # a word in the vocabulary is not merged


def read_gguf(path: Path) -> dict[str, Any]:
    """The metadata of a `.gguf` file, by its keys. Raises RenderError naming the file where it cannot be read."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Head(data).fields()
    except OSError as error:
        raise RenderError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, struct.error, UnicodeDecodeError, KeyError) as error:
        raise RenderError(f"{path}: not a .gguf file of version 2 or 3, or cut short ({error})") from error


def gguf_tokenizer(fields: Mapping[str, Any], path: Path) -> Tokenizer:
    """The tokenizer that the metadata describes: byte-level BPE, the only kind made here."""
    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or pre not in SPLITS:
        raise RenderError(
            f"{path}: its tokenizer ({kind}, {pre}) is not one that is read from .gguf; "
            "set model.tokenizer to a folder with the model's tokenizer.json"
        )
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    model = {
        "type": "BPE",
        "vocab": {token: number for number, token in enumerate(tokens)},
        "merges": [merge.split(" ", 1) for merge in fields["tokenizer.ggml.merges"]],
        "ignore_merges": pre in WHOLE_WORDS,
    }
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in SPLITS[pre]
    ]
    added = [
        _added(number, token, kind)
        for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED)
    ]
    state = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "NFC"} if pre in COMPOSED else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, byte_level]},
        "decoder": byte_level,
        "model": model,
    }
    return Tokenizer.from_str(json.dumps(state))


def _added(number: int, token: str, kind: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": token, **flags, "special": kind != USER_DEFINED}


class _Head:
    """Reads metadata one value after the other."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def fields(self) -> dict[str, Any]:
        if self._data[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._at = 4
        version, _tensors, count = self._number("I"), self._number("Q"), self._number("Q")
        if version not in (2, 3):
            raise ValueError(f"version {version}")
        return {self._string(): self._value(self._number("I")) for _ in range(count)}

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._number(NUMBERS[kind])
        inner, length = self._number("I"), self._number("Q")
        if inner in NUMBERS:
            layout = f"<{length}{NUMBERS[inner]}"
            self._at += struct.calcsize(layout)
            return list(struct.unpack_from(layout, self._data, self._at - struct.calcsize(layout)))
        return [self._value(inner) for _ in range(length)]

    def _number(self, layout: str) -> Any:
        (number,) = struct.unpack_from("<" + layout, self._data, self._at)
        self._at += struct.calcsize("<" + layout)
        return number

    def _string(self) -> str:
        length = self._number("Q")
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise ValueError("a string runs past the end")
        return self._data[start : self._at].decode()
