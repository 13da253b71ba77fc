"""A benchmark's folder: what was measured is never measured again.

benchmark.json             what is measured: the config, the source's hash, the sample; written first
points/NAME.ROUND.json     one outcome each, made by put-if-absent
pilot/                     the pilot, a run's folder of its own
pilot.json                 what the pilot saw
forecast.json              what follows for the whole run, for programs
benchmark.md               the same for people
engines/                   logs of engines that were launched, and rows made for speed alone
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from reflash.benchmark.outcome import Outcome, read_outcome
from reflash.benchmark.points import Point
from reflash.errors import AlreadyExists, ManifestChanged, StoreError
from reflash.store.objects import Store

ASKED, PILOT, FORECAST, TEXT = "benchmark.json", "pilot.json", "forecast.json", "benchmark.md"
POINTS, PILOT_RUN, ENGINES = "points", "pilot", "engines"


class Notes:
    """Reads and writes them; a file that is torn counts as absent where it can be measured again."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def start(self, asked: Mapping[str, Any]) -> None:
        """Take the folder for this benchmark, or go on with it.

        Raises ManifestChanged, naming what differs, where another one was made in it.
        """
        data = orjson.dumps(asked, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        with suppress(AlreadyExists):
            self.store.put_new(ASKED, data)
        before = self._json(ASKED) or {}
        now = orjson.loads(data)
        differs = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        if differs:
            raise ManifestChanged(
                f"{self.store.where(ASKED)}: a benchmark of something else lies there ({', '.join(differs)} differ); "
                "name another folder with --out"
            )

    def outcome(self, point: Point, number: int) -> Outcome | None:
        """What a point gave in a round; None where that was not measured."""
        data = self._json(_name(point, number))
        try:
            return None if data is None else read_outcome(data)
        except (KeyError, TypeError):
            return None

    def keep(self, outcome: Outcome) -> None:
        """Note an outcome; one that is there already stays. What was not reached is left for another time."""
        if outcome.status == "not reached":
            return
        data = orjson.dumps(outcome.to_json(), option=orjson.OPT_INDENT_2)
        with suppress(AlreadyExists):
            self.store.put_new(_name(outcome.point, outcome.round), data)

    def pilot(self) -> dict[str, Any] | None:
        """What the pilot saw; None where it has not ended yet."""
        return self._json(PILOT)

    def keep_pilot(self, pilot: Mapping[str, Any]) -> None:
        """Note what the pilot saw."""
        self.store.put(PILOT, orjson.dumps(pilot))

    def write(self, forecast: Mapping[str, Any], text: str) -> None:
        """The result, for programs and for people."""
        self.store.put(FORECAST, orjson.dumps(forecast, option=orjson.OPT_INDENT_2))
        self.store.put(TEXT, text.encode())

    def _json(self, name: str) -> dict[str, Any] | None:
        data = self.store.get(name)
        if data is None:
            return None
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            if name == ASKED:
                raise StoreError(f"{self.store.where(name)} is torn; name another folder") from error
            return None
        return found if isinstance(found, dict) else None


def _name(point: Point, number: int) -> str:
    """A file's name that tells the point; a hash keeps long ones apart."""
    plain = re.sub(r"[^A-Za-z0-9=._-]+", "_", point.name)[:80]
    digest = hashlib.blake2b(point.name.encode(), digest_size=4).hexdigest()
    return f"{POINTS}/{plain}-{digest}.{number}.json"
