"""A column of lists becomes one flat numpy array and the length of each row, whatever type it was stored in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reflash.printable import printable

Flat = NDArray[Any]


@dataclass(slots=True)
class Lists:
    """A column of integer lists."""

    values: Flat  # of all rows, one after another; integers
    lengths: NDArray[np.int64]  # of each row; 0 where it has a fault
    faults: dict[int, str] = field(default_factory=dict)  # row in this batch: why it cannot be used
    repairs: dict[int, str] = field(default_factory=dict)

    @classmethod
    def unusable(cls, rows: int, reason: str) -> Lists:
        """A column of which no row can be used."""
        return cls(np.zeros(0, np.int64), np.zeros(rows, np.int64), dict.fromkeys(range(rows), reason))


def flat_lists(column: Any, name: str) -> Lists:
    """Flatten an Arrow column without a loop over its values."""
    column = _decoded(column)
    if not _is_list(column.type):
        return Lists.unusable(
            len(column), f"{name} is of type {printable(str(column.type), 80)}, not a list of integers"
        )
    lengths = _lengths(column)
    values = _decoded(pc.list_flatten(column))
    nulls = np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False))
    faults = dict.fromkeys(nulls.tolist(), f"{name} is null")
    repairs: dict[int, str] = {}
    if _is_list(values.type):
        values, lengths = _unwrapped(values, lengths, name, faults, repairs)
    lists = Lists(np.zeros(0, np.int64), lengths, faults, repairs)
    if _is_list(values.type) or not _is_number(values.type):
        return Lists.unusable(len(column), f"{name} holds {printable(str(values.type), 80)}, not integers")
    _numbers(values, name, lists)
    return lists


def _decoded(column: Any) -> Any:
    """The values themselves, where a column holds them in a roundabout way."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        return column.dictionary.take(column.indices)
    return pc.run_end_decode(column) if pa.types.is_run_end_encoded(column.type) else column


def _is_list(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind))


def _lengths(column: Any) -> NDArray[np.int64]:
    found = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.int64)


def _unwrapped(
    inner: Any, lengths: NDArray[np.int64], name: str, faults: dict[int, str], repairs: dict[int, str]
) -> tuple[Any, NDArray[np.int64]]:
    """`[[1, 2]]` holds one list and is read as it; several lists in a row are a fault."""
    single = lengths == 1
    faults.update(dict.fromkeys(np.flatnonzero(lengths > 1).tolist(), f"{name} is nested: several lists in one row"))
    repairs.update(dict.fromkeys(np.flatnonzero(single).tolist(), f"{name} was nested: unwrapped"))
    kept = inner.filter(pa.array(np.repeat(single, lengths)))
    missing = pc.is_null(kept).to_numpy(zero_copy_only=False)
    faults.update(dict.fromkeys(np.flatnonzero(single)[missing].tolist(), f"{name} is null"))
    out = np.zeros(len(lengths), np.int64)
    out[single] = _lengths(kept)
    return _decoded(pc.list_flatten(kept)), out


def _numbers(values: Any, name: str, lists: Lists) -> None:
    """Fill in the flat values; rows with nulls or fractions get their fault."""
    if values.null_count:
        _fault(lists, pc.is_null(values).to_numpy(zero_copy_only=False), f"{name} has null inside")
    kind = values.type
    if pa.types.is_null(kind):
        lists.values = np.zeros(len(values), np.int64)
        return
    if values.null_count:
        values = pc.fill_null(values, pa.scalar(0).cast(kind))
    if pa.types.is_boolean(kind):
        _note(lists, f"{name} was boolean: read as 0 and 1")
        values = values.cast(pa.int8())
    flat = values.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):
        flat = _whole(flat, name, lists)
    lists.values = flat


def _whole(flat: Flat, name: str, lists: Lists) -> Flat:
    flat = flat.astype(np.float64)
    with np.errstate(invalid="ignore"):
        broken = ~(np.abs(flat) < 2**53) | (np.floor(flat) != flat)
    _fault(lists, broken, f"{name} has fractions")
    _note(lists, f"{name} was of floats: read as integers")
    return np.where(broken, 0, flat).astype(np.int64)


def _fault(lists: Lists, broken: NDArray[np.bool_], reason: str) -> None:
    at = np.flatnonzero(broken)
    rows = np.unique(np.searchsorted(np.cumsum(lists.lengths), at, side="right"))
    for row in rows.tolist():
        lists.faults.setdefault(row, reason)


def _note(lists: Lists, text: str) -> None:
    for row in np.flatnonzero(lists.lengths).tolist():
        lists.repairs.setdefault(row, text)


def python_lists(values: list[Any], name: str) -> Lists:
    """Flatten the lists of some JSON rows: all at once where every one is plain, else row by row."""
    try:
        column = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        column = None
    if column is not None and pa.types.is_list(column.type) and pa.types.is_int64(column.type.value_type):
        return flat_lists(column, name)
    faults: dict[int, str] = {}
    repairs: dict[int, str] = {}
    cleaned = [_cleaned(value, name, row, faults, repairs) for row, value in enumerate(values)]
    lists = flat_lists(pa.array(cleaned, pa.list_(pa.int64())), name)
    lists.faults.update(faults)
    lists.repairs.update(repairs)
    return lists


def _cleaned(value: Any, name: str, row: int, faults: dict[int, str], repairs: dict[int, str]) -> list[int]:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        repairs[row] = f"{name} was nested: unwrapped"
        value = value[0]
    fault = _fault_of(value, name)
    if fault:
        faults[row] = fault
        return []
    kinds = set(map(type, value))
    if bool in kinds:
        repairs.setdefault(row, f"{name} was boolean: read as 0 and 1")
    if float in kinds:
        repairs.setdefault(row, f"{name} was of floats: read as integers")
    return value if kinds <= {int} else [int(item) for item in value]


def _fault_of(value: Any, name: str) -> str:
    """Why a JSON value is no list of integers; "" where it is one, or can be read as one."""
    if value is None:
        return f"{name} is null"
    if not isinstance(value, list):
        return f"{name} is of type {type(value).__name__}, not a list of integers"
    kinds = set(map(type, value))
    if type(None) in kinds:
        return f"{name} has null inside"
    if list in kinds:
        return f"{name} is nested: several lists in one row"
    if odd := kinds - {int, float, bool}:
        return f"{name} holds {'text' if str in odd else odd.pop().__name__}, not integers"
    if float in kinds and not all(type(item) is not float or item.is_integer() for item in value):
        return f"{name} has fractions"
    if any(not -(2**63) <= item < 2**63 for item in value):
        return f"{name} has a number beyond 64 bits"
    return ""
