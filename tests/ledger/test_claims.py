"""Claims: one node a slice, until its node is dead by the store's clock."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reflash.ledger.claims import LEAST, SLICES, Claims, all_done, holding, slices
from reflash.ledger.view import Claim, read_claims
from reflash.store.objects import Found, Store, open_store
from reflash.types import Shard

SHARD = Shard("00007", 100, 100)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "run"), create=True)


def node(store: Store, name: str, expiry_s: float = 60.0) -> Claims:
    claims = Claims(store, name, expiry_s)
    claims.beat({})
    return claims


def heard(store: Store, name: str, seconds_ago: float) -> None:
    """A node's last heartbeat was so long ago, by the store's clock."""
    assert store.root is not None
    then = time.time() - seconds_ago
    os.utime(store.root / "nodes" / f"{name}.json", (then, then))


@pytest.mark.parametrize("rows", [1, LEAST, 2 * LEAST - 1, 2 * LEAST, 100, 2000, 20_001])
def test_slices_hold_every_row_once_in_order(rows: int) -> None:
    cut = slices(Shard("00000", rows, rows))
    assert [row for one in cut for row in range(one.start, one.end)] == list(range(rows))
    assert len(cut) <= SLICES
    assert all(one.end - one.start >= min(LEAST, rows) for one in cut)


def test_of_several_nodes_one_gets_a_slice(store: Store) -> None:
    one = slices(SHARD)[0]
    assert [node(store, name).take(one, 1) for name in "abc"] == [True, False, False]


def test_a_claim_of_a_living_node_is_not_free(store: Store) -> None:
    a, b = node(store, "a"), node(store, "b")
    a.take(slices(SHARD)[0], 1)
    view = b.look()
    assert not b.lapsed(view, view.claims["00007", 0])


def test_a_claim_lapses_when_its_node_is_silent_by_the_clock_of_the_store(store: Store) -> None:
    a, b = node(store, "a"), node(store, "b")
    one = slices(SHARD)[0]
    a.take(one, 1)
    heard(store, "a", 61)
    view = b.look()
    assert b.lapsed(view, view.claims["00007", 0])
    assert b.take(one, 2)
    assert a.look().claims["00007", 0].fence == 2  # what a node that wakes from a pause finds


def test_clocks_of_nodes_do_not_count(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = node(store, "a"), node(store, "b")
    a.take(slices(SHARD)[0], 1)
    monkeypatch.setattr(time, "time", lambda: 1e12)
    view = b.look()
    assert not b.lapsed(view, view.claims["00007", 0])
    for name in "ab":
        heard(store, name, 1e12 - 1000)  # the store's own clock is far behind: both spoke at the same time
    view = b.look()
    assert not b.lapsed(view, view.claims["00007", 0])


def test_a_heartbeat_from_the_future_makes_nobody_silent(store: Store) -> None:
    a, b, c = (node(store, name) for name in "abc")
    for number, each in enumerate((a, b, c)):
        each.take(slices(SHARD)[number], 1)
    heard(store, "c", -86400)  # a clock was set back since
    view = b.look()
    assert [b.lapsed(view, view.claims["00007", number]) for number in range(3)] == [False] * 3


def test_a_node_whose_heartbeat_never_changes_lapses_whatever_its_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = node(store, "a"), node(store, "b")
    a.take(slices(SHARD)[0], 1)
    heard(store, "a", -86400)
    b.look()
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    b.beat({})
    view = b.look()
    assert b.lapsed(view, view.claims["00007", 0])
    assert "b" not in b.dead(view)


def test_a_claim_lapses_at_once_when_its_node_leaves(store: Store) -> None:
    a, b = node(store, "a"), node(store, "b")
    a.take(slices(SHARD)[0], 1)
    a.leave()
    view = b.look()
    assert b.lapsed(view, view.claims["00007", 0])


def test_a_slice_that_was_given_up_is_free_and_one_that_is_done_is_not(store: Store) -> None:
    a, b = node(store, "a"), node(store, "b")
    first, second, _ = slices(SHARD)
    for one in (first, second):
        a.take(one, 1)
    a.end(first, 1, done=False)
    a.end(second, 1, done=True)
    a.leave()
    view = b.look()
    assert b.lapsed(view, view.claims["00007", 0])
    assert not b.lapsed(view, view.claims["00007", 1])


def test_a_node_known_to_be_dead_is_not_waited_for(store: Store) -> None:
    a = Claims(store, "a", 60.0)
    a.beat({"pid": 4711})
    a.take(slices(SHARD)[0], 1)

    def gone(facts: Mapping[str, Any]) -> bool:
        return facts.get("pid") == 4711

    b = Claims(store, "b", 60.0, gone)
    b.beat({})
    view = b.look()
    assert b.lapsed(view, view.claims["00007", 0])


def test_a_later_fence_counts_whatever_became_of_the_earlier(store: Store) -> None:
    found = ["claims/00007/0.1", "claims/00007/0.1.done", "claims/00007/0.2", "claims/00007/0.10", "claims/other#1"]
    assert read_claims(Found(name, 0) for name in found) == {("00007", 0): Claim("00007", 0, 10)}


def test_a_shard_is_whole_when_all_its_slices_are_done(store: Store) -> None:
    a = node(store, "a")
    for one in slices(SHARD):
        assert not all_done(SHARD, a.of("00007"))
        a.take(one, 1)
        a.end(one, 1, done=True)
    assert all_done(SHARD, a.of("00007"))
    a.take(slices(SHARD)[0], 2)
    assert not all_done(SHARD, a.of("00007"))
    a.drop("00007")
    assert a.look().claims == {}


def test_missing_rows_name_their_slices() -> None:
    rows = [f"row-{n}" for n in range(100)]
    assert [one.number for one in holding(rows, {"row-0", "row-99"}, SHARD)] == [0, 2]


class RecordingStore(Store):
    """Notes what is asked of it."""

    asked: set[str]

    def put(self, name: str, data: bytes, *, settle: bool = True) -> None:
        self.asked.add("overwrite " + name.rsplit("/", 1)[-1])
        super().put(name, data, settle=settle)

    def put_new(self, name: str, data: bytes, *, settle: bool = True) -> None:
        self.asked.add("put if absent")
        super().put_new(name, data, settle=settle)

    def delete(self, names: list[str]) -> None:
        self.asked.add("delete")
        super().delete(names)


def test_only_put_if_absent_overwriting_ones_own_heartbeat_reading_and_listing_are_used(store: Store) -> None:
    watched = RecordingStore(store.url, store._objects, store.root)
    watched.asked = set()
    a = node(watched, "a")
    one = slices(SHARD)[0]
    a.take(one, 1)
    view = a.look()
    a.lapsed(view, view.claims["00007", 0])
    a.end(one, 1, done=True)
    a.leave()
    assert watched.asked == {"overwrite a.json", "put if absent"}
