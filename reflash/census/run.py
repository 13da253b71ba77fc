"""`take_census`: a whole set in one pass, tokenized or of conversations, and the rows to make again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reflash.census.collect import Tally
from reflash.census.figures import report_of
from reflash.census.gathered import Gathered, ItemsMet
from reflash.census.items import finder_for
from reflash.census.report import CensusReport
from reflash.census.sampling import Spacing, alike, rows_of, thin
from reflash.census.spelled import Spelling
from reflash.census.talks import take_talks
from reflash.census.words import Words
from reflash.config.audit import AuditRules, DataAudit
from reflash.errors import SourceError
from reflash.sources.open import open_source
from reflash.sources.selection import write_selection
from reflash.sources.source import Source
from reflash.tokenized.batches import batches
from reflash.tokenized.tell import holds_tokens


@dataclass(frozen=True, slots=True)
class Census:
    """A report, and what it says is to be made again."""

    report: CensusReport
    again: NDArray[np.int64]  # 1-based positions in the set, rising
    names: Any  # their own ids, an Arrow array of text with nulls
    reasons: Any  # why, an Arrow dictionary array
    sizes: NDArray[np.int64]  # lengths of their prompts, 0 where that is not known
    items: NDArray[np.int64]  # 1-based positions of rows whose prompts hold benchmark items

    def write(self, path: Path, sample: int | None = None) -> int:
        """Write the selection that `source.select` of a run config takes; how many rows it names.

        Of `sample` rows, long and short prompts alike, where there are more. Raises ConfigError.
        """
        rows, names, reasons = self.again, self.names, self.reasons
        if sample is not None and sample < len(rows):
            kept = alike(self.sizes, sample)
            rows, names, reasons = rows[kept], names.take(kept), reasons.take(kept)
        write_selection(path, rows, names, reasons, self.report.set_rows)
        return len(rows)

    def write_items(self, path: Path) -> None:
        """Write the rows whose prompts hold benchmark items, by their positions. Raises ConfigError."""
        reasons = pa.array(["benchmark item in the prompt"] * len(self.items), pa.string()).dictionary_encode()
        names = pa.nulls(len(self.items), pa.string())
        write_selection(path, self.items, names, reasons, self.report.set_rows)


def take_census(audit: DataAudit) -> Census:
    """Look at the rows of a set; its first row says whether it is tokenized.

    Raises SourceError where nothing can be read or no row measured, RenderError for the tokenizer, ConfigError or
    SourceError for a list of benchmark items.
    """
    words = Words(audit.tokenizer)
    source = open_source(audit.source, tolerant=True)
    met = ItemsMet(finder_for(audit.rules))
    spacing = Spacing(rows_of(source.parts) if audit.look else 0, audit.look)
    if holds_tokens(source):
        found, set_rows, unreadable = _take_tokens(source, audit.rules, words, spacing, met)
    else:
        found, set_rows, unreadable = take_talks(source, audit, spacing, met)
    _refuse_nothing(source, found, unreadable)
    report = report_of(source.name, set_rows, found, words, audit.rules, unreadable)
    return _census(report, found)


def _take_tokens(
    source: Source, rules: AuditRules, words: Words, spacing: Spacing, met: ItemsMet
) -> tuple[Gathered, int, tuple[str, ...]]:
    """All figures, the rows of the set, and what could not be read where there are several files."""
    spelling = Spelling(words.loaded.tokenizer) if words.loaded and met.finder else None
    tally = Tally(rules.threshold, words.family(), spelling, met)
    unreadable: list[str] = []
    rows = 0
    for part in source.parts:
        try:
            for batch in batches(part, named=True):
                kept = spacing.of(rows, batch.size)
                if len(kept):
                    tally.take(thin(batch, kept), rows + kept)
                rows += batch.size
        except SourceError as error:
            if len(source.parts) == 1:
                raise
            unreadable.append(str(error))
    return tally.finish(rules.sequence_limit), rows, tuple(unreadable)


def _refuse_nothing(source: Source, found: Gathered, unreadable: tuple[str, ...]) -> None:
    marks = found.marks
    if not marks.rows:
        nothing = f"{source.name}: no rows ({len(source.files)} files read); nothing to audit"
        raise SourceError(unreadable[0] if unreadable else nothing)
    if not len(found.measured.whole()):
        kind = max(marks.found, key=marks.found.__getitem__)
        at, text = marks.examples[kind][0]
        raise SourceError(f"{source.name}: none of its {marks.rows:,} rows can be measured; row {at + 1}: {text}")


def _census(report: CensusReport, found: Gathered) -> Census:
    why = found.marks.why.whole()
    again = np.flatnonzero(why)
    sizes = np.zeros(len(why), np.int64)
    sizes[found.measured.whole()] = found.prompts.whole()
    codes = pa.array(why[again].astype(np.int32))
    return Census(
        report=report,
        again=found.marks.positions.whole()[again] + 1,
        names=pa.concat_arrays([pa.array([], pa.string()), *(piece.cast(pa.string()) for piece in found.names)]),
        reasons=pa.DictionaryArray.from_arrays(codes, pa.array(list(found.marks.kinds), pa.string())),
        sizes=sizes[again],
        items=found.met.rows.whole() + 1,
    )
