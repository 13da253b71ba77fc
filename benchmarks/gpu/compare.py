"""Whether the whole flow is as quick as the engine's own benchmark, on one server, with the same lengths."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from typing import Any

import clients
import plain
import work
from serving import Counter, Server, serving

SHARDS = 3


async def compare(options: Namespace) -> dict[str, Any]:
    """The steps in their order: `bench`, `plain` and `flow`, each as often as it is named."""
    rows = options.out / "rows.jsonl"
    work.write_rows(options, rows, options.rows, options.tokens_in)
    result: dict[str, Any] = {"rows": options.rows, "in": options.tokens_in, "out": options.tokens_out, "steps": {}}
    async with serving(options, options.out) as server:
        for number, step in enumerate(options.steps.split(",")):
            name = f"{step}-{number}"
            result["steps"][name] = await asyncio.to_thread(_step, options, server, step, name, number)
            print(name, json.dumps({k: v for k, v in result["steps"][name].items() if k != "command"}), flush=True)
    return result


def _step(options: Namespace, server: Server, step: str, name: str, number: int) -> dict[str, Any]:
    others = options.out / f"{name}.jsonl"  # prompts of its own: the server may keep those of another step
    if step == "plain":
        work.write_rows(options, others, options.rows, options.tokens_in, seed=1000 + number)
    with Counter(server, options.out / f"{name}.counter.json") as counter:
        if step == "flow":
            found = _flow(options, server, name)
        elif step == "plain":
            found = plain.run_plain(options, server, others)
        else:
            found = clients.run_bench(options, server, name, options.rows, 100 + number, options.bench_arg)
    return {**found, "steady_tok_s": counter.middle()}


def _flow(options: Namespace, server: Server, name: str) -> dict[str, Any]:
    run = options.out / name
    engine = {"kind": "endpoint", "urls": [server.url], "dialect": server.kind, "width": options.width}
    config = work.write_config(
        options,
        run,
        options.out / "rows.jsonl",
        engine,
        sampling={**json.loads(options.sampling), "max_new_tokens": options.tokens_out},
        plan={"shard_rows": -(-options.rows // SHARDS)},
    )
    wall = clients.run_flow(options, server, name, str(options.tokens_out), config)
    rows, report = clients.rows_of(run), clients.report_of(run)
    tokens = sum(row.tokens for row in rows)
    seconds = max(row.ended for row in rows) - min(row.sent for row in rows)
    return {
        "command": clients.flow_command(str(options.tokens_out), config),
        "completed": len(rows),
        "duration": seconds,  # from the first request to the last answer, as the benchmark's
        "total_output_tokens": tokens,
        "output_throughput": tokens / seconds,
        "engines_ready_to_last_commit_s": report["attempt"]["seconds"],
        "attempt_tok_s": report["tokens_per_s"],
        "command_s": wall,
    }
