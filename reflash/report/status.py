"""How far a run is, from its folder alone."""

from __future__ import annotations

from typing import Any

from reflash.ledger.ledger import open_ledger


def run_status(run: str) -> dict[str, Any]:
    """Shards and conversations done and to do; changes nothing. Raises ConfigError where it is no run's folder."""
    ledger = open_ledger(run)
    manifest = ledger.manifest()
    plan = ledger.shards()
    shards = plan or []
    committed = [s for s in shards if ledger.is_whole(s.name)]
    published = [s for s in committed if ledger.is_published(s.name)]
    done = sum(s.rows for s in committed)
    under_way = sum(len(ledger.finished_conversations(s.name)) for s in shards if s not in committed)
    rows = sum(s.rows for s in shards)
    report = ledger.report()
    missing = next((m for s in shards if (m := ledger.first_missing(s.name))), None)
    source = ledger.source_counts()
    return {
        "run": ledger.where,
        "model": manifest.decides["model"]["name"],
        "complete": bool(shards) and len(published) == len(shards) and (report or {}).get("complete") is True,
        "shards": len(shards),
        "shards_done": len(committed),
        "shards_published": len(published),
        "rows": rows,
        "rows_done": done,
        "rows_safe": done + under_way,
        "rows_left": rows - done - under_way,
        "first_missing": missing and missing.name,
        "planned": plan is not None,
        "reported": report is not None,
        "source_rows": source.get("rows", 0),
        "source_rows_refused": source.get("rejected", 0) + source.get("unfit", 0),
    }
