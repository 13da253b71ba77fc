"""Rows for a person to look at: some of the good ones, some that were set aside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reflash.ledger.ledger import Ledger

LONGEST = 2000  # characters of a question or an answer that report.json keeps; the row lies in the dataset whole


def good_examples(ledger: Ledger, shards: Sequence[str], wanted: int = 10) -> list[dict[str, str]]:
    """The first good rows: `id`, `question` (the last one) and `answer`."""
    found: list[dict[str, str]] = []
    for shard in shards:
        table = ledger.good_rows(shard)
        if table is not None:
            rows = table.select(["id", "messages", "reasoning", "text"]).slice(0, wanted - len(found)).to_pylist()
            found += [_asked_and_answered(row) for row in rows]
        if len(found) >= wanted:
            break
    return found


def set_aside_examples(ledger: Ledger, shards: Sequence[str], wanted: int = 5) -> list[dict[str, str]]:
    """The first rows that were set aside, of as many reasons as a shard has: as the good ones, and `why`."""
    found: list[dict[str, str]] = []
    for shard in shards:
        table = ledger.rejected_rows(shard)
        if table is not None:
            for place in _varied(table["reasons"].to_pylist(), wanted - len(found)):
                [row] = table.slice(place, 1).drop_columns(["input_ids", "loss_mask"]).to_pylist()
                found.append(_asked_and_answered(row) | {"why": _why(row)})
        if len(found) >= wanted:
            break
    return found


def _varied(reasons: Sequence[Sequence[str]], wanted: int) -> list[int]:
    """Places of so many rows, in order: the first of each combination of reasons before a second of any."""
    firsts = {tuple(names): place for place, names in reversed(list(enumerate(reasons)))}.values()
    others = (place for place in range(len(reasons)) if place not in set(firsts))
    return sorted([*sorted(firsts), *others][:wanted])


def _asked_and_answered(row: dict[str, Any]) -> dict[str, str]:
    """The last question and the answer; what was thought or emitted where there is no answer."""
    *before, answer = row["messages"]
    question = next((m["content"] for m in reversed(before) if m["role"] == "user"), "")
    said = answer["content"] or row["reasoning"] or row["text"]
    return {"id": row["id"], "question": (question or "")[:LONGEST], "answer": (said or "")[:LONGEST]}


def _why(row: dict[str, Any]) -> str:
    error = f" ({row['error'][:LONGEST]})" if row["error"] else ""
    return f"{row['verdict']}: {', '.join(row['reasons'])}{error}"
