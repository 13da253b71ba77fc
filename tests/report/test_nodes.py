"""Who works on a run and what is wrong, from the folder alone."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from flows.screen import status_lines
from reflash.engines.linux import place
from reflash.ledger.claims import Claims
from reflash.ledger.ledger import Ledger
from reflash.report.nodes import nodes_of, problems_of, rates_of
from reflash.report.status import run_status
from reflash.types import Shard
from tests.making import begun, rows

FACTS: dict[str, Any] = {
    "role": "node",
    "host": "gpu7",
    "engines": ["http://127.0.0.1:8000"],
    "turns": 100,
    "output_tokens": 150_000,
    "tokens_per_s": 2500.0,
    "in_flight": 64,
    "holds": ["00000/0"],
    "problem": "",
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = begun(tmp_path / "run")
    made.write_shard("00000", rows(40))
    made.finish_plan([Shard("00000", 40, 40)], {"rows": 40})
    return made


def heard(ledger: Ledger, node: str, seconds_ago: float = 0.0, **facts: Any) -> Claims:
    claims = Claims(ledger.store, node, 120.0)
    claims.beat(FACTS | facts)
    assert ledger.store.root is not None
    then = time.time() - seconds_ago
    os.utime(ledger.store.root / f"nodes/{node}.json", (then, then))
    return claims


def test_nodes_are_told_by_what_was_last_heard_of_them(ledger: Ledger) -> None:
    heard(ledger, "a", 1)
    heard(ledger, "b", 600)
    heard(ledger, "c", 5).leave()
    heard(ledger, "d", 7, place=place(), pid=2**22 - 1, started=1)
    found = nodes_of(ledger, {})
    assert [(node["node"], node["state"]) for node in found] == [
        ("a", "working"),
        ("c", "left"),
        ("d", "dead"),
        ("b", "silent"),
    ]
    assert nodes_of(ledger, {"generate": {"expiry_s": 3600.0}})[3]["state"] == "working"


def test_the_rate_is_that_of_nodes_at_work_and_says_what_is_left(ledger: Ledger) -> None:
    heard(ledger, "a", 1)
    heard(ledger, "b", 2)
    heard(ledger, "c", 600)
    found = rates_of(nodes_of(ledger, {}), rows_left=1000)
    assert found == {"tokens_per_s": 5000.0, "seconds_left": 300.0}
    assert rates_of([], 1000) == {"tokens_per_s": 0, "seconds_left": None}


def test_what_is_wrong_is_said_in_sentences(ledger: Ledger) -> None:
    heard(ledger, "a", 600, problem="EngineGone: out of memory")
    found = problems_of(nodes_of(ledger, {}), complete=False)
    assert found[0] == "a: EngineGone: out of memory"
    assert "a was last heard of 600 s ago; others take the 1 slices that it held" in found
    assert "no node is at work" in found[2]


def test_status_shows_nodes_at_work(ledger: Ledger) -> None:
    heard(ledger, "a", 3)
    heard(ledger, "w", 3, role="watch", tokens_per_s=0.0)
    found = run_status(str(ledger.store.root))
    lines = "\n".join(status_lines(found))
    assert "Nodes: 1 at work, 2,500 tok/s" in lines
    assert "a: 2,500 tok/s, 64 requests under way, 100 turns made, heard of 3 s ago" in lines
    assert "Wrong" not in lines
