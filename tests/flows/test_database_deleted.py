"""Prefect's database is deleted in the middle of a run: no data is lost, and the same command goes on."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from benchmarks.servers import Server, database, free_port, prefect_server
from reflash.ledger.ledger import open_ledger
from reflash.report.status import run_status
from tests.flows.made import MODEL
from tests.flows.test_stopped import ROOT, START, waited
from tests.making import config, conversations_file

pytestmark = [pytest.mark.prefect, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

ROWS, SHARD = 512, 32


def settings(folder: Path) -> Path:
    """A config of shards that take some seconds each."""
    run = config(
        folder / "run",
        source={"path": str(conversations_file(folder / "rows.jsonl", ROWS))},
        model=MODEL,
        engine={"kind": "scripted", "script": "slow", "width": 4},
        plan={"shard_rows": SHARD, "workers": 1},
    )
    file = folder / "run.yaml"
    file.write_text(yaml.safe_dump(run.model_dump(mode="json")))
    return file


@contextmanager
def command(server: Server, file: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`reflash regenerate`, as a user gives it."""
    with log.open("wb") as out:
        started = [sys.executable, "-c", START, "regenerate", str(file)]
        process = subprocess.Popen(started, env=server.env, cwd=ROOT, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def parts(run: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (run / "parts").glob("*.parquet")}


def flow_runs(server: Server) -> list[str]:
    return [each["state"]["type"] for each in server.post("flow_runs/filter", {})]


def sqlite_gone(folder: Path, _url: str | None) -> None:
    found = list((folder / "prefect").glob("prefect.db*"))
    assert found
    for file in found:
        file.unlink()


def postgresql_gone(_folder: Path, url: str | None) -> None:
    import asyncpg

    async def drop() -> None:
        assert url is not None
        dsn = url.replace("+asyncpg", "").rpartition("/")[0] + "/template1"
        connection = await asyncpg.connect(dsn)
        await connection.execute("DROP DATABASE postgres WITH (FORCE)")
        await connection.execute("CREATE DATABASE postgres")
        await connection.close()

    asyncio.run(drop())


GONE: dict[str, Callable[[Path, str | None], None]] = {"sqlite": sqlite_gone, "postgresql": postgresql_gone}


@pytest.mark.parametrize("living", [True, False], ids=["under a living server", "while the server is down"])
@pytest.mark.parametrize("kind", GONE)
def test_a_run_outlives_prefects_database(tmp_path: Path, kind: str, living: bool) -> None:
    if kind == "postgresql" and not all(map(shutil.which, ("initdb", "postgres"))):
        pytest.skip("no PostgreSQL on this machine: initdb and postgres are not in the PATH")
    file, run, port = settings(tmp_path), tmp_path / "run", free_port()
    with database(kind, tmp_path) as url, ExitStack() as serving, ExitStack() as running:
        server = serving.enter_context(prefect_server(tmp_path, url, port=port))
        running.enter_context(command(server, file, tmp_path / "first.log"))
        assert waited(lambda: len(parts(run)) >= 2, 180), (tmp_path / "first.log").read_text()
        assert flow_runs(server) == ["RUNNING"]
        if not living:
            serving.close()
        GONE[kind](tmp_path, url)
        before = parts(run)
        assert waited(lambda: len(parts(run)) > len(before), 90), "it does not work on without a database"
        running.close()  # a kill -9
        assert len(parts(run)) < ROWS // SHARD, "nothing is left for another run"
        serving.close()
        server = serving.enter_context(prefect_server(tmp_path, url, port=port))
        assert flow_runs(server) == []
        with command(server, file, tmp_path / "second.log") as second:
            assert second.wait(300) == 0, (tmp_path / "second.log").read_text()
        assert flow_runs(server) == ["COMPLETED"]
    assert before.items() <= parts(run).items()
    found = run_status(str(run))
    assert (found["complete"], found["rows_done"], found["rows_left"]) == (True, ROWS, 0)
    ledger = open_ledger(str(run))
    answered = Counter(
        row["conversation"]
        for shard in ledger.shards() or []
        for table in (ledger.good_rows(shard.name), ledger.rejected_rows(shard.name))
        for row in (table.select(["conversation"]).to_pylist() if table else ())
    )
    assert answered == {f"row-{n:04}": 1 for n in range(ROWS)}


def test_a_run_that_its_server_knows_no_longer_ends_and_says_so(tmp_path: Path) -> None:
    file, run, port = settings(tmp_path), tmp_path / "run", free_port()
    with ExitStack() as serving:
        server = serving.enter_context(prefect_server(tmp_path, None, port=port))
        with command(server, file, tmp_path / "first.log") as first:
            assert waited(lambda: len(parts(run)) >= 1, 180), (tmp_path / "first.log").read_text()
            sqlite_gone(tmp_path, None)
            serving.close()
            serving.enter_context(prefect_server(tmp_path, None, port=port))
            assert first.wait(120) == 1
    assert "reflash: the Prefect server knows this run no longer" in (tmp_path / "first.log").read_text()
