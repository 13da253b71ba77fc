"""How far a run is, from its folder alone."""

from __future__ import annotations

from typing import Any

from reflash.ledger.ledger import open_ledger


def run_status(run: str) -> dict[str, Any]:
    """Shards and conversations done and to do. Raises ConfigError where it is no run's folder."""
    ledger = open_ledger(run)
    manifest = ledger.manifest()
    shards = ledger.shards() or []
    committed = ledger.committed()
    rows = sum(s.rows for s in shards)
    done = sum(s.rows for s in shards if s.name in committed)
    under_way = sum(len(ledger.finished_conversations(s.name)) for s in shards if s.name not in committed)
    return {
        "run": ledger.where,
        "model": manifest.decides["model"]["name"],
        "complete": bool(shards) and len(committed) == len(shards) and ledger.report() is not None,
        "shards": len(shards),
        "shards_done": len(committed),
        "rows": rows,
        "rows_done": done,
        "rows_safe": done + under_way,
        "rows_left": rows - done - under_way,
    }
