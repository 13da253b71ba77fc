"""A file of tokenized rows, some thousand rows at a time, whatever format it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reflash.printable import printable
from reflash.sources.groups import groups
from reflash.sources.ids import given_id
from reflash.sources.raw import ColumnPart, Part, RawRow
from reflash.sources.shapes import IDS as ID_COLUMNS
from reflash.sources.shapes import TOKENIZED, is_tokenized
from reflash.tokenized.lists import Lists, flat_lists, python_lists

IDS, MASK = TOKENIZED
CONVERSATION_ROW = "a conversation among tokenized rows"  # the reason of such a row
_ROWS = 512  # of JSON, judged together


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows in a row."""

    numbers: list[int] | None  # 1-based lines; None where rows have only their position in the file
    size: int
    ids: Lists
    mask: Lists
    columns: frozenset[str]
    names: Any = None  # a `pyarrow.Array` of the rows' own ids as text, null where a row has none; None: not asked for


def batches(part: Part, *, named: bool = False) -> Iterator[Batch]:
    """The rows of a part; with their own ids where `named`. Raises SourceError, behind the rows before the fault."""
    return _of_columns(part, named) if isinstance(part, ColumnPart) else _of_rows(part.records(), named)


def _of_columns(part: ColumnPart, named: bool) -> Iterator[Batch]:
    """Batches of a file that is stored by columns."""
    there = tuple(name for name in TOKENIZED if name in part.columns)
    columns = frozenset(part.columns)
    missing = _missing(columns) if there or is_tokenized(dict.fromkeys(part.columns)) else CONVERSATION_ROW
    own = next(((name,) for name in ID_COLUMNS if name in columns), ()) if named else ()
    for batch in part.batches(tuple(dict.fromkeys((*(there or part.columns[:1]), *own)))):
        rows = batch.num_rows
        if len(there) == len(TOKENIZED):
            ids, mask = (flat_lists(batch.column(batch.schema.get_field_index(name)), name) for name in TOKENIZED)
        else:
            ids = mask = Lists.unusable(rows, missing)
        names = _as_text(batch.column(batch.schema.get_field_index(own[0]))) if own else None
        yield Batch(None, rows, ids, mask, columns, names)


def _as_text(column: Any) -> Any:
    """A column of ids as text, as rows of conversations have them; None where it holds neither text nor integers."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _as_text(column.dictionary_decode())
    fit = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    return column.cast(pa.string()) if fit else None


def _missing(columns: frozenset[str]) -> str:
    absent = " and ".join(name for name in TOKENIZED if name not in columns)
    seen = ", ".join(sorted(printable(name, 40) for name in columns)[:12])
    hint = "; labels of -100 mark what is not supervised: loss_mask = labels != -100" if "labels" in columns else ""
    return f"column {absent} is missing (columns: {seen}){hint}"


def _of_rows(records: Iterator[RawRow], named: bool) -> Iterator[Batch]:
    """Batches of JSON rows; those before an error come out first. Raises SourceError."""
    for raw, error in groups(records, _ROWS):
        if raw:
            yield _of_group(raw, named)
        if error is not None:
            raise error


def _of_group(raw: list[RawRow], named: bool) -> Batch:
    values = [row.value if isinstance(row.value, dict) else {} for row in raw]
    faults = {i: fault for i, row in enumerate(raw) if (fault := _row_fault(row))}
    ids = python_lists([None if i in faults else value[IDS] for i, value in enumerate(values)], IDS)
    mask = python_lists([None if i in faults else value[MASK] for i, value in enumerate(values)], MASK)
    ids.faults.update(faults)
    columns = frozenset(key for i, value in enumerate(values) if i not in faults for key in value)
    names = pa.array([_name(value) for value in values], pa.string()) if named else None
    return Batch([row.origin.row for row in raw], len(raw), ids, mask, columns, names)


def _name(value: dict[str, Any]) -> str | None:
    return next((name for key in ID_COLUMNS if (name := given_id(value.get(key))) is not None), None)


def _row_fault(row: RawRow) -> str:
    """Why a JSON row is not a tokenized one; "" where it is."""
    if row.reason:
        return row.reason
    if not isinstance(row.value, dict):
        return f"row is a {type(row.value).__name__}, not an object"
    if IDS in row.value and MASK in row.value:
        return ""
    return _missing(frozenset(row.value)) if is_tokenized(row.value) else CONVERSATION_ROW
