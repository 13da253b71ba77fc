"""The rows of a run: of a source, or the conversations that an earlier run set aside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from reflash.config.source import SourceConfig
from reflash.errors import ConfigError, RunIncomplete
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.sources.ids import Census
from reflash.sources.open import open_source
from reflash.sources.rows import rows
from reflash.sources.source import Source
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
        return FromSource(open_source(config))
    if config.split or config.revision:
        raise ConfigError("source: an earlier run (`reasons`) has neither split nor revision")
    ledger = open_ledger(config.path)
    if ledger.shards() is None:
        raise RunIncomplete(f"{ledger.where}: its plan is not whole; finish that run first")
    return FromRun(ledger, frozenset(config.reasons), config.limit)
