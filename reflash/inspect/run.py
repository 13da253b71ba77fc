"""`inspect_source`: look first. A set of conversations is reviewed, a tokenized one audited."""

from __future__ import annotations

from collections.abc import Sequence

from reflash.config.source import SourceConfig
from reflash.inspect.conversations import review
from reflash.inspect.report import ConversationReport, TokenizedReport
from reflash.inspect.tokenized import audit
from reflash.render.base import Renderer
from reflash.sources.open import open_source, open_sources
from reflash.tokenized.tell import holds_tokens


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
