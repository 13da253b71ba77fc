"""The pass over a set of conversations: read here, measured in other processes, added up here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from reflash.census.gathered import Gathered, ItemsMet
from reflash.census.looking import BLANK, OPEN, PLACEHOLDER, THOUGHT, Look, look
from reflash.census.marks import Ints
from reflash.census.sampling import Spacing
from reflash.config.audit import DataAudit
from reflash.pool import WorkerPool
from reflash.sources.groups import groups
from reflash.sources.raw import RawRow
from reflash.sources.source import Source

EMPTY_ANSWER = "empty answer"
PLACEHOLDER_ANSWER = "placeholder answer"
NO_ANSWER = "thinking without an answer"  # left open, or nothing follows it
_AT_ONCE = 512  # rows that a process measures at once
_FEW = 8  # groups for which no process is worth starting

Group = tuple[list[RawRow], Ints]  # rows that are looked at, and their 0-based positions in the set


class Talks:
    """What is known of the rows so far."""

    def __init__(self, unit_is_tokens: bool, met: ItemsMet) -> None:
        self.found = Gathered("conversations", "tokens" if unit_is_tokens else "characters", met)
        self.found.thoughts = self.found.thoughts_open = 0

    def take(self, one: Look, positions: Ints) -> None:
        """Add up some rows; `positions`: 0-based, in the set."""
        found, marks, turns = self.found, self.found.marks, one.turns
        marks.begin(positions)
        # The gravest comes last and names the row.
        for kind, column in ((NO_ANSWER, OPEN), (PLACEHOLDER_ANSWER, PLACEHOLDER), (EMPTY_ANSWER, BLANK)):
            marks.rows_of(kind, one.rows[turns[:, column] > 0])
        marks.said(one.rejected, again=False)
        for row in marks.fresh():
            if row in one.shown:
                marks.show(row, *one.shown[row])
        found.rejected += len(one.rejected)
        found.empty_rows += int(np.count_nonzero(turns[:, [BLANK, PLACEHOLDER]].any(1)))
        sums = turns.sum(0)
        found.blank += int(sums[BLANK])
        found.placeholders += int(sums[PLACEHOLDER])
        found.thoughts = (found.thoughts or 0) + int(sums[THOUGHT])
        found.thoughts_open = (found.thoughts_open or 0) + int(sums[OPEN])
        found.measured.add(marks.rows + one.rows)
        for figures, lengths in zip((found.prompts, found.sums, found.lengths), one.lengths.T, strict=True):
            figures.add(lengths)
        found.prompt_hashes.add(one.prompt_hashes)
        found.answers.extend(one.answer_hashes, one.kept)
        found.met.take(positions[one.held[0]], one.held[1])
        chosen = np.flatnonzero(marks.end())
        found.names.append(pa.array([one.names[at] for at in chosen.tolist()], pa.string()))


def take_talks(
    source: Source, audit: DataAudit, spacing: Spacing, met: ItemsMet
) -> tuple[Gathered, int, tuple[str, ...]]:
    """All figures, the rows of the set, and what could not be read where there are several files."""
    tally = Talks(audit.tokenizer is not None, met)
    reader = _Reader(source, spacing)
    measure = partial(look, rules=audit.rules, tokenizer=audit.tokenizer)
    for looked, positions in _measured(reader.groups(), measure, audit.workers):
        tally.take(looked, positions)
    if audit.tokenizer is not None:
        tally.found.notes = ("lengths are of the texts alone, without what a chat template adds",)
    return tally.found, reader.rows, tuple(reader.unreadable)


class _Reader:
    """Rows as they stand in the files, some hundred at a time."""

    def __init__(self, source: Source, spacing: Spacing) -> None:
        self.source, self.spacing = source, spacing
        self.rows = 0
        self.unreadable: list[str] = []

    def groups(self) -> Iterator[Group]:
        """Rows that are looked at, and their positions in the set. Raises SourceError where the only file is broken."""
        for part in self.source.parts:
            for raw, fault in groups(part.records(), _AT_ONCE):
                kept = self.spacing.of(self.rows, len(raw))
                if len(kept):
                    yield [raw[at] for at in kept.tolist()], self.rows + kept
                self.rows += len(raw)
                if fault is not None and len(self.source.parts) == 1:
                    raise fault
                if fault is not None:
                    self.unreadable.append(str(fault))


def _measured(
    found: Iterator[Group], measure: Callable[[list[RawRow]], Look], workers: int | None
) -> Iterator[tuple[Look, Ints]]:
    """Each group measured, in order; in other processes where there are many."""
    first = list(islice(found, _FEW))
    if len(first) < _FEW or workers == 1:
        for rows, positions in chain(first, found):
            yield measure(rows), positions
        return
    waiting: deque[Ints] = deque()
    with closing(WorkerPool(workers)) as pool:

        def calls() -> Iterator[Callable[[], Future[Look]]]:
            for rows, positions in chain(first, found):
                waiting.append(positions)
                yield partial(pool.submit, measure, rows)

        for looked in pool.in_order(calls()):
            yield looked, waiting.popleft()
