"""The clients that are compared: the engine's own benchmark, and the project's whole flow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving import Server

from reflash.engines.serve.command import server_environment
from reflash.ledger.ledger import open_ledger

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Row:
    """One answer: Unix times of its request and its end, and its tokens."""

    sent: float
    ended: float
    tokens: int
    shard: str


def bench_command(options: Namespace, server: Server, out: Path, rows: int, seed: int, more: list[str]) -> list[str]:
    """The engine's own benchmark: random prompts, fixed lengths."""
    common = ["--model", options.model, "--tokenizer", options.model, "--base-url", server.url, "--seed", str(seed)]
    common += ["--num-prompts", str(rows), "--max-concurrency", str(options.width), "--disable-tqdm"]
    common += ["--random-input-len", str(options.tokens_in), "--random-output-len", str(options.tokens_out)]
    if server.kind == "vllm":
        into = ["--save-result", "--result-dir", str(out.parent), "--result-filename", out.name]
        start = ["-m", "vllm.entrypoints.cli.main", "bench", "serve", "--dataset-name", "random", "--ignore-eos"]
        return [options.python, *start, *common, *into, *more]
    into = ["--output-file", str(out)]
    start = ["-m", "sglang.bench_serving", "--backend", "sglang", "--dataset-name", "random-ids"]
    return [options.python, *start, *common, "--random-range-ratio", "1.0", *into, *more]


def run_bench(
    options: Namespace, server: Server, name: str, rows: int, seed: int, more: list[str] | None = None
) -> dict[str, Any]:
    """Run it; its own figures, and the command."""
    out = options.out / f"{name}.json"
    command = bench_command(options, server, out, rows, seed, more or [])
    env = dict(pair.split("=", 1) for pair in [*options.env, *options.bench_env])
    with (options.out / f"{name}.log").open("w") as log:
        subprocess.run(
            command,
            env=server_environment(os.environ, {**env, "OPENAI_API_KEY": server.key}),
            stdout=log,
            stderr=log,
            check=True,
        )
    found = json.loads(out.read_text().splitlines()[-1])
    keep = ("completed", "duration", "total_input_tokens", "total_output_tokens", "output_throughput")
    return {"command": command, **{key: found.get(key) for key in keep}}


def flow_command(lengths: str, config: Path) -> list[str]:
    """The project's command line with imposed lengths."""
    return [sys.executable, str(HERE / "imposed.py"), lengths, "regenerate", str(config)]


def run_flow(options: Namespace, server: Server, name: str, lengths: str, config: Path) -> float:
    """Run it to its end; the seconds of the whole command, Prefect's server included."""
    env = {**os.environ, "COLUMNS": "160"}
    if server.key:
        env["REFLASH_API_KEY"] = server.key
    began = time.monotonic()
    with (options.out / f"{name}.log").open("w") as log:
        subprocess.run(flow_command(lengths, config), env=env, stdout=log, stderr=log, check=True)
    return time.monotonic() - began


def rows_of(run: Path) -> list[Row]:
    """Every answer of a run, in the order in which they were asked for."""
    ledger = open_ledger(str(run))
    rows = [
        Row(turn.finished_at - turn.seconds, turn.finished_at, turn.completion_tokens, shard.name)
        for shard in ledger.shards() or []
        for turn in ledger.part(shard.name)
        if turn.completion_tokens
    ]
    return sorted(rows, key=lambda row: row.sent)


def report_of(run: Path) -> dict[str, Any]:
    """The run's report."""
    found = open_ledger(str(run)).report()
    assert found
    return found
