"""How many tokens texts have: by gigatoken where it reads a vocabulary as the reference does, else by that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from reflash.config.model import ModelConfig
from reflash.render.fast import RENEWED, fast_tokenizer
from reflash.render.tokenizer import load_tokenizer


class Counter(Protocol):
    """Counts tokens."""

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Ids that each text encodes to, control tokens of a template aside."""


@lru_cache(maxsize=2)
def counter(name: str) -> Counter:
    """What counts with the tokenizer of that name. Raises RenderError where there is none."""
    reference = load_tokenizer(ModelConfig(name=name, tokenizer=name)).tokenizer
    return _Reference(reference) if fast_tokenizer(reference, name) is None else _Fast(reference.to_str())


class _Reference:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return np.fromiter(map(len, encoded), np.int64, len(texts))


class _Fast:
    def __init__(self, source: str) -> None:
        self._source, self._encoded = source, 0
        self._tokenizer = self._load()

    def lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        if self._encoded > RENEWED:
            self._tokenizer, self._encoded = self._load(), 0
        encode = self._tokenizer.encode
        found = np.fromiter((len(encode(text.encode("utf-8", "replace"))) for text in texts), np.int64, len(texts))
        self._encoded += int(found.sum())
        return found

    def _load(self) -> Any:
        from gigatoken import Tokenizer as Gigatoken

        return Gigatoken.from_json(self._source).backend
