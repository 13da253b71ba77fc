"""What each id of a byte-level vocabulary stands for, so that text is joined from bytes in place of being spelled."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise

from tokenizers import Tokenizer

_TRIED, _RUN = 2_000, 50  # ids that are decoded both ways before the table is trusted, and how many at once
# Byte-level BPE writes bytes that are no visible character of Latin-1 as characters from U+0100 on (as GPT-2 did).
_VISIBLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
BYTES = {chr(byte): byte for byte in _VISIBLE} | {chr(0x100 + n): byte for n, byte in enumerate(_HIDDEN)}


class TokenBytes:
    """Decodes as a tokenizer does, several times as fast."""

    def __init__(self, tokens: dict[str, int]) -> None:
        """`tokens` gives ids by their spelling; an id that has none is never to be asked for."""
        self._bytes = [b""] * (1 + max(tokens.values(), default=0))
        for token, number in tokens.items():
            self._bytes[number] = _spelled(token)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, U+FFFD for bytes that are no UTF-8."""
        return b"".join(map(self._bytes.__getitem__, ids)).decode("utf-8", "replace")


def token_bytes(tokenizer: Tokenizer) -> TokenBytes | None:
    """The table of a vocabulary, None where its decoder is another than byte-level, or decodes otherwise."""
    decoder = json.loads(tokenizer.to_str()).get("decoder") or {}
    if decoder.get("type") != "ByteLevel":
        return None
    tokens = tokenizer.get_vocab(with_added_tokens=True)
    table = TokenBytes(tokens)
    tried = random.Random(0).sample(list(tokens.values()), min(_TRIED, len(tokens)))
    edges = [*range(0, len(tried), _RUN), len(tried)]
    runs = [*(tried[a:b] for a, b in pairwise(edges)), list(tokenizer.get_added_tokens_decoder())]
    alike = all(tokenizer.decode(run, skip_special_tokens=False) == table.decode(run) for run in runs)
    return table if alike else None


def _spelled(token: str) -> bytes:
    try:
        return bytes([BYTES[character] for character in token])
    except KeyError:  # an added token is written as it is
        return token.encode()
