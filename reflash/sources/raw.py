"""What a reader hands on: one row as it stands in its file, and the protocol of the readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from reflash.errors import SourceError
from reflash.types import Origin


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row as found: any JSON value, or the reason why it cannot be read."""

    origin: Origin
    value: Any
    reason: str = ""  # why the row cannot be read; "" where it can
    repaired: str = ""  # what the reader had to mend
    size: int = 0  # bytes that it takes, about


class Unfit(Exception):
    """One row that cannot be used; its text is the row's reason. Never leaves `reflash.sources`."""


class Part(Protocol):
    """One file of a source, or one split of a Hub set."""

    @property
    def file(self) -> str:
        """Its name, as the user would write it."""

    def records(self) -> Iterator[RawRow]:
        """Its rows in order. Raises SourceError where the file itself cannot be read."""

    def content(self) -> Iterator[bytes]:
        """Bytes that identify its content, for the source's digest."""


@dataclass(frozen=True, slots=True)
class BrokenPart:
    """A file that cannot be opened: whoever reads it hears why, the others stay readable."""

    file: str
    why: str

    def records(self) -> Iterator[RawRow]:
        """Raises SourceError."""
        return self._refused()

    def content(self) -> Iterator[bytes]:
        """Raises SourceError."""
        return self._refused()

    def _refused(self) -> Iterator[Any]:
        yield from ()
        raise SourceError(self.why)


@runtime_checkable
class ColumnPart(Part, Protocol):
    """A part that is stored by columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""

    def batches(self, columns: tuple[str, ...] | None = None) -> Iterator[Any]:
        """Its `pyarrow.RecordBatch`es in order, only the named columns where some are named."""
