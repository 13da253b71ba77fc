"""Recorded facts, and the same with a fault planted in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reflash.environment.facts import Facts, read_facts
from reflash.environment.judge import judge

FOLDER = Path(__file__).with_name("facts")


def recorded(name: str, **faults: Any) -> Facts:
    """A document of this folder; a fault names what it changes by dots, written as two underscores.

    `cards__0__xids=[79]` changes one card.
    """
    document = json.loads((FOLDER / f"{name}.json").read_bytes())
    for path, value in faults.items():
        *above, last = path.split("__")
        place = document
        for part in above:
            place = place[int(part) if part.isdigit() else part]
        if isinstance(place, dict):
            assert last in place, f"{path} is not in the document"
        place[last] = value
    return read_facts(json.dumps(document).encode(), name)


def troubled(facts: Facts, last: Facts | None = None) -> dict[str, str]:
    """What does not pass, by id."""
    return {f.id: f.status for f in judge(facts, last) if f.status not in ("pass", "not applicable")}
