"""How many rows of a Parquet file to decode at once: its dictionary pages say what a value may take, at most."""

from __future__ import annotations

from typing import Any

from reflash.errors import SourceError
from reflash.sources.scan import MAX_ROW
from reflash.sources.sizes import rows_at_once

_LEAF = 8  # bytes of a value at least; run-length encoded masks are far smaller on disk
_WORST = 256 << 20  # bytes of a batch, were every value the largest of its dictionary
_HEADER = 16  # bytes that hold the first two fields of a page's header
_INTEGER = 0x15  # "the next field, an integer", in Thrift's compact form


def batch_size(metadata: Any, handle: Any, columns: tuple[str, ...] | None, file: str) -> int:
    """Rows that take about 8 MiB once decoded, and 256 MiB if every value is as long as its dictionary allows.

    Raises SourceError where the rows of a group must take more than a row may.
    """
    rows, size, worst = int(metadata.num_rows), 0, 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = [group.column(i) for i in range(group.num_columns)]
        chosen = [chunk for chunk in chunks if columns is None or chunk.path_in_schema.startswith(columns)]
        values = sum(_LEAF * chunk.num_values for chunk in chosen)
        if values > MAX_ROW * max(1, group.num_rows):
            raise SourceError(f"{file}: the rows of its row group {number} take more than {MAX_ROW >> 20} MiB each")
        size += sum(max(int(chunk.total_uncompressed_size), _LEAF * chunk.num_values) for chunk in chosen)
        worst += sum(chunk.num_values * _longest(chunk, handle) for chunk in chosen)
    return max(1, min(rows_at_once(rows, size), _WORST * rows // max(1, worst)))


def _longest(chunk: Any, handle: Any) -> int:
    """Bytes of the longest value in a column's dictionary, at most: those of the whole; 0 where it has none."""
    if chunk.physical_type != "BYTE_ARRAY" or not chunk.has_dictionary_page:
        return 0
    handle.seek(chunk.dictionary_page_offset)
    found = _page_size(handle.read(_HEADER))
    return int(chunk.total_uncompressed_size) if found is None else found


def _page_size(header: bytes) -> int | None:
    """The second field of a page's header: its size once unpacked, in bytes. None where it does not stand there."""
    if len(header) < _HEADER or header[0] != _INTEGER:
        return None
    _, at = _number(header, 1)
    if header[at] != _INTEGER:
        return None
    return _number(header, at + 1)[0]


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length zigzag number of up to 5 bytes, and the position behind it."""
    raw = 0
    for shift in range(5):
        raw |= (data[at + shift] & 0x7F) << 7 * shift
        if data[at + shift] < 0x80:
            return (raw >> 1) ^ -(raw & 1), at + shift + 1
    return 0, at + 5
