"""A tokenizer many times as fast as the reference, where it can load the vocabulary: byte-level BPE, by gigatoken.

It is trusted for nothing but "the same": what it finds to differ is for the reference to say.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from tokenizers import Tokenizer

log = logging.getLogger(__name__)

# Ids that one tokenizer encodes; then a new one takes its place (0.4 s), since gigatoken 0.10 never forgets a word.
RENEWED = 2**26
NOWHERE = -1
# Arrow's own choice gives a block's memory back before the next one: to clear new pages takes a tenth of the time.
_POOL = pa.jemalloc_memory_pool() if "jemalloc" in pa.supported_memory_backends() else pa.default_memory_pool()
_NO_TEXT = b"\xff"  # of an id that no token has: it makes any text it stands in broken
# Between two words: encoded apart they must give the same ids as together.
_WORDS = (
    ("The fox", " can"),
    ("3.\n    if x", " Zebra's"),
    ("é'll", " e\u0301a"),
    ("SHOULDN'T", " I'LL"),
    ("a" * 99, " s"),
    ("x = f(1)", " + 12"),
    ("12345", " 6789"),
    ("it'", " s"),
    ("{'a':", "   \n 1"),
    ("//", " é"),
)
_OVER = re.compile(rb"[!-~] ")  # within a token: words are no words to this vocabulary
REACH = 256  # ids that a piece is looked for on either side
# What pre-tokenizers tell apart. Each vocabulary is tried on these before it is trusted.
_PROBES = (
    "The quick brown fox can't, won't and SHOULDN'T. I'LL we'Re\r\n\r\n\tif x==y:  return\u00a0f'{z!r:>10}'   \n \n",
    "3.14159 2026-11-30 1234567 0x7fff 10^6 ½ ² Ⅷ ٣٤٥ १२३",
    "Cafe\u0301 naïve Å Å ﬁ ﬀ Straße ΣΊΣΥΦΟΣ Привет, мир! שָׁלוֹם مَرْحَبًا नमस्ते สวัสดี 안녕 각",
    "日本語、中文。🙂👩‍👩‍👧‍👦🇫🇷 \u200b\u200d\ufeff \u2028\u2029 \u3000 \x00\x01\x7f \ufffd",
    '<|im_end|> <think> </s> [INST] {"a": [1, 2.5e-3, null]} $\\frac{a}{b}$ https://example.org/a_b?c=d#e ```py\n```',
    "a" * 300 + " " * 70 + "=" * 90 + "\n" * 9 + "ab" * 80 + "_" * 17 + "!" * 33,
)


@dataclass(frozen=True, slots=True)
class Runs:
    """Ids, one run behind the other, and their bytes."""

    ids: NDArray[np.int32]
    ends: NDArray[np.int64]
    tokens: pa.BinaryArray  # the bytes of each id

    def texts(self) -> pa.StringArray:
        """The text of each run, which its bytes need not be."""
        _, offsets, data = self.tokens.buffers()
        bounds = np.frombuffer(offsets, np.int32, len(self.ids) + 1)[np.concatenate([[0], self.ends])]
        return pa.StringArray.from_buffers(len(self.ends), pa.py_buffer(bounds), data)


class FastTokenizer:
    """gigatoken's tokenizer for one vocabulary, and the bytes of each of its tokens."""

    def __init__(self, source: str) -> None:
        """`source`: a tokenizer.json's text. Raises RuntimeError where gigatoken cannot load it."""
        self._source = source
        self._tokenizer = self._load()
        self._encoded = 0  # ids since it was loaded
        tokens: dict[int, bytes] = self._tokenizer.vocab
        self._unknown = 1 + max(tokens, default=0)
        texts = [tokens.get(i) or _NO_TEXT for i in range(self._unknown + 1)]
        self._bytes = pa.array(texts, pa.binary())
        # A word begins with the space behind a visible character: every pre-tokenizer cuts there, whatever follows.
        self._ends_word = np.array([b"!" <= text[-1:] <= b"~" for text in texts])
        self._begins_word = np.array([text[:1] == b" " for text in texts])
        if any(map(_OVER.search, texts)):
            self._begins_word[:] = False

    def decoded(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> Runs:
        """Runs with their bytes; run i ends before `ids[ends[i]]`, none is empty. Ids are not negative.

        Nearly all of it is one call that lets go of the interpreter's lock, and it is the only one: to get the lock
        back takes 5 ms beside a thread that encodes.
        """
        try:
            return Runs(ids, ends, pc.take(self._bytes, _indices(ids), memory_pool=_POOL))
        except pa.ArrowIndexError:
            return Runs(ids, ends, pc.take(self._bytes, _indices(np.minimum(ids, self._unknown)), memory_pool=_POOL))

    def differing(self, runs: Runs) -> dict[int, int]:
        """Runs that their own text encodes otherwise: where each first differs; NOWHERE if its bytes are no text."""
        ids, ends = runs.ids, runs.ends
        if self._encoded > RENEWED:
            self._tokenizer, self._encoded = self._load(), 0
        self._encoded += len(ids)
        texts, encode, begin = runs.texts(), self._tokenizer.encode, 0
        found: dict[int, int] = {}
        for run, (text, end) in enumerate(zip(texts.view(pa.binary()).to_pylist(), ends.tolist(), strict=True)):
            # One by one this is as fast as gigatoken's batches on one core, and spares the import of awkward.
            encoded, given = encode(text), ids[begin:end]
            if encoded.tobytes() != given.tobytes():
                found[run] = _first_difference(encoded, given)
            begin = end
        return found | dict.fromkeys(_broken(texts, 0), NOWHERE)

    def piece(self, run: NDArray[np.int32], place: int) -> tuple[int, int]:
        """The part of a run around a place that is encoded by itself as it is within the run: from word to word."""
        low, high = max(0, place - REACH), place + REACH
        known = np.minimum(run[low:high], self._unknown)
        cuts = low + 1 + np.flatnonzero(self._ends_word[known[:-1]] & self._begins_word[known[1:]])
        before, behind = cuts[cuts <= place], cuts[cuts > place]
        return int(before[-1]) if len(before) else 0, int(behind[0]) if len(behind) else len(run)

    def _load(self) -> Any:
        from gigatoken import Tokenizer as Gigatoken

        return Gigatoken.from_json(self._source).backend


def fast_tokenizer(reference: Tokenizer, name: str) -> FastTokenizer | None:
    """The fast tokenizer for a vocabulary; None where there is none, or it differs from the reference on the probes."""
    try:
        fast = FastTokenizer(reference.to_str())
    except RuntimeError as error:
        first = next(iter(str(error).splitlines()), "")
        log.info("%s is checked with the reference tokenizer alone, since gigatoken cannot load it: %s", name, first)
        return None
    added = [token.content for token in reference.get_added_tokens_decoder().values()]
    if _reads_alike(fast, reference, (*_PROBES, *map(_around, added))):
        return fast
    log.warning("%s is checked with the reference tokenizer alone: gigatoken reads it otherwise", name)
    return None


def _reads_alike(fast: FastTokenizer, reference: Tokenizer, probes: Sequence[str]) -> bool:
    def ids(text: str) -> NDArray[np.int32]:
        return np.array(reference.encode(text, add_special_tokens=False).ids, np.int32)

    whole = [ids(text) for text in probes]
    if any(not len(one) or fast.differing(fast.decoded(one, np.array([len(one)]))) for one in whole):
        return False
    return all(np.array_equal(ids(a + b), np.concatenate([ids(a), ids(b)])) for a, b in _WORDS)


def _around(text: str) -> str:
    return f"a{text} {text}{text}\n{text}b"


def _first_difference(one: NDArray[np.uint32], other: NDArray[np.int32]) -> int:
    """Where two unlike runs begin to differ."""
    shared = min(len(one), len(other))
    unlike = np.flatnonzero(one[:shared] != other[:shared])
    return int(unlike[0]) if len(unlike) else shared


def _indices(ids: NDArray[np.int32]) -> pa.Int32Array:
    return pa.Array.from_buffers(pa.int32(), len(ids), [None, pa.py_buffer(ids)])


def _broken(runs: pa.StringArray, first: int) -> list[int]:
    """Which runs are no UTF-8. Arrow says whether one among many is, in no time; so they are halved until it is one."""
    try:
        runs.validate(full=True)
    except pa.ArrowInvalid:
        if len(runs) == 1:
            return [first]
        half = len(runs) // 2
        return _broken(runs[:half], first) + _broken(runs[half:], first + half)
    return []
