"""The items of a benchmark out of its files, whatever column holds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reflash.census.items import Benchmark, ItemList, joined_lists, make_items, read_items, write_items
from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.printable import printable
from reflash.sources.open import open_source

_COLUMNS = ("prompt", "question", "problem", "text", "instruction", "query", "turns")


def item_texts(path: str, column: str | None) -> list[str]:
    """What each row of a benchmark's file asks. Raises SourceError naming the row that has no such text."""
    texts = []
    for part in open_source(SourceConfig(path=path)).parts:
        for raw in part.records():
            where = f"{raw.origin.file}: row {raw.origin.row}"
            if not isinstance(raw.value, dict):
                raise SourceError(f"{where}: {raw.reason or 'is no object'}")
            texts.append(_text(raw.value, column, where))
    if not texts:
        raise SourceError(f"{path}: no rows; nothing to make n-grams of")
    return texts


def _text(row: dict[str, Any], column: str | None, where: str) -> str:
    names = _COLUMNS if column is None else (column,)
    for name in names:
        value = row.get(name)
        if isinstance(value, list):  # the turns of a dialogue: the first is what is asked
            value = value[0] if value else None
        if isinstance(value, str) and value.strip():
            return value
    there = printable(", ".join(sorted(map(str, row))), 200)
    raise SourceError(f"{where}: no text under {' or '.join(names)} (columns: {there}); say which with --column")


def add_benchmark(out: Path, paths: Sequence[str], name: str, origin: str, column: str | None) -> ItemList:
    """Put the items of some files into a list under a name, in the place of those it had; the whole list."""
    texts = [text for path in paths for text in item_texts(path, column)]
    made = make_items(name, origin, texts)
    whole = joined_lists([read_items(out), made] if out.exists() else [made])
    write_items(out, whole)
    return whole


def told(benchmark: Benchmark) -> str:
    """One line for a person."""
    short = f"; {benchmark.short:,} of fewer than 5 words are not looked for" if benchmark.short else ""
    return f"{benchmark.name}: {benchmark.items:,} items ({benchmark.origin}){short}"
