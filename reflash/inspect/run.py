"""`inspect_source`: look first. A set of conversations is reviewed, a tokenized one audited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from reflash.config.source import SourceConfig
from reflash.errors import SourceError
from reflash.inspect.conversations import review
from reflash.inspect.report import ConversationReport, TokenizedReport
from reflash.inspect.tokenized import audit
from reflash.render.base import Renderer
from reflash.sources.open import Source, open_source, open_sources
from reflash.sources.raw import ColumnPart
from reflash.sources.shapes import is_tokenized


def inspect_source(
    config: SourceConfig | Sequence[SourceConfig],
    *,
    threshold: int = 6,
    vocabulary: int | None = None,
    renderer: Renderer | None = None,
    context: int | None = None,
    thinking: bool = True,
    most_verdicts: int | None = None,
) -> ConversationReport | TokenizedReport:
    """Look at every row of a source, or of several as one; the columns say whether they are tokenized.

    `threshold`: a tokenized row that supervises at most so many tokens is flagged. `vocabulary`: number of ids the
    model knows; by default that of the family whose control ids occur. `renderer` and `context` (tokens) let prompts
    be measured. One of several files that cannot be read is named in the report; raises SourceError where the only one
    cannot, or there is no row.
    """
    source = open_source(config, tolerant=True) if isinstance(config, SourceConfig) else open_sources(config)
    if holds_tokens(source):
        return audit(source, threshold, vocabulary, context)
    return review(source, renderer, context, thinking, most_verdicts)


def holds_tokens(source: Source) -> bool:
    """Whether the first row that can be read is a tokenized one."""
    for part in source.parts:
        try:
            for row in _first_rows(part):
                return is_tokenized(row)
        except SourceError:
            continue  # said when its rows are read
    return False


def _first_rows(part: Any) -> Any:
    if isinstance(part, ColumnPart):
        for batch in part.batches():
            if batch.num_rows:
                yield dict(zip(batch.schema.names, map(_sample, batch.slice(0, 1).columns), strict=True))
                return
        return
    for raw in part.records():
        if isinstance(raw.value, dict):
            yield raw.value
            return


def _sample(column: Any) -> Any:
    """What a column's type says: enough to tell a list of integers from the rest."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [0, 0] if pa.types.is_integer(kind.value_type) else []
    return None if pa.types.is_null(kind) else str(kind)
