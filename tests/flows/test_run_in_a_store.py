"""A whole run in an object store, over a network that loses requests: source, plan, parts, dataset, report, export."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.again import second_pass
from flows.validating import validate_run
from reflash.export.run import export_run
from reflash.ledger.ledger import open_ledger
from reflash.plan.preflight import preflight
from reflash.report.status import run_status
from reflash.sources.open import open_source
from reflash.store.objects import open_store
from tests.flows.made import MODEL, made_run
from tests.making import config, conversations_file
from tests.store.s3 import FaultyProxy, environment, s3_server

SHARES = {"refused": 0.02, "lost": 0.02, "cut": 0.02, "gone": 0.02, "half": 0.02, "slow": 0.01}
ROWS = 23


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def bucket(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, FaultyProxy]]:
    """A folder in a bucket, with a source in it, behind a network that loses one request in nine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with FaultyProxy(s3, SHARES, slow_s=0.05) as proxy:
        for name, value in environment(proxy.url).items():
            monkeypatch.setenv(name, value)
        yield f"s3://bucket/{token_hex(4)}", proxy


def put_source(url: str, tmp_path: Path, name: str) -> str:
    """Conversations in the bucket, as JSON Lines or Parquet."""
    lines = conversations_file(tmp_path / "rows.jsonl", ROWS).read_bytes()
    if name.endswith(".parquet"):
        table = pa.Table.from_pylist([json.loads(line) for line in lines.splitlines()])
        pq.write_table(table, tmp_path / "rows.parquet")
        lines = (tmp_path / "rows.parquet").read_bytes()
    open_store(f"{url}/sets").put(name, lines)
    return f"{url}/sets/{name}"


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("folder/part.jsonl", False),
        pytest.param("rows.jsonl", True, marks=pytest.mark.slow),
        pytest.param("rows.parquet", True, marks=pytest.mark.slow),
    ],
)
def test_a_run_lies_whole_in_an_object_store(
    bucket: tuple[str, FaultyProxy], tmp_path: Path, name: str, faults: bool
) -> None:
    url, proxy = bucket
    if not faults:
        proxy.shares.clear()
    source = put_source(url, tmp_path, name)
    given = source.rpartition("/")[0] if name.startswith("folder") else source
    run = config(
        f"{url}/run", source={"path": given}, model=MODEL, plan={"shard_rows": 5, "workers": 1}, publish={"title": "A"}
    )
    preflight(run)
    ledger = made_run(run)
    found = run_status(run.run)
    assert (found["complete"], found["rows_done"], found["rows_left"], found["shards"]) == (True, ROWS, 0, 5)
    rows = [row for file in ledger.dataset_files() for row in ledger.dataset_rows(file).to_pylist()]
    assert Counter(r["conversation"] for r in rows) == {f"row-{n:04}": 1 for n in range(ROWS)}
    assert {r["source_file"] for r in rows} == {source}
    assert validate_run(run.run).complete
    made = export_run(run.run, "messages", tmp_path / "out.jsonl")
    assert made.rows == ROWS
    assert not faults or sum(proxy.met.values()) > 5


@pytest.mark.slow
def test_what_a_run_in_a_store_set_aside_is_made_again(bucket: tuple[str, FaultyProxy], tmp_path: Path) -> None:
    url, _ = bucket
    path = put_source(url, tmp_path, "rows.jsonl")
    sampling = {"max_new_tokens": 12}
    run = config(f"{url}/run", source={"path": path}, model=MODEL, sampling=sampling, plan={"shard_rows": 5})
    made_run(run)
    again = second_pass(run.run, ("truncated",), None, ["sampling.max_new_tokens=64", "plan.workers=1"])
    assert again.run == f"{url}/run-again"
    made_run(again)
    assert run_status(again.run)["complete"]


def test_a_source_in_a_store_is_copied_again_when_it_changes(bucket: tuple[str, FaultyProxy], tmp_path: Path) -> None:
    url, proxy = bucket
    proxy.shares.clear()
    source = config(f"{url}/run", source={"path": put_source(url, tmp_path, "rows.jsonl")}).source
    first = open_source(source).digest()
    asked = proxy.requests["GET"]
    assert open_source(source).digest() == first
    assert proxy.requests["GET"] == asked
    open_store(f"{url}/sets").put("rows.jsonl", b'{"id": "a", "messages": [{"role": "user", "content": "q"}]}\n')
    assert open_source(source).digest() != first


@pytest.mark.slow
def test_a_run_in_a_store_goes_on_where_it_was(bucket: tuple[str, FaultyProxy], tmp_path: Path) -> None:
    url, _ = bucket
    run = config(
        f"{url}/run", source={"path": put_source(url, tmp_path, "rows.jsonl")}, model=MODEL, plan={"shard_rows": 5}
    )
    made_run(run, 2)
    assert run_status(run.run)["rows_left"] == ROWS - 10
    first = open_ledger(run.run).part_table("00000")
    made_run(run)
    assert run_status(run.run)["complete"]
    assert open_ledger(run.run).part_table("00000").equals(first)
