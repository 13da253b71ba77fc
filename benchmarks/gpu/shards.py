"""How much of the steady rate is kept from the first to the last of several shards."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from statistics import mean, median
from typing import Any

import clients
import work
from clients import Row
from serving import Counter, serving

WINDOW_S = 15.0


async def shards(options: Namespace) -> dict[str, Any]:
    """Short comparisons of the engine's own benchmark, with `--bench-rows`, then the run."""
    rows = options.out / "rows.jsonl"
    work.write_rows(options, rows, options.shards * options.shard_rows, options.tokens_in)
    result: dict[str, Any] = {"shard_rows": options.shard_rows, "lengths": options.lengths}
    async with serving(options, options.out) as server:
        for number, (name, more) in enumerate(_benches(options).items()):
            with Counter(server, options.out / f"{name}.counter.json") as counter:
                found = await asyncio.to_thread(
                    clients.run_bench, options, server, name, options.bench_rows, 100 + number, more
                )
            result[name] = {**found, "steady_tok_s": counter.middle(0.15, 0.85)}
            print(name, json.dumps({k: v for k, v in result[name].items() if k != "command"}), flush=True)
        engine = {"kind": "endpoint", "urls": [server.url], "dialect": server.kind, "width": options.width}
        config = work.write_config(
            options,
            options.out / "run",
            rows,
            engine,
            sampling={**json.loads(options.sampling), "max_new_tokens": int(options.lengths.split(":")[-1])},
            plan={"shard_rows": options.shard_rows},
        )
        with Counter(server, options.out / "run.counter.json") as counter:
            flow = asyncio.to_thread(clients.run_flow, options, server, "run", options.lengths, config)
            result["command_s"] = await flow
    result["command"] = clients.flow_command(options.lengths, config)
    return result | figures(clients.rows_of(options.out / "run"), counter, options.width)


def _benches(options: Namespace) -> dict[str, list[str]]:
    """The benchmark with the run's sampling, without and with a seed in each request."""
    if not options.bench_rows:
        return {}
    sampling = json.loads(options.sampling)
    return {
        "bench-unseeded": ["--extra-body", json.dumps(sampling)],
        "bench-seeded": ["--extra-body", json.dumps({**sampling, "seed": 7})],
    }


def figures(rows: list[Row], counter: Counter, width: int) -> dict[str, Any]:
    """Rates between the first moment at which all places are taken and the last request, and what comes after.

    `kept` is the mean rate there over the steady rate, the median of windows of 15 s; `kept_of_best` over the best
    whole minute.
    """
    full, last = rows[width - 1].sent, rows[-1].sent
    first, end = rows[0].sent, max(row.ended for row in rows)
    tokens = sum(row.tokens for row in rows)
    windows = _rates(counter, full, last, WINDOW_S)
    minutes = _rates(counter, full, last, 60.0, step=5.0)
    between = counter.rate(full, last) or 0.0
    return {
        "rows": len(rows),
        "tokens": tokens,
        "whole_s": end - first,
        "whole_tok_s": tokens / (end - first),
        "full_after_s": full - first,
        "last_sent_s": last - first,
        "drain_s": end - last,
        "tok_s_full_to_last_sent": between,
        "steady_tok_s": median(windows) if windows else None,
        "best_minute_tok_s": max(minutes, default=None),
        "kept": between / median(windows) if windows else None,
        "kept_of_best": between / max(minutes) if minutes else None,
        "windows": [round(w) for w in windows],
        "in_flight_share": _in_flight(rows, full, last) / width,
        "running_share": _running(counter, full, last) / width,
        "shards": _of_shards(rows, counter, first),
    }


def _rates(counter: Counter, begin: float, end: float, window: float, step: float | None = None) -> list[float]:
    rates, at = [], begin
    while at + window <= end:
        if (rate := counter.rate(at, at + window)) is not None:
            rates.append(rate)
        at += step or window
    return rates


def _in_flight(rows: list[Row], begin: float, end: float) -> float:
    """Requests under way at the client, on average."""
    return sum(max(0.0, min(row.ended, end) - max(row.sent, begin)) for row in rows) / (end - begin)


def _running(counter: Counter, begin: float, end: float) -> float:
    """Requests being decoded, on average, by the server's own figure."""
    seen = [running for at, _, running, _ in counter.samples if begin <= at <= end]
    return mean(seen) if seen else 0.0


def _of_shards(rows: list[Row], counter: Counter, zero: float) -> list[dict[str, Any]]:
    """When each shard began, sent its last request and ended; the rate in the 10 s around that last request, and in
    the minute around it, over which a drain would show."""
    found = []
    for name in sorted({row.shard for row in rows}):
        own = [row for row in rows if row.shard == name]
        last = max(row.sent for row in own)
        found.append(
            {
                "shard": name,
                "first_sent_s": round(own[0].sent - zero, 1),
                "last_sent_s": round(last - zero, 1),
                "ended_s": round(max(row.ended for row in own) - zero, 1),
                "tok_s_10_s_around_last_sent": round(counter.rate(last - 5, last + 5) or 0),
                "tok_s_60_s_around_last_sent": round(counter.rate(last - 30, last + 30) or 0),
            }
        )
    return found
