"""Parquet and Arrow files, by batches: memory holds some megabytes of rows, whatever the file's size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from reflash.errors import SourceError
from reflash.printable import printable
from reflash.sources.parquet_pages import batch_size
from reflash.sources.parse import TOO_DEEP
from reflash.sources.raw import RawRow
from reflash.sources.scan import MAX_ROW, too_long
from reflash.sources.sizes import slices, spread
from reflash.sources.streams import raw_chunks, reading
from reflash.types import Origin

_UNREADABLE = (ValueError, OverflowError, KeyError, pa.ArrowException)  # KeyError: a time zone that is not known
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # what every Arrow writer puts at the end of a stream


@dataclass(frozen=True)
class ParquetPart:
    """A Parquet file."""

    file: str
    path: Path

    @cached_property
    def _opened(self) -> Any:
        with reading(self.file):
            return pq.ParquetFile(self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the top-level columns."""
        with reading(self.file):
            return tuple(self._opened.schema_arrow.names)

    def batches(self, columns: tuple[str, ...] | None = None) -> Iterator[Any]:
        """Record batches of about 8 MiB. Raises SourceError."""
        opened = self._opened
        with reading(self.file), self.path.open("rb") as handle:
            count = batch_size(opened.metadata, handle, columns, self.file)
            for batch in opened.iter_batches(batch_size=count, columns=None if columns is None else list(columns)):
                yield from (piece for piece, _ in slices(batch))

    def records(self) -> Iterator[RawRow]:
        """Rows by their position."""
        return batch_rows(self.batches(), self.file)

    def content(self) -> Iterator[bytes]:
        """The file's bytes."""
        return raw_chunks(self.path, self.file)


@dataclass(frozen=True)
class ArrowPart:
    """An Arrow file, in the file format or as a stream."""

    file: str
    path: Path

    @cached_property
    def _kind(self) -> Literal["file", "stream"]:
        with reading(self.file), self.path.open("rb") as handle:
            if handle.read(6) == b"ARROW1":
                return "file"
            handle.seek(max(0, handle.seek(0, 2) - len(_END)))
            if handle.read() != _END:
                raise SourceError(
                    f"{self.file}: unreadable (cut off: the mark that ends an Arrow stream is missing); "
                    "copy or download it again"
                )
            return "stream"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the top-level columns."""
        kind = self._kind
        with reading(self.file), pa.memory_map(str(self.path)) as source:
            opened = pa.ipc.open_file(source) if kind == "file" else pa.ipc.open_stream(source)
            return tuple(opened.schema.names)

    def batches(self, columns: tuple[str, ...] | None = None) -> Iterator[Any]:
        """The file's record batches, cut to slices of some thousand rows."""
        kind = self._kind
        with reading(self.file), pa.memory_map(str(self.path)) as source:
            found = _of_file(source) if kind == "file" else iter(pa.ipc.open_stream(source))
            for batch in found:
                _sound(batch)
                chosen = batch if columns is None else batch.select(list(columns))
                yield from (piece for piece, _ in slices(chosen))

    def records(self) -> Iterator[RawRow]:
        """Rows by their position."""
        return batch_rows(self.batches(), self.file)

    def content(self) -> Iterator[bytes]:
        """The file's bytes."""
        return raw_chunks(self.path, self.file)


def _sound(batch: Any) -> None:
    """Refuse a batch whose offsets point outside it: reading one would end the process, not raise.

    Text that is not UTF-8 is left to the row that has it: such a column is checked as bytes.
    """
    for column in batch.columns:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            column.view(_as_bytes(column.type)).validate(full=True)


def _as_bytes(kind: Any) -> Any:
    """A type with bytes wherever it has text."""
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_list(kind):
        return pa.list_(_as_bytes(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_as_bytes(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _as_bytes(field.type)) for field in kind])
    return kind


def _of_file(source: Any) -> Iterator[Any]:
    opened = pa.ipc.open_file(source)
    for index in range(opened.num_record_batches):
        yield opened.get_batch(index)


def batch_rows(batches: Iterator[Any], file: str) -> Iterator[RawRow]:
    """Rows of record batches; one that cannot be turned into Python values, or is too long, is set aside alone."""
    number = 0
    for batch in batches:
        size = spread(batch)
        for value, reason in _values(batch) if size <= MAX_ROW else _each(batch):
            number += 1
            yield RawRow(Origin(file, number), value, reason=reason, size=size // batch.num_rows)


def _values(batch: Any) -> Iterator[tuple[dict[str, Any] | None, str]]:
    """All rows at once; where that fails, each alone."""
    try:
        values = [without_nulls(value) for value in batch.to_pylist()]
    except (*_UNREADABLE, RecursionError):
        return _each(_in_utc(batch))
    return ((value, "") for value in values)


def _each(batch: Any) -> Iterator[tuple[dict[str, Any] | None, str]]:
    for index in range(batch.num_rows):
        yield _one(batch.slice(index, 1))


def _one(row: Any) -> tuple[dict[str, Any] | None, str]:
    """One row, or the reason why it cannot be used."""
    if spread(row) > MAX_ROW:
        return None, too_long(MAX_ROW)
    try:
        return without_nulls(row.to_pylist()[0]), ""
    except RecursionError:
        return None, TOO_DEEP
    except _UNREADABLE as error:
        return None, f"a value cannot be read: {printable(str(error))}"


def _in_utc(batch: Any) -> Any:
    """The batch with its times in UTC, as they are stored: the name of their zone may be known to nobody."""
    columns = [
        column.cast(pa.timestamp(column.type.unit, "UTC")) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose nested objects hold no null: Arrow gives every object of a column the keys of all others."""
    return {key: _pruned(value) for key, value in row.items()}


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value[:1] + value[-1:]):
        return [_pruned(item) for item in value]
    return value
