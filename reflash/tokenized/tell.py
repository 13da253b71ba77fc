"""Tokenized rows told from conversations, by the first row that can be read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from reflash.errors import SourceError
from reflash.sources.raw import ColumnPart
from reflash.sources.shapes import is_tokenized
from reflash.sources.source import Source


def holds_tokens(source: Source) -> bool:
    """Whether the first row that can be read is a tokenized one."""
    for part in source.parts:
        try:
            for row in _first_rows(part):
                return is_tokenized(row)
        except SourceError:
            continue  # said when its rows are read
    return False


def _first_rows(part: Any) -> Any:
    if isinstance(part, ColumnPart):
        for batch in part.batches():
            if batch.num_rows:
                yield dict(zip(batch.schema.names, map(_sample, batch.slice(0, 1).columns), strict=True))
                return
        return
    for raw in part.records():
        if isinstance(raw.value, dict):
            yield raw.value
            return


def _sample(column: Any) -> Any:
    """What a column's type says: enough to tell a list of integers from the rest."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [0, 0] if pa.types.is_integer(kind.value_type) else []
    return None if pa.types.is_null(kind) else str(kind)
