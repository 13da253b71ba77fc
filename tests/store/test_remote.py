"""An object store over a network that loses things: what was put once is there once, whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex

import pytest

from reflash.errors import AlreadyExists, StoreError
from reflash.ledger.ledger import open_ledger
from reflash.store.objects import Store, open_store
from tests.making import manifest
from tests.store.s3 import FaultyProxy, environment

ALL = {"refused": 0.06, "lost": 0.06, "cut": 0.06, "gone": 0.06, "half": 0.06, "slow": 0.02}


@pytest.fixture
def store(s3: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    return opened(s3, monkeypatch)


def opened(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name, value in environment(endpoint).items():
        monkeypatch.setenv(name, value)
    return open_store(f"s3://bucket/runs/{token_hex(4)}")


@contextmanager
def through(s3: str, monkeypatch: pytest.MonkeyPatch, **shares: float) -> Iterator[tuple[Store, FaultyProxy]]:
    with FaultyProxy(s3, shares, slow_s=0.05) as proxy:
        yield opened(proxy.url, monkeypatch), proxy


def test_an_object_store_has_all_that_a_run_needs(store: Store) -> None:
    store.put_new("parts/00000.parquet", b"once")
    with pytest.raises(AlreadyExists, match=r"s3://bucket/runs/.*/parts/00000.parquet is there already"):
        store.put_new("parts/00000.parquet", b"twice")
    store.put("report.json", b"1")
    store.put("report.json", b"2")
    assert (store.get("report.json"), store.get("nothing")) == (b"2", None)
    assert [(o.name, o.size) for o in store.under("parts")] == [("parts/00000.parquet", 4)]
    assert (store.tail("parts/00000.parquet", 2), store.tail("nothing", 2)) == (b"ce", None)
    store.delete(["parts/00000.parquet", "nothing"])
    assert store.under("parts") == []


def test_objects_carry_the_time_of_the_store(store: Store) -> None:
    store.put("first", b"")
    store.put("second", b"")
    first, second = store.find("first"), store.find("second")
    assert first is not None
    assert second is not None
    assert 0 <= second.modified - first.modified < 60


@pytest.mark.parametrize("fault", ["refused", "lost", "cut", "gone", "half", "slow"])
def test_a_fault_of_the_network_is_got_past(s3: str, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    with through(s3, monkeypatch, **{fault: 0.4}) as (store, proxy):
        data = {f"a/{n:02}": b"%d" % n * 1000 for n in range(12)}
        for name, body in data.items():
            store.put_new(name, body)
        assert {name: store.get(name) for name in data} == data
        assert [o.name for o in store.under("a")] == sorted(data)
        store.delete(list(data)[:3])
        assert len(store.under("a")) == 9
        assert proxy.met[fault] > 3


def test_a_second_writer_is_refused_whatever_the_network_loses(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with through(s3, monkeypatch, **ALL) as (store, _):
        won: list[tuple[int, int]] = []

        def write(writer: int) -> None:
            for n in range(10):
                try:
                    store.put_new(f"claims/{n}", b"writer %d" % writer)
                except AlreadyExists:
                    continue
                won.append((n, writer))

        threads = [threading.Thread(target=write, args=(w,)) for w in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(n for n, _ in won) == list(range(10))
        assert all(store.get(f"claims/{n}") == b"writer %d" % writer for n, writer in won)


def test_a_store_that_nobody_answers_for_is_named_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflash.store.objects._TRIES", 1)
    monkeypatch.setattr("reflash.store.remote._RETRY", {"max_retries": 0})
    store = opened("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(StoreError, match=r"s3://bucket/runs/.*/manifest.json could not be read"):
        store.get("manifest.json")


def test_a_run_begins_in_an_object_store(store: Store) -> None:
    ledger = open_ledger(store.url)
    ledger.start(manifest("first"))
    open_ledger(store.url).start(manifest("second"))
    assert ledger.manifest().id == "first"
