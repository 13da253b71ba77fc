"""How far a run is, from its folder alone."""

from __future__ import annotations

from typing import Any

from reflash.ledger import names
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.ledger.whole import faults
from reflash.report.nodes import nodes_of, problems_of, rates_of


def run_status(run: str) -> dict[str, Any]:
    """Shards and conversations done and to do; changes nothing. Raises ConfigError where it is no run's folder."""
    ledger = open_ledger(run)
    manifest = ledger.manifest()
    plan = ledger.shards()
    shards = plan or []
    whole, out = _whole(ledger), _published(ledger)
    committed = [s for s in shards if s.name in whole]
    published = [s for s in committed if s.name in out]
    done = sum(s.rows for s in committed)
    under_way = sum(len(ledger.finished_conversations(s.name)) for s in shards if s.name not in whole)
    rows = sum(s.rows for s in shards)
    report = ledger.report()
    missing = next((m for s in shards if s.name not in whole and (m := ledger.first_missing(s.name))), None)
    source = ledger.source_counts()
    complete = bool(shards) and len(published) == len(shards) and (report or {}).get("complete") is True
    damaged = next(faults(ledger), None) if complete and ledger.store.root else None  # a store is asked too slowly
    nodes = nodes_of(ledger, manifest.recorded["config"])
    return {
        "run": ledger.where,
        "model": manifest.decides["model"]["name"],
        "complete": complete and damaged is None,
        "damaged": damaged,
        "nodes": nodes,
        **rates_of(nodes, rows - done - under_way),
        "problems": problems_of(nodes, complete=complete),
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


def _whole(ledger: Ledger) -> set[str]:
    """Names of the shards that are committed; on a disk, a power cut may have left a part torn."""
    return {shard for shard in ledger.committed() if not ledger.store.root or ledger.is_whole(shard)}


def _published(ledger: Ledger) -> set[str]:
    """Names of the shards whose rows lie in the dataset or under the rejects."""
    found = [*ledger.store.under(names.DATASET), *ledger.store.under(names.REJECTS)]
    return {names.shard_of(each.name) for each in found if names.is_shards_own(each.name)}
