"""A selection: the rows of a set that are to be made again, kept as Parquet."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reflash.errors import ConfigError, SourceError
from reflash.sources.streams import reading
from reflash.sources.walk import shown

_SET_ROWS = b"reflash.rows"  # key in the file's metadata: how many rows the set has
_REMEDY = "`reflash audit data PATH --out FILE` writes one"


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows by their ids where each has one, else by their 1-based position in the set."""

    name: str
    rows: NDArray[np.int64]  # positions, rising
    ids: frozenset[str] | None  # None: some row has no id
    set_rows: int | None  # rows of the set; None: not said

    def __len__(self) -> int:
        return len(self.rows) if self.ids is None else len(self.ids)

    @property
    def digest(self) -> str:
        """A hash of what is selected."""
        whole = hashlib.blake2b(digest_size=16)
        if self.ids is None:
            whole.update(self.rows.tobytes())
        else:
            for name in sorted(self.ids):
                whole.update(f"{len(name)}:{name}".encode(errors="surrogatepass"))
        return whole.hexdigest()


def write_selection(path: Path, rows: NDArray[np.int64], ids: Any, reasons: Any, set_rows: int) -> None:
    """Write a selection. `rows`: 1-based positions. `ids`: an Arrow array of text, null where a row has none.

    Raises ConfigError where the file cannot be written, or where another file than a selection lies there.
    """
    check_free(path)
    schema = pa.schema(
        {"row": pa.int64(), "id": pa.string(), "reason": pa.dictionary(pa.int32(), pa.string())},
        metadata={_SET_ROWS: str(set_rows).encode()},
    )
    table = pa.table([pa.array(rows, pa.int64()), ids, reasons], schema=schema)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, compression="zstd")
    except OSError as error:
        raise ConfigError(f"{shown(path)}: cannot be written ({error.strerror or error})") from error


def check_free(path: Path) -> None:
    """Raise ConfigError where a file lies that is no selection of ours: it may be the only copy of a set."""
    if not path.exists():
        return
    try:
        ours = _SET_ROWS in (pq.read_schema(path).metadata or {})
    except (pa.ArrowInvalid, OSError):
        ours = False
    if not ours:
        raise ConfigError(f"{shown(path)}: there is a file already that is no selection; name another, or delete it")


def read_selection(path: Path) -> Selection:
    """A selection as it lies in a file. Raises ConfigError where there is none, SourceError where it is unreadable."""
    name = shown(path)
    if not path.is_file():
        raise ConfigError(f"{name}: source.select names no file; {_REMEDY}")
    with reading(name):
        table = pq.read_table(path)
    if not {"row", "id"} & set(table.column_names):
        raise SourceError(f"{name}: holds neither a column row nor id, so it selects nothing; {_REMEDY}")
    if not table.num_rows:
        raise SourceError(f"{name}: selects no row; nothing to do")
    ids = _column(table, "id", pa.string(), name)
    rows = _column(table, "row", pa.int64(), name)
    by_id = ids is not None and not ids.null_count
    if not by_id and (rows is None or rows.null_count):
        raise SourceError(f"{name}: some of its rows have neither an id nor a position (row); {_REMEDY}")
    said = (table.schema.metadata or {}).get(_SET_ROWS)
    positions = np.zeros(0, np.int64) if rows is None else np.unique(rows.drop_null().to_numpy())
    chosen = frozenset(ids.to_pylist()) if by_id else None
    return Selection(name, positions, chosen, int(said) if said and said.isdigit() else None)


def _column(table: Any, column: str, kind: Any, name: str) -> Any:
    if column not in table.column_names:
        return None
    try:
        return pc.cast(table.column(column), kind)
    except pa.ArrowException as error:
        raise SourceError(f"{name}: its column {column} is of type {table.schema.field(column).type}") from error
