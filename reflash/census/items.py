"""Benchmark items in prompts: lists of n-gram hashes, kept sorted in a Parquet file, and who holds one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reflash.census.grams import Bytes, Ints, Words, joined
from reflash.census.hashes import Hashes, RunHasher
from reflash.config.audit import AuditRules
from reflash.config.paths import local_path
from reflash.errors import ConfigError, SourceError
from reflash.sources.streams import reading
from reflash.sources.walk import shown

KNOWN = Path(__file__).parent / "benchmarks" / "items.parquet"
WORDS, STRIDE, SHORTEST = 8, 4, 5  # words of an n-gram, words to the next one of an item, words of the shortest item
_META = b"reflash.items"
_SIEVE = 20  # bits of a hash that are looked at first
_PIECE = 1 << 17  # bytes looked at together


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Items under one name."""

    name: str
    origin: str  # where they came from
    items: int
    short: int  # items of fewer than 5 words, which are not looked for


@dataclass(frozen=True, slots=True)
class ItemList:
    """N-grams of the items of some benchmarks."""

    benchmarks: tuple[Benchmark, ...] = ()
    hashes: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))  # rising
    items: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # of each hash: its item, numbered through
    lengths: tuple[int, ...] = ()  # words of the n-grams

    @property
    def size(self) -> int:
        """Items of all benchmarks."""
        return sum(one.items for one in self.benchmarks)


def make_items(name: str, origin: str, texts: Sequence[str]) -> ItemList:
    """The n-grams of a benchmark's items: of every fourth word on and of the end; a short item is one n-gram."""
    text, ends = joined(list(texts))
    words = Words(RunHasher(), text, ends)
    short = int(np.count_nonzero(words.counts < SHORTEST))
    pieces: list[tuple[Hashes, Ints]] = []
    lengths = [n for n in range(SHORTEST, WORDS + 1) if n == WORDS or np.any(words.counts == n)]
    for length in lengths:
        hashes, owner = words.grams(length)
        place = np.arange(len(owner)) - np.searchsorted(owner, owner)  # of each n-gram in its item
        last = place == words.counts[owner] - length
        wanted = words.counts[owner] >= WORDS if length == WORDS else words.counts[owner] == length
        kept = wanted & ((place % STRIDE == 0) | last)
        pieces.append((hashes[kept], owner[kept]))
    found, items = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return _sorted((Benchmark(name, origin, len(texts), short),), found, items, tuple(lengths))


def joined_lists(lists: Iterable[ItemList]) -> ItemList:
    """Several lists as one; a benchmark takes the place of an earlier one of its name."""
    named: dict[str, ItemList] = {}
    for one in lists:
        named |= {own.benchmarks[0].name: own for own in _apart(one)}
    if not named:
        return ItemList()
    own = list(named.values())
    bases = np.cumsum([0, *(one.size for one in own)])
    items = [one.items + base for one, base in zip(own, bases[:-1], strict=True)]
    lengths = tuple(sorted({length for one in own for length in one.lengths}))
    benchmarks = tuple(one.benchmarks[0] for one in own)
    return _sorted(benchmarks, np.concatenate([one.hashes for one in own]), np.concatenate(items), lengths)


def _apart(one: ItemList) -> Iterator[ItemList]:
    """A list of each benchmark alone."""
    first = 0
    for benchmark in one.benchmarks:
        own = (one.items >= first) & (one.items < first + benchmark.items)
        yield ItemList((benchmark,), one.hashes[own], one.items[own] - first, one.lengths)
        first += benchmark.items


def _sorted(benchmarks: tuple[Benchmark, ...], hashes: Hashes, items: Ints, lengths: tuple[int, ...]) -> ItemList:
    order = np.lexsort((items, hashes))
    return ItemList(benchmarks, hashes[order], items[order].astype(np.int64), lengths)


def write_items(path: Path, items: ItemList) -> None:
    """Write a list. Raises ConfigError where the file cannot be written."""
    said = {"version": 1, "lengths": items.lengths, "benchmarks": [asdict(one) for one in items.benchmarks]}
    table = pa.table({"hash": pa.array(items.hashes), "item": pa.array(items.items.astype(np.uint32))})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            table.replace_schema_metadata({_META: json.dumps(said, ensure_ascii=False).encode()}),
            path,
            compression="zstd",
            use_dictionary=False,
            column_encoding={"hash": "PLAIN", "item": "DELTA_BINARY_PACKED"},
        )
    except OSError as error:
        raise ConfigError(f"{shown(path)}: cannot be written ({error.strerror or error})") from error


def read_items(path: Path) -> ItemList:
    """A list as it lies in a file. Raises ConfigError where there is none, SourceError where it is none."""
    name = shown(path)
    if not path.is_file():
        raise ConfigError(f"{name}: no such list of benchmark items; `reflash audit ngrams` makes one")
    with reading(name):
        table = pq.read_table(path)
    try:
        said = json.loads((table.schema.metadata or {})[_META])
        benchmarks = tuple(Benchmark(**one) for one in said["benchmarks"])
        hashes = table.column("hash").to_numpy().astype(np.uint64)
        items = table.column("item").to_numpy().astype(np.int64)
        return ItemList(benchmarks, hashes, items, tuple(said["lengths"]))
    except (KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise SourceError(f"{name}: is no list of benchmark items; `reflash audit ngrams` makes one") from error


class Finder:
    """Tells which items some texts hold; `least`: n-grams of an item that have to be met, or all it has."""

    def __init__(self, items: ItemList, least: int) -> None:
        self.items = items
        self._needed = np.minimum(np.bincount(items.items, minlength=items.size), least)
        self._keys, self._first = np.unique(items.hashes, return_index=True)
        self._after = np.append(self._first, len(items.hashes))[1:]
        self._sieve = np.zeros(1 << _SIEVE, bool)
        self._sieve[self._keys >> np.uint64(64 - _SIEVE)] = True

    def find(self, hasher: RunHasher, text: Bytes, ends: Ints) -> tuple[Ints, Ints]:
        """Pairs of a text's number and an item's; `text` and `ends` as in `Words`."""
        pairs = [np.zeros((2, 0), np.int64)]
        if self.items.lengths:
            pairs += [self._piece(hasher, text, ends, first, last) for first, last in _pieces(ends)]
        owner, item = np.concatenate(pairs, 1)
        return owner, item

    def _piece(self, hasher: RunHasher, text: Bytes, ends: Ints, first: int, last: int) -> Ints:
        """The pairs of some of the texts."""
        begin = int(ends[first - 1]) if first else 0
        words = Words(hasher, text[begin : ends[last - 1]], ends[first:last] - begin)
        met = [self._met(*words.grams(length)) for length in self.items.lengths]
        owner, entry = (np.concatenate(column) for column in zip(*met, strict=True))
        if not len(owner):
            return np.zeros((2, 0), np.int64)
        once = np.unique(np.stack([owner, entry]), axis=1)  # each n-gram of an item once a text
        pairs, count = np.unique(np.stack([once[0], self.items.items[once[1]]]), axis=1, return_counts=True)
        return (pairs[:, count >= self._needed[pairs[1]]] + [[first], [0]]).astype(np.int64)

    def _met(self, hashes: Hashes, owner: Ints) -> tuple[Ints, Ints]:
        """Texts and entries of the list, of n-grams that stand in it."""
        likely = np.flatnonzero(self._sieve[hashes >> np.uint64(64 - _SIEVE)])
        hashes, owner = hashes[likely], owner[likely]
        at = np.minimum(np.searchsorted(self._keys, hashes), max(len(self._keys) - 1, 0))
        same = np.flatnonzero(self._keys[at] == hashes) if len(self._keys) else np.zeros(0, np.int64)
        at, owner = at[same], owner[same]
        times = self._after[at] - self._first[at]  # items that share the n-gram
        entry = np.repeat(self._first[at] - np.cumsum(times) + times, times) + np.arange(int(times.sum()))
        return np.repeat(owner, times), entry

    def benchmark(self, items: Ints) -> NDArray[np.int64]:
        """The number of the benchmark of each item."""
        ends = np.cumsum([one.items for one in self.items.benchmarks])
        return np.searchsorted(ends, items, side="right").astype(np.int64)


def _pieces(ends: Ints) -> list[tuple[int, int]]:
    """Texts by ranges of about 128 KiB, which the processor's cache holds."""
    size = int(ends[-1]) if len(ends) else 0
    cuts = np.unique(np.searchsorted(ends, np.arange(_PIECE, size, _PIECE), side="right"))
    edges = [0, *cuts[cuts > 0].tolist(), len(ends)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def finder_for(rules: AuditRules) -> Finder | None:
    """What looks for the items that a census is to find; None where there are none.

    Raises ConfigError or SourceError where a list cannot be read.
    """
    paths = [*([KNOWN] if rules.known_items else []), *map(local_path, rules.items)]
    return Finder(joined_lists(map(read_items, paths)), rules.item_grams) if paths else None
