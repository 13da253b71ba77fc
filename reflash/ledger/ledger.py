"""A run's folder, and its only writer: rows lie in it safe, once each."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from reflash.errors import AlreadyExists, ConfigError, RunIncomplete, StoreError
from reflash.ledger import names
from reflash.ledger.manifest import Manifest, check_same, read_manifest
from reflash.ledger.schema import (
    TURN,
    from_parquet,
    judgement_rows,
    judgement_table,
    planned_rows,
    planned_table,
    to_parquet,
    turn_rows,
    turn_table,
    whole_and_ordered,
)
from reflash.store.objects import Store, open_store
from reflash.types import Judgement, Planned, Shard, Turn

log = logging.getLogger(__name__)

PARQUET_END = b"PAR1"  # the last bytes of a whole Parquet file


class Ledger:
    """One run's folder. Every method is safe to call again, from another process too."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def where(self) -> str:
        """The folder's path or URL."""
        return self.store.url

    # What was asked

    def start(self, manifest: Manifest) -> None:
        """Take the folder for this run, or go on with it; raises ManifestChanged where it was started otherwise."""
        try:
            self.store.put_new(names.MANIFEST, manifest.to_json())
        except AlreadyExists:
            check_same(self.manifest(), manifest, self.where)

    def manifest(self) -> Manifest:
        """What was asked; raises ConfigError where this is no run's folder."""
        data = self.store.get(names.MANIFEST)
        if data is None:
            raise ConfigError(f"{self.where} holds no {names.MANIFEST}: it is not a run's folder")
        return read_manifest(data, self.store.where(names.MANIFEST))

    # The plan

    def write_shard(self, name: str, rows: Sequence[Planned]) -> None:
        """Write a shard's conversations; the same rows give the same object."""
        self.store.put(names.plan(name), to_parquet(planned_table(rows)))

    def finish_plan(self, shards: Sequence[Shard], counts: dict[str, int]) -> None:
        """Mark the plan as whole. `counts` says what became of the source's rows."""
        index = {"shards": [{"name": s.name, "rows": s.rows, "turns": s.turns} for s in shards], "source": counts}
        self.store.put(names.INDEX, orjson.dumps(index, option=orjson.OPT_INDENT_2))

    def shards(self) -> list[Shard] | None:
        """The plan's shards in order, None where the plan is not whole yet."""
        index = self._json(names.INDEX)
        return None if index is None else [Shard(**s) for s in index["shards"]]

    def source_counts(self) -> dict[str, int]:
        """What became of the source's rows: rows, accepted, repaired, rejected, duplicates."""
        index = self._json(names.INDEX)
        return {} if index is None else dict(index["source"])

    def planned(self, shard: str) -> list[Planned]:
        """A shard's conversations."""
        return planned_rows(self._need(names.plan(shard)))

    # Segments and parts

    def write_segment(self, shard: str, writer: str, number: int, turns: Sequence[Turn]) -> None:
        """Keep finished conversations, all turns of each."""
        self.store.put_new(names.segment(shard, writer, number), to_parquet(turn_table(turns)))

    def finished(self, shard: str) -> pa.Table:
        """Turns of the conversations that segments hold, in no order; a torn segment counts as absent."""
        tables = [TURN.empty_table()]
        for found in self.store.under(names.segments(shard)):
            try:
                tables.append(self._need(found.name))
            except StoreError as error:
                log.warning("%s; its rows are generated again", error)
        return pa.concat_tables(tables)

    def finished_conversations(self, shard: str) -> set[str]:
        """Ids of the conversations that segments hold."""
        return set(self.finished(shard)["conversation"].to_pylist())

    def commit(self, shard: str, turns: Mapping[str, int]) -> bool:
        """Make the shard's part from its segments, once; False where somebody else was first. The segments go.

        `turns` by conversation, in the plan's order: each is taken once. Raises RunIncomplete where one is missing.
        """
        first = not self.is_committed(shard) and self._put_part(shard, turns)
        self.store.delete([s.name for s in self.store.under(names.segments(shard))])
        return first

    def is_committed(self, shard: str) -> bool:
        """Whether the shard has a part. One that a power cut left torn is taken away, to be written again."""
        tail = self.store.tail(names.part(shard), len(PARQUET_END))
        if tail is not None and tail != PARQUET_END:
            log.warning("%s is torn and is written again", self.store.where(names.part(shard)))
            self.store.delete([names.part(shard)])
        return tail == PARQUET_END

    def committed(self) -> set[str]:
        """Names of the shards that have a part."""
        return {names.shard_of(found.name) for found in self.store.under(names.PARTS)}

    def part(self, shard: str) -> list[Turn]:
        """A committed shard's turns."""
        return turn_rows(self.part_table(shard))

    def part_table(self, shard: str) -> pa.Table:
        """A committed shard as a table, in the order of the plan."""
        return self._need(names.part(shard))

    # Verdicts, dataset, rejects, report

    def write_verdicts(self, shard: str, judgements: Sequence[Judgement], rules: str) -> None:
        """Keep the judgements on a part; `rules` is a hash of the settings they were made by."""
        table = judgement_table(judgements).replace_schema_metadata({"rules": rules})
        self.store.put(names.verdicts(shard), to_parquet(table))

    def verdicts(self, shard: str, rules: str | None = None) -> list[Judgement] | None:
        """The judgements on a part, None where there are none made by these rules."""
        data = self.store.get(names.verdicts(shard))
        if data is None:
            return None
        table = from_parquet(data, self.store.where(names.verdicts(shard)))
        made_by = (table.schema.metadata or {}).get(b"rules", b"").decode()
        return judgement_rows(table) if rules in (None, made_by) else None

    def write_dataset(self, shard: str, table: pa.Table) -> None:
        """The good rows of a shard; a shard without any has no file."""
        self._put_or_drop(names.dataset(shard), table)

    def good_rows(self, shard: str) -> pa.Table | None:
        """The dataset rows of a shard, None where it has none."""
        data = self.store.get(names.dataset(shard))
        return None if data is None else from_parquet(data, self.store.where(names.dataset(shard)))

    def write_turn_rejects(self, shard: str, table: pa.Table) -> None:
        """The other rows of a shard, whole, with their reasons."""
        self._put_or_drop(names.turn_rejects(shard), table)

    def rejected_rows(self, shard: str) -> pa.Table | None:
        """The other rows of a shard, None where it has none."""
        data = self.store.get(names.turn_rejects(shard))
        return None if data is None else from_parquet(data, self.store.where(names.turn_rejects(shard)))

    def write_source_rejects(self, number: int, table: pa.Table) -> None:
        """Source rows that never became a conversation."""
        self._put_or_drop(names.source_rejects(number), table)

    def write_card(self, text: str) -> None:
        """The dataset's card."""
        self.store.put(names.CARD, text.encode())

    def write_report(self, report: dict[str, Any], text: str) -> None:
        """What happened, for programs and for people."""
        self.store.put(names.REPORT, orjson.dumps(report, option=orjson.OPT_INDENT_2))
        self.store.put(names.REPORT_MD, text.encode())

    def report(self) -> dict[str, Any] | None:
        """The last report, None where there is none yet."""
        return self._json(names.REPORT)

    # Inside

    def _need(self, name: str) -> pa.Table:
        data = self.store.get(name)
        if data is None:
            raise RunIncomplete(f"{self.store.where(name)} is missing")
        return from_parquet(data, self.store.where(name))

    def _put_part(self, shard: str, turns: Mapping[str, int]) -> bool:
        finished = self.finished(shard)
        try:
            order = whole_and_ordered(finished, turns, shard)
            self.store.put_new(names.part(shard), to_parquet(finished.take(order)))
        except AlreadyExists:
            return False
        except RunIncomplete:
            if self.is_committed(shard):  # somebody else came first meanwhile, and took the segments away
                return False
            raise
        return True

    def _json(self, name: str) -> dict[str, Any] | None:
        data = self.store.get(name)
        if data is None:
            return None
        try:
            return dict(orjson.loads(data))
        except (orjson.JSONDecodeError, TypeError, ValueError) as error:
            raise StoreError(f"{self.store.where(name)} is not JSON: {error}; delete it and run again") from error

    def _put_or_drop(self, name: str, table: pa.Table) -> None:
        if table.num_rows:
            self.store.put(name, to_parquet(table))
        else:
            self.store.delete([name])


def open_ledger(url: str, *, create: bool = False) -> Ledger:
    """The run's folder at a path or URL; with `create` it is made where it is not there."""
    return Ledger(open_store(url, create=create))
