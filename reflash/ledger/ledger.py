"""A run's folder, and its only writer: rows lie in it safe, once each."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from reflash.errors import AlreadyExists, ConfigError, RunIncomplete, StoreError
from reflash.ledger import names
from reflash.ledger.files import LOST_PART, RunFiles, remedy
from reflash.ledger.index import REPLAN, Index
from reflash.ledger.manifest import Manifest, check_same
from reflash.ledger.schema import (
    JUDGEMENT,
    PLANNED,
    TURN,
    fact,
    is_object,
    judgement_rows,
    judgement_table,
    planned_rows,
    planned_table,
    rows_judged,
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
        self._files = RunFiles(store)

    @property
    def where(self) -> str:
        """The folder's path or URL, to be printed: one line, no password."""
        return self.store.shown

    # What was asked

    def is_started(self) -> bool:
        """Whether the folder is a run's already."""
        return self.store.get(names.MANIFEST) is not None

    def check(self, manifest: Manifest) -> None:
        """Raise ManifestChanged where the run was started otherwise, ConfigError where files of an unknown run lie."""
        if self.is_started():
            check_same(self.manifest(), manifest, self.where)
        else:
            self._nothing_of_a_run()

    def start(self, manifest: Manifest) -> None:
        """Take the folder for this run, or go on with it; raises as `check` does."""
        self.check(manifest)
        try:
            self.store.put_new(names.MANIFEST, manifest.to_json())
        except AlreadyExists:
            check_same(self.manifest(), manifest, self.where)
        else:
            self.store.check_put_new(names.MANIFEST, manifest.to_json())

    def manifest(self) -> Manifest:
        """What was asked; raises ConfigError where this is no run's folder."""
        return self._files.manifest()

    # The plan

    def write_shard(self, name: str, rows: Sequence[Planned]) -> None:
        """Write a shard's conversations; the same rows give the same object."""
        self._files.put(names.plan(name), planned_table(rows))

    def finish_plan(self, shards: Sequence[Shard], counts: dict[str, int]) -> None:
        """Mark the plan as whole. `counts` says what became of the source's rows."""
        self.store.put(names.INDEX, Index(self._files.id, tuple(shards), counts).to_json())

    def shards(self) -> list[Shard] | None:
        """The plan's shards in order, None where the plan is not whole yet."""
        index = self._files.index()
        return None if index is None else list(index.shards)

    def source_counts(self) -> dict[str, int]:
        """What became of the source's rows: rows, accepted, repaired, rejected, duplicates."""
        index = self._files.index()
        return {} if index is None else index.source

    def planned(self, shard: str) -> list[Planned]:
        """A shard's conversations."""
        try:
            return self._files.rows(names.plan(shard), planned_rows, PLANNED)
        except (StoreError, RunIncomplete) as error:
            raise StoreError(f"{error}; {REPLAN}") from error

    # Segments and parts

    def write_segment(self, shard: str, writer: str, number: int, turns: Sequence[Turn]) -> None:
        """Keep finished conversations, all turns of each."""
        self._files.put_new(names.segment(shard, writer, number), turn_table(turns))

    def finished(self, shard: str) -> pa.Table:
        """Turns of the conversations that segments hold, in no order.

        A torn segment counts as absent, and one that goes meanwhile too: then somebody else has committed the shard.
        """
        tables = [TURN.empty_table()]
        for found in self.store.under(names.segments(shard)):
            try:
                tables.append(self._files.need(found.name, TURN).replace_schema_metadata())
            except RunIncomplete:
                continue
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
        self._files.drop(names.segments(shard))
        return first

    def first_missing(self, shard: str) -> Planned | None:
        """The first conversation of a shard that no segment and no part holds."""
        if self.is_whole(shard):
            return None
        done = self.finished_conversations(shard)
        return next((p for p in self.planned(shard) if p.conversation.id not in done), None)

    def is_whole(self, shard: str) -> bool:
        """Whether the shard has a part that is not torn."""
        return self._part_end(shard) == PARQUET_END

    def is_committed(self, shard: str) -> bool:
        """The same, and a part that a power cut left torn is taken away, to be written again."""
        end = self._part_end(shard)  # asked for once: a part that comes meanwhile is not torn
        if end not in (None, PARQUET_END):
            log.warning("%s is torn and is written again", self.store.where(names.part(shard)))
            self.store.delete([names.part(shard)])
        return end == PARQUET_END

    def sweep(self) -> None:
        """Once every shard is committed: drop segments and claims that a slower second process still wrote."""
        for folder in (names.SEGMENTS, names.CLAIMS):
            self._files.drop(folder)

    def committed(self) -> set[str]:
        """Names of the shards that have a part."""
        return {names.shard_of(found.name) for found in self.store.under(names.PARTS)}

    def part(self, shard: str) -> list[Turn]:
        """A committed shard's turns."""
        with remedy(LOST_PART):
            return self._files.rows(names.part(shard), turn_rows, TURN)

    def part_table(self, shard: str) -> pa.Table:
        """A committed shard as a table, in the order of the plan."""
        with remedy(LOST_PART):
            return self._files.need(names.part(shard), TURN)

    # Verdicts, dataset, rejects, report

    def write_verdicts(self, shard: str, judgements: Sequence[Judgement], rules: str) -> None:
        """Keep the judgements on a part; `rules` is what they were made by, as the JSON text of an object."""
        tag = str(self.store.tag(names.part(shard)))
        table = judgement_table(judgements)
        self._files.put(names.verdicts(shard), table, rules=rules, part=tag, rows=rows_judged(table))

    def verdicts(self, shard: str, rules: str | None = None) -> list[Judgement] | None:
        """The judgements on a part, None where there are none of this very part made by these rules.

        Torn ones, and those that do not hold all their rows, count as absent.
        """
        table = self._verdicts(shard)
        if table is None or rules not in (None, fact(table, "rules")):
            return None
        return judgement_rows(table)

    def rules(self) -> str | None:
        """The rules that the last judgements were made by, None where there are none yet that can be read."""
        tables = (self._verdicts(names.shard_of(f.name)) for f in self.store.under(names.VERDICTS))
        rules = (fact(table, "rules") for table in tables if table is not None)
        return next((text for text in rules if is_object(text)), None)

    def is_published(self, shard: str) -> bool:
        """Whether the shard's rows lie in the dataset or under the rejects."""
        return any(self.store.tail(name, 1) for name in (names.dataset(shard), names.turn_rejects(shard)))

    def write_dataset(self, shard: str, table: pa.Table) -> None:
        """The good rows of a shard; a shard without any has no file."""
        self._files.put_or_drop(names.dataset(shard), table)

    def good_rows(self, shard: str) -> pa.Table | None:
        """The dataset rows of a shard, None where it has none."""
        return self._files.get(names.dataset(shard))

    def write_again(self, name: str, table: pa.Table) -> None:
        """A file (`names.again`) of good rows that another run made of what this one set aside; dropped when empty."""
        self._files.put_or_drop(name, table)

    def dataset_files(self) -> list[str]:
        """Names of all files of the dataset, rows made again included."""
        return [found.name for found in self.store.under(names.DATASET)]

    def dataset_rows(self, name: str) -> pa.Table:
        """The rows in one of these files."""
        return self._files.need(name)

    def card(self) -> str | None:
        """The dataset's card as it stands, None where there is none."""
        data = self.store.get(names.CARD)
        return None if data is None else data.decode()

    def write_turn_rejects(self, shard: str, table: pa.Table) -> None:
        """The other rows of a shard, whole, with their reasons."""
        self._files.put_or_drop(names.turn_rejects(shard), table)

    def rejected_rows(self, shard: str) -> pa.Table | None:
        """The other rows of a shard, None where it has none."""
        return self._files.get(names.turn_rejects(shard))

    def write_source_rejects(self, number: int, table: pa.Table) -> None:
        """Source rows that never became a conversation."""
        self._files.put_or_drop(names.source_rejects(number), table)

    def write_card(self, text: str) -> None:
        """The dataset's card."""
        self.store.put(names.CARD, text.encode())

    def write_report(self, report: dict[str, Any], text: str) -> None:
        """What happened, for programs and for people."""
        self.store.put(names.REPORT, orjson.dumps(report, option=orjson.OPT_INDENT_2))
        self.store.put(names.REPORT_MD, text.encode())

    def report(self) -> dict[str, Any] | None:
        """The last report, None where there is none yet, or none that can be read: it is written anew each time."""
        try:
            return self._files.json(names.REPORT)
        except StoreError as error:
            log.warning("%s; it counts as absent", error)
            return None

    # Inside

    def _nothing_of_a_run(self) -> None:
        for folder in names.WRITTEN:
            if found := self.store.under(folder):
                raise ConfigError(
                    f"{self.store.where(found[0].name)} is there, but no {names.MANIFEST}: nobody can say what run it"
                    f" is of. Put the {names.MANIFEST} back, or name another folder"
                )

    def _verdicts(self, shard: str) -> pa.Table | None:
        try:
            table = self._files.get(names.verdicts(shard), JUDGEMENT)
        except StoreError as error:
            log.warning("%s; they are made again", error)
            return None
        if table is None or fact(table, "rows") != rows_judged(table):
            return None
        return table if fact(table, "part") == str(self.store.tag(names.part(shard))) else None

    def _part_end(self, shard: str) -> bytes | None:
        return self.store.tail(names.part(shard), len(PARQUET_END))

    def _put_part(self, shard: str, turns: Mapping[str, int]) -> bool:
        finished = self.finished(shard)
        try:
            order = whole_and_ordered(finished, turns, shard)
            self._files.put_new(names.part(shard), finished.take(order))
        except AlreadyExists:
            return False
        except RunIncomplete:
            if self.is_committed(shard):  # somebody else came first meanwhile, and took the segments away
                return False
            raise
        return True


def open_ledger(url: str, *, create: bool = False) -> Ledger:
    """The run's folder at a path or URL; with `create` it is made where it is not there."""
    return Ledger(open_store(url, create=create))
