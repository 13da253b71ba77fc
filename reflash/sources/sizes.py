"""What rows of Arrow take once spread out: dictionaries, runs and views hold far less than they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LEAF = 8  # bytes of a value at least: a Python object takes as much
_OBJECT = 64  # of an object around values
_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 4096


def slices(batch: Any) -> Iterator[tuple[Any, int]]:
    """A record batch cut to pieces that take about 8 MiB spread out, each with what a row of it takes."""
    rows = batch.num_rows
    count = rows_at_once(rows, spread(batch))
    for start in range(0, rows, count):
        piece = batch.slice(start, count)
        yield piece, spread(piece) // piece.num_rows


def rows_at_once(rows: int, size: int) -> int:
    """Rows that take about 8 MiB, where `rows` of them take `size` bytes."""
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * rows // max(1, size)))


def spread(values: Any) -> int:
    """Bytes that an array or a record batch takes with every value written out."""
    if isinstance(values, pa.RecordBatch):
        return sum(map(spread, values.columns))
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return spread(values.storage)
    least = _LEAF * len(values)
    if pa.types.is_dictionary(kind):
        return least + _coded(values)
    if pa.types.is_run_end_encoded(kind):
        return least + len(values) * _largest(values.values)
    if pa.types.is_struct(kind):
        return _OBJECT * len(values) + sum(spread(values.field(i)) for i in range(kind.num_fields))
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return least + _viewed(values)
    if pa.types.is_map(kind):
        return least + spread(_within(values, values.keys)) + spread(_within(values, values.items))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return least + spread(_within(values, values.values))
    if pa.types.is_fixed_size_list(kind):
        return least + spread(values.flatten())
    return max(least, _total(_lengths(values)), values.nbytes if pa.types.is_union(kind) else 0)


def _within(lists: Any, inner: Any) -> Any:
    """The values that lists hold, from the first one's start to the last one's end."""
    start, end = (lists.offsets[at].as_py() for at in (0, -1))
    return inner.slice(start, end - start)


def _coded(values: Any) -> int:
    if (lengths := _lengths(values.dictionary)) is not None:
        return _total(lengths.take(values.indices))
    return len(values) * _largest(values.dictionary)


def _viewed(values: Any) -> int:
    """Lists that may all show the same values."""
    shown = _total(pc.list_value_length(values))
    return -(-shown * spread(values.values) // max(1, len(values.values)))


def _largest(values: Any) -> int:
    """Bytes of the largest value, at most."""
    if (lengths := _lengths(values)) is not None:
        return pc.max(lengths).as_py() or 0
    return spread(values) if pa.types.is_nested(values.type) else _LEAF


def _lengths(values: Any) -> Any:
    """Bytes of each value of an array of text or bytes; None for other types."""
    kind = values.type
    if kind in (pa.string_view(), pa.binary_view()):
        return pa.array(np.frombuffer(values.buffers()[1], np.int32)[values.offset * 4 :: 4][: len(values)])
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or _is_large(kind):
        return pc.binary_length(values)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array(np.full(len(values), kind.byte_width, np.int64))
    return None


def _is_large(kind: Any) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _total(lengths: Any) -> int:
    return 0 if lengths is None else pc.sum(lengths.cast(pa.int64())).as_py() or 0
