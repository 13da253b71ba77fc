"""Rows to shards: read once, normalised once, the first prompts rendered, in the source's order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice

import pyarrow as pa

from reflash.config.run import RunConfig
from reflash.errors import SourceError
from reflash.heap import few_arenas
from reflash.ledger.ledger import Ledger
from reflash.ledger.whole import check_folder
from reflash.plan.intake import Intake, open_intake
from reflash.plan.manifest import make_manifest
from reflash.plan.prepare import Unfit, prepare, prepare_here
from reflash.pool import WorkerPool
from reflash.render.shared import shared_renderer
from reflash.sources.ids import Census
from reflash.types import Conversation, Origin, Planned, Shard, SourceRow

CHUNK = 256  # conversations a worker renders in one call
INLINE = 4096  # this many are rendered here: starting workers would take longer
REJECTS_PER_FILE = 10_000

Pair = tuple[Origin, Conversation]
Progress = Callable[[int], None]


def plan_run(
    config: RunConfig, ledger: Ledger, pool: WorkerPool, progress: Progress = lambda _rows: None
) -> list[Shard]:
    """Plan a run, or find it planned already.

    The same source and config give the same shards, whatever the number of workers. `progress` hears the rows read
    so far. Raises ManifestChanged, SourceError, RenderError, ConfigError; StoreError where what lies there already
    cannot be what was planned and made.
    """
    few_arenas()  # before the first thread has a heap of its own
    intake = open_intake(config.source)
    ledger.start(make_manifest(config, intake.digest(), shared_renderer(config.model, config.thinking).digest))
    if shards := ledger.shards():
        check_folder(ledger)
        return shards
    return _Planner(config, ledger, pool, progress).run(intake)


class _Planner:
    def __init__(self, config: RunConfig, ledger: Ledger, pool: WorkerPool, progress: Progress) -> None:
        self.config, self.ledger, self.pool, self.progress = config, ledger, pool, progress
        self.counts: Counter[str] = Counter(rows=0, accepted=0, repaired=0, rejected=0)
        self.census = Census()
        self.rejects: list[tuple[Origin, str | None, str]] = []
        self.reject_files = 0
        self.why = ""  # the first row was rejected

    def run(self, intake: Intake) -> list[Shard]:
        shards: list[Shard] = []
        planned = self._fit(self._prepared(self._accepted(intake.rows(self.census))))
        while batch := list(islice(planned, self.config.plan.shard_rows)):
            name = f"{len(shards):05}"
            self.ledger.write_shard(name, batch)
            shards.append(Shard(name, len(batch), sum(len(self._turns(p.conversation)) for p in batch)))
        self._flush_rejects()
        if not shards:
            if not self.counts["rows"]:
                raise SourceError(f"{intake.name}: holds no row")
            raise SourceError(f"{intake.name}: none of its {self.counts['rows']} rows can be used; {self.why}")
        duplicates = {"duplicate ids": self.census.duplicate_ids, "duplicate prompts": self.census.duplicate_prompts}
        self.ledger.finish_plan(shards, dict(self.counts) | duplicates)
        return shards

    def _turns(self, conversation: Conversation) -> tuple[int, ...]:
        return conversation.turns(regenerate_calls=self.config.tools.calls == "regenerate")

    def _accepted(self, source_rows: Iterable[SourceRow]) -> Iterator[Pair]:
        for row in source_rows:
            self.counts["rows"] += 1
            self.counts[row.verdict] += 1
            if self.counts["rows"] % CHUNK == 0:
                self.progress(self.counts["rows"])
            if row.conversation is None:
                self._reject(row.origin, row.id, row.reason)
            else:
                yield row.origin, row.conversation
        self.progress(self.counts["rows"])

    def _prepared(self, pairs: Iterator[Pair]) -> Iterator[Planned | Unfit]:
        head = list(islice(pairs, INLINE))
        yield from prepare(head, self.config, shared_renderer(self.config.model, self.config.thinking))
        if len(head) < INLINE:
            return
        calls: Iterator[Callable[[], Future[list[Planned | Unfit]]]] = (
            partial(self.pool.submit, prepare_here, chunk, self.config) for chunk in _chunks(pairs)
        )
        for prepared in self.pool.in_order(calls):
            yield from prepared

    def _fit(self, prepared: Iterable[Planned | Unfit]) -> Iterator[Planned]:
        for one in prepared:
            if isinstance(one, Planned):
                yield one
            else:
                self.counts["unfit"] += 1
                self._reject(one.origin, one.id, one.reason)

    def _reject(self, origin: Origin, row_id: str | None, reason: str) -> None:
        self.rejects.append((origin, row_id, reason))
        self.why = self.why or f"the first, {origin.file} row {origin.row}: {reason}"
        if len(self.rejects) >= REJECTS_PER_FILE:
            self._flush_rejects()

    def _flush_rejects(self) -> None:
        table = pa.table(
            {
                "file": [origin.file for origin, _, _ in self.rejects],
                "row": [origin.row for origin, _, _ in self.rejects],
                "id": [row_id for _, row_id, _ in self.rejects],
                "reason": [reason for _, _, reason in self.rejects],
            },
            schema=pa.schema({"file": pa.string(), "row": pa.int64(), "id": pa.string(), "reason": pa.string()}),
        )
        self.ledger.write_source_rejects(self.reject_files, table)
        self.reject_files += 1
        self.rejects = []


def _chunks(pairs: Iterator[Pair]) -> Iterator[Sequence[Pair]]:
    while chunk := list(islice(pairs, CHUNK)):
        yield chunk
