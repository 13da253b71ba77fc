"""The nodes of a run, as their heartbeats in its folder tell of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from reflash.generate.identity import gone_here
from reflash.ledger.claims import Claims
from reflash.ledger.ledger import Ledger
from reflash.ledger.view import View

EXPIRY_S = 120.0  # of a run whose manifest names none
_KEPT = (
    "role",
    "host",
    "engines",
    "turns",
    "output_tokens",
    "tokens_per_s",
    "seconds",
    "in_flight",
    "holds",
    "problem",
)


def nodes_of(ledger: Ledger, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each node with its state: `working`, `silent` for longer than its claims last, `left` in order, or `dead`.

    `seconds_ago` is by this machine's clock. The last to be heard of come first.
    """
    generate = settings.get("generate")
    expiry_s = float(generate.get("expiry_s", EXPIRY_S)) if isinstance(generate, dict) else EXPIRY_S
    claims = Claims(ledger.store, "", expiry_s)
    view = claims.look()
    now = time.time()
    return [
        _node(claims, view, node, max(0.0, now - at), expiry_s)
        for node, at in sorted(view.nodes.items(), key=lambda item: -item[1])
    ]


def _node(claims: Claims, view: View, node: str, seconds_ago: float, expiry_s: float) -> dict[str, Any]:
    told = claims.heartbeat(node)
    state = "working"
    if node in view.left:
        state = "left"
    elif gone_here(told):
        state = "dead"
    elif seconds_ago > expiry_s:
        state = "silent"
    return {
        "node": node,
        "state": state,
        "seconds_ago": round(seconds_ago, 1),
        **{key: told.get(key) for key in _KEPT},
    }


def rates_of(nodes: list[dict[str, Any]], rows_left: int) -> dict[str, float | None]:
    """Tokens a second of all that work, and the seconds that the rows left will take by what answers took until now."""
    working = [node for node in nodes if node["state"] == "working"]
    rate = sum(float(node["tokens_per_s"] or 0) for node in working)
    turns = sum(int(node["turns"] or 0) for node in nodes)
    tokens = sum(int(node["output_tokens"] or 0) for node in nodes)
    left = rows_left * tokens / turns / rate if turns and rate > 0 else None
    return {"tokens_per_s": round(rate, 1), "seconds_left": left if left is None else round(left, 1)}


def problems_of(nodes: list[dict[str, Any]], *, complete: bool) -> list[str]:
    """What is wrong, a sentence each."""
    found = [f"{node['node']}: {node['problem']}" for node in nodes if node["problem"]]
    if complete:
        return found
    for node in nodes:
        if node["state"] in ("silent", "dead"):
            said = "is dead" if node["state"] == "dead" else f"was last heard of {node['seconds_ago']:.0f} s ago"
            held = len(node["holds"] or ())
            found.append(f"{node['node']} {said}" + (f"; others take the {held} slices that it held" if held else ""))
    if nodes and not any(node["state"] == "working" and node["role"] != "watch" for node in nodes):
        found.append("no node is at work: the command that began the run, or `reflash node`, goes on with it")
    return found
