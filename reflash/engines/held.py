"""How many requests a server really holds, where it says so before it is asked anything."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)

QUEUED = (
    2,
    16,
)  # so many, or this part of what it holds, wait in its own queue: a place that falls free is taken at once
WIDEN = (
    "rows wait in its queue, so fewer are sent. To let it hold more: for vLLM --max-num-seqs or more memory for its "
    "cache, for SGLang --max-running-requests (and --disable-radix-cache for models with linear attention); or lower "
    "engine.width"
)


def width_held(engine: str, asked: int, holds: int | None) -> int:
    """Requests to have in flight at first: as many as asked for, or few more than the server says it holds."""
    if holds is None or holds >= asked:
        return asked
    log.warning("%s holds %d of the %d requests asked for: %s", engine, holds, asked, WIDEN)
    return min(asked, holds + max(QUEUED[0], holds // QUEUED[1]))
