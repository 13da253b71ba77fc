"""`reflash benchmark` on a GPU with lengths imposed: engines, widths and caches compared, and what is to be used.

For example, in one sitting; with the same --out the next command goes on where the last one ended or was killed:
  python benchmarks/gpu sweep --out OUT --model FOLDER --name Qwen/Qwen3.6-27B --renderer qwen3.6 --python OF_VLLM \
    --width 256 --tokens-in 230 --rows 4000 --lengths lognormal:1100:0.8:8192 --minutes 50 --pilot-rows 1000 \
    --point width=128 --point kv_dtype=fp8 --point kind=sglang,python=OF_SGLANG,prefix_caching=on \
    --point kind=sglang,python=OF_SGLANG,prefix_caching=off
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import work

IMPOSED = Path(__file__).parent / "imposed.py"


async def sweep(options: Namespace) -> dict[str, Any]:
    """Measure; the forecast as JSON, with its report beside it."""
    rows = options.out / "rows.jsonl"
    if not rows.exists():
        work.write_rows(options, rows, options.rows, options.tokens_in)
    budget = int(options.lengths.split(":")[-1])
    config = work.write_config(
        options,
        options.out / "run",
        rows,
        work.engine(options),
        sampling={**json.loads(options.sampling), "max_new_tokens": budget},
        benchmark={"minutes": options.minutes, "rows": options.pilot_rows, "points": options.point},
    )
    command = [
        sys.executable,
        str(IMPOSED),
        options.lengths,
        "benchmark",
        str(config),
        "--out",
        str(options.out / "sweep"),
    ]
    await asyncio.to_thread(_run, command, options.out / "sweep.log")
    found: dict[str, Any] = json.loads((options.out / "sweep" / "forecast.json").read_bytes())
    found["pilot"].pop("sample")
    return {"command": command, **found}


def _run(command: list[str], into: Path) -> None:
    with into.open("a") as log:
        done = subprocess.run(command, stdout=log, stderr=log, env={**os.environ, "COLUMNS": "160"}, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}; {into} says why")
