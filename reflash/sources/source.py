"""A source: its files in a fixed order, their digest, and a stream of raw rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from reflash.sources.raw import Part, RawRow


@dataclass(frozen=True, slots=True)
class Source:
    """Where rows come from."""

    name: str  # as the user wrote it
    parts: tuple[Part, ...]  # in a fixed order
    notes: tuple[str, ...] = ()  # what was chosen or passed over
    limit: int | None = None  # accepted rows wanted

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files, in the order in which they are read."""
        return tuple(part.file for part in self.parts)

    def digest(self) -> str:
        """A hash of everything read: the files' bytes in order, or a Hub set's id, split and fingerprint.

        Reads every file once. Raises SourceError.
        """
        whole = hashlib.blake2b(digest_size=16)
        for part in self.parts:
            own = hashlib.blake2b(digest_size=16)
            for chunk in part.content():
                own.update(chunk)
            whole.update(own.digest())
        return whole.hexdigest()

    def records(self) -> Iterator[RawRow]:
        """Every row as found, in order. Raises SourceError naming the file where one cannot be read."""
        for part in self.parts:
            yield from part.records()
