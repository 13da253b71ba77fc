"""The rows of a run: of a source, those of it that a file selects, or the conversations that a run set aside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from reflash.config.paths import local_path
from reflash.config.source import SourceConfig
from reflash.errors import ConfigError, RunIncomplete, SourceError
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.printable import printable
from reflash.sources.ids import Census
from reflash.sources.open import open_source
from reflash.sources.remote import fetched
from reflash.sources.rows import rows
from reflash.sources.selection import Selection, read_selection
from reflash.sources.source import Source
from reflash.store.remote import is_remote
from reflash.types import Planned, SourceRow


class Intake(Protocol):
    """Where rows come from."""

    @property
    def name(self) -> str:
        """As a person calls it."""

    def digest(self) -> str:
        """A hash of all that comes in."""

    def rows(self, census: Census) -> Iterator[SourceRow]:
        """What became of each row, in order."""


@dataclass(frozen=True, slots=True)
class FromSource:
    """Every row of a source."""

    source: Source

    @property
    def name(self) -> str:
        """The source's name."""
        return self.source.name

    def digest(self) -> str:
        """A hash of the source's content."""
        return self.source.digest()

    def rows(self, census: Census) -> Iterator[SourceRow]:
        """What became of each row; duplicates are counted in `census`."""
        return iter(rows(self.source, census=census))


@dataclass(frozen=True, slots=True)
class FromSelection:
    """The rows of a source that a selection names, by their given id or by their position."""

    source: Source  # without a limit
    selection: Selection
    limit: int | None = None

    @property
    def name(self) -> str:
        """The source and the selection."""
        return f"{self.source.name} ({len(self.selection):,} rows that {self.selection.name} selects)"

    def digest(self) -> str:
        """A hash of the source's content and of what is selected."""
        whole = f"{self.source.digest()} {self.selection.digest}"
        return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()

    def rows(self, census: Census) -> Iterator[SourceRow]:
        """What became of each selected row. Raises SourceError at the end where the source is not the selection's."""
        positions = None if self.selection.ids is not None else frozenset(self.selection.rows.tolist())
        wanted = self.selection.ids or frozenset()
        met: set[str] = set()
        read = taken = 0
        for read, row in enumerate(rows(self.source, census=census), 1):
            if positions is not None:
                if read not in positions:
                    continue
            elif row.id in wanted:
                met.add(row.id)
            else:
                continue
            yield row
            taken += row.conversation is not None
            if taken == self.limit:
                return
        self._fits(read, wanted - met)

    def _fits(self, read: int, absent: frozenset[str]) -> None:
        """Raise SourceError where the selection is of another set."""
        chosen = self.selection
        if absent:
            first = printable(min(absent))
            raise SourceError(
                f"{self.source.name}: lacks {len(absent):,} of the {len(chosen):,} ids that {chosen.name} selects, "
                f"the first of them {first}; name the source that the audited set was made from"
            )
        if chosen.ids is not None:
            return
        if read != (chosen.set_rows or read) or read < int(chosen.rows[-1]):
            raise SourceError(
                f"{chosen.name}: selects by position in a set of {chosen.set_rows or int(chosen.rows[-1]):,} rows, but "
                f"{self.source.name} has {read:,}, so positions mean other rows; give the audited set the "
                "conversations' ids as a column id, and audit it again"
            )


@dataclass(frozen=True, slots=True)
class FromRun:
    """The conversations of an earlier run in which a turn was set aside for one of some reasons."""

    ledger: Ledger
    reasons: frozenset[str]
    limit: int | None = None

    @property
    def name(self) -> str:
        """The run and the reasons."""
        return f"{self.ledger.where} ({', '.join(sorted(self.reasons))})"

    def digest(self) -> str:
        """A hash of the run's id and of the conversations chosen."""
        whole = hashlib.blake2b(self.ledger.manifest().id.encode(), digest_size=16)
        for planned in self._chosen():
            whole.update(f"{len(planned.conversation.id)}:{planned.conversation.id}".encode(errors="surrogatepass"))
        return whole.hexdigest()

    def rows(self, census: Census) -> Iterator[SourceRow]:  # noqa: ARG002  all have ids of their own
        """Each conversation as it was planned, with its first origin."""
        for planned in islice(self._chosen(), self.limit):
            yield SourceRow(planned.origin, planned.conversation.id, planned.conversation, "accepted")

    def _chosen(self) -> Iterator[Planned]:
        for shard in self.ledger.shards() or []:
            judged = self.ledger.verdicts(shard.name)
            if judged is None:
                raise RunIncomplete(f"{self.ledger.where}: shard {shard.name} has no verdicts yet; finish it first")
            wanted = {j.conversation for j in judged if j.verdict != "good" and self.reasons.intersection(j.reasons)}
            if wanted:
                yield from (p for p in self.ledger.planned(shard.name) if p.conversation.id in wanted)


def open_intake(config: SourceConfig) -> Intake:
    """Where the rows come from; raises SourceError or ConfigError where that cannot be read."""
    if not config.reasons:
        source = open_source(config)
        if config.select is None:
            return FromSource(source)
        return FromSelection(replace(source, limit=None), read_selection(_selection_file(config.select)), config.limit)
    if config.split or config.revision or config.select:
        raise ConfigError("source: an earlier run (`reasons`) has neither split nor revision, and takes no `select`")
    ledger = open_ledger(config.path)
    if ledger.shards() is None:
        raise RunIncomplete(f"{ledger.where}: its plan is not whole; finish that run first")
    return FromRun(ledger, frozenset(config.reasons), config.limit)


def _selection_file(name: str) -> Path:
    return fetched(name) if is_remote(name) else local_path(name)
