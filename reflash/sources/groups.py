"""Rows by the hundred: what is asked of a large set then costs once for all of them."""

from __future__ import annotations

from collections.abc import Iterator

from reflash.errors import SourceError
from reflash.sources.raw import RawRow

_BYTES = 16 << 20  # of the rows of a group; one longer row is a group of its own


def groups(records: Iterator[RawRow], most: int) -> Iterator[tuple[list[RawRow], SourceError | None]]:
    """Rows in groups of up to `most`; an error comes with the rows read before it, so that none is lost."""
    group: list[RawRow] = []
    size = 0
    try:
        for raw in records:
            if group and (len(group) == most or size + raw.size > _BYTES):
                yield group, None
                group, size = [], 0
            group.append(raw)
            size += raw.size
    except SourceError as error:
        yield group, error
        return
    if group:
        yield group, None
