"""Token ids as bytes by the million: the vocabulary is one Arrow array, and spelling is taking from it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from reflash.census.grams import BREAK, Bytes, Ints
from reflash.render.token_bytes import BYTES
from reflash.tokenized.lists import Flat

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")
# The byte of each letter; those that stand for themselves need none.
_LETTERS = {ord(letter): byte for letter, byte in BYTES.items() if ord(letter) != byte}
_SPACE = "\u2581"  # how SentencePiece writes one


class Spelling:
    """What each id of a vocabulary spells; control and added tokens spell a break between words."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        added = tokenizer.get_added_tokens_decoder()
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        self._end = 1 + max(vocabulary.values(), default=-1)  # the id of a row's end, and of ids that are none
        pieces = [BREAK.decode()] * (self._end + 1)
        for piece, number in vocabulary.items():
            if number not in added:
                pieces[number] = piece
        by_bytes = tokenizer.token_to_id("Ġ") is not None
        self._words = _spell_bytes(pieces) if by_bytes else pa.array(map(_spell_piece, pieces), pa.binary())

    def bytes(self, ids: Flat, ends: Ints) -> tuple[Bytes, Ints]:
        """Bytes of rows of ids that end at `ends` (exclusive), a break behind each; and where each row's bytes end."""
        known = np.where((ids < 0) | (ids > self._end), self._end, ids).astype(np.int32)
        behind = np.insert(known, ends, self._end)
        taken = self._words.take(pa.array(behind))
        _, offsets, data = taken.buffers()
        at = np.frombuffer(offsets, np.int32)[: len(behind) + 1]
        text = np.frombuffer(data, np.uint8)[: at[-1]] if data is not None else np.zeros(0, np.uint8)
        return text, at[ends + np.arange(1, len(ends) + 1)].astype(np.int64)


def _spell_bytes(pieces: list[str]) -> Any:
    """Pieces of a byte-level vocabulary, each letter of which stands for a byte; as an Arrow array."""
    data = "".join(pieces).translate(_LETTERS).encode("latin-1", "replace")
    offsets = np.zeros(len(pieces) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, pieces), np.int32, len(pieces)), out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), len(pieces), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _spell_piece(piece: str) -> bytes:
    """A piece of a SentencePiece vocabulary."""
    if byte := _BYTE.fullmatch(piece):
        return bytes([int(byte[1], 16)])
    return piece.replace(_SPACE, " ").encode()
