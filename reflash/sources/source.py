"""A source: its files in a fixed order, and their digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from reflash.sources.raw import Part


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
