"""What looking costs: a census of a set as large as the first user's.

usage: uv run python benchmarks/census.py [--rows 913786] [--keep FILE.parquet] [--tokenizer FOLDER] [--write]

Builds the rows (198 M tokens for 913,786; 87 % of them an empty thought and `OK.`; Parquet, zstd, int32 and int8), then
times, each in a process of its own: DuckDB's bare `list_sum` of the masks, the census' core (sums and histogram), the
whole census with its peak memory (with `--tokenizer` a second time, with benchmark items looked for in every prompt),
and a loop over rows of `datasets`, from as many rows as `--loop` extrapolated. Each is the best of `--times` goes.
Exits 1 where a limit is missed; `--write` keeps the figures under benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, EMPTY_SHARE = 913_786, 0.87
PROMPT_MEAN, ANSWER_MEAN = 110.0, 770.0  # tokens; with the share of empty ones about 217 a row
OPEN, END, FEED, THOUGHT = 151644, 151645, 198, 151668  # of Qwen3
EMPTY = np.array([THOUGHT, 271, 3925, 13, END, FEED], np.int32)
AT_ONCE = 10_000  # rows of a group

MOST_CORE, MOST_WHOLE, MOST_MIB = 1.5, 10.0, 1024.0  # times list_sum, times list_sum, MiB
RESULTS = Path(__file__).parent / "results"

Work = Callable[[argparse.Namespace], float]  # gives the share of rows with six supervised tokens


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement."""

    what: str
    seconds: float
    times_list_sum: float
    peak_mib: float
    six_tokens: float  # share of rows
    rows: int  # measured; fewer than the set's where `seconds` is extrapolated


def main() -> int:
    """Build and measure, or do one measurement (`--only`) in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--loop", type=int, default=50_000, help="rows of the `datasets` loop")
    parser.add_argument("--times", type=int, default=3, help="how often each is measured")
    parser.add_argument("--keep", type=Path, help="where to keep the set; one that is there is taken as it is")
    parser.add_argument("--tokenizer", help="folder of a Qwen3 tokenizer")
    parser.add_argument("--write", action="store_true", help="keep the figures under benchmarks/results")
    parser.add_argument("--only", choices=MEASURES, help="internal: one measurement of the set kept")
    options = parser.parse_args()
    if options.only:
        work = MEASURES[options.only]()
        began = time.perf_counter()
        share = work(options)
        print(f"{time.perf_counter() - began:.3f} {share:.6f} {_peak_kib()}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        options.keep = options.keep or Path(folder, "set.parquet")
        if not options.keep.exists():
            build(options.keep, options.rows)
        return _compare(options)


def build(path: Path, rows: int) -> None:
    """Write the set, a group of rows at a time."""
    chance = np.random.default_rng(6)
    schema = pa.schema({"input_ids": pa.list_(pa.int32()), "loss_mask": pa.list_(pa.int8())})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for first in range(0, rows, AT_ONCE):
            writer.write_table(_group(chance, min(AT_ONCE, rows - first)))


def _group(chance: np.random.Generator, rows: int) -> pa.Table:
    asked = np.clip(chance.lognormal(np.log(PROMPT_MEAN) - 0.5, 1.0, rows), 12, 4000).astype(np.int64)
    said = np.clip(chance.lognormal(np.log(ANSWER_MEAN) - 0.32, 0.8, rows), 20, 4000).astype(np.int64)
    empty = chance.random(rows) < EMPTY_SHARE
    said[empty] = len(EMPTY)
    lengths = asked + said
    ends = np.cumsum(lengths)
    begins = ends - lengths
    ids = chance.zipf(1.3, ends[-1]).clip(1, 150_000).astype(np.int32)
    mask = np.repeat(np.tile(np.array([0, 1], np.int8), rows), np.stack([asked, said], 1).ravel())
    ids[begins], ids[begins + asked - 3] = OPEN, OPEN
    ids[ends - 2], ids[ends - 1] = END, FEED
    for place, token in enumerate(EMPTY):
        ids[(begins + asked)[empty] + place] = token
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    columns = [pa.ListArray.from_arrays(offsets, pa.array(values)) for values in (ids, mask)]
    return pa.table(columns, names=["input_ids", "loss_mask"])


def bare() -> Work:
    """DuckDB's list_sum of the masks."""
    import duckdb

    def work(options: argparse.Namespace) -> float:
        query = "SELECT count(*) FILTER (list_sum(loss_mask) = 6) / count(*) FROM read_parquet(?)"
        found = duckdb.execute(query, [str(options.keep)]).fetchone()
        return float(found[0]) if found else 0.0

    return work


def core() -> Work:
    """The census' sums and histogram.

    From its own reader, of the masks alone.
    """
    import pandas  # noqa: F401  pyarrow imports it at the first array it makes: no import is timed

    from reflash.census.figures import histogram
    from reflash.sources.columns import ParquetPart
    from reflash.tokenized.lists import flat_lists

    def work(options: argparse.Namespace) -> float:
        pieces = []
        for batch in ParquetPart(str(options.keep), options.keep).batches(("loss_mask",)):
            lists = flat_lists(batch.column(0), "loss_mask")
            starts = np.cumsum(lists.lengths) - lists.lengths
            pieces.append(np.add.reduceat(lists.values == 1, starts, dtype=np.int64))
        sums = np.concatenate(pieces)
        bins = {(one.least, one.most): one.rows for one in histogram(sums, 6)}
        return bins[1, 6] / len(sums)

    return work


def whole() -> Work:
    """The whole census."""
    import pandas  # noqa: F401

    from reflash.census.run import take_census
    from reflash.config.audit import DataAudit

    def work(options: argparse.Namespace) -> float:
        report = take_census(DataAudit(path=str(options.keep))).report
        return report.empty_rows / report.rows

    return work


def items() -> Work:
    """The same, with benchmark items in prompts."""
    import pandas  # noqa: F401

    from reflash.census.run import take_census
    from reflash.config.audit import DataAudit

    def work(options: argparse.Namespace) -> float:
        report = take_census(DataAudit(path=str(options.keep), tokenizer=options.tokenizer)).report
        return report.empty_rows / report.rows

    return work


def loop() -> Work:
    """A loop over rows as `datasets` gives them."""
    from datasets import load_dataset

    def work(options: argparse.Namespace) -> float:
        seen: Counter[int] = Counter()
        rows = load_dataset("parquet", data_files=str(options.keep), split="train", streaming=True)
        for row in rows.take(options.loop):
            seen[sum(row["loss_mask"])] += 1
        return seen[6] / seen.total()

    return work


MEASURES = {"bare": bare, "core": core, "whole": whole, "items": items, "loop": loop}


def _peak_kib() -> int:
    """The most memory that this process held; the kernel's other figure, ru_maxrss, counts its parent's too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _compare(options: argparse.Namespace) -> int:
    metadata = pq.ParquetFile(options.keep).metadata
    rows = metadata.num_rows
    tokens = sum(metadata.row_group(n).column(0).num_values for n in range(metadata.num_row_groups))
    print(f"{rows:,} rows, {tokens:,} tokens, {options.keep.stat().st_size / 2**20:,.0f} MiB of Parquet")
    print(f"{'what':<46}{'seconds':>9}{'of list_sum':>13}{'peak MiB':>10}{'six tokens':>12}")
    figures: dict[str, Figure] = {}
    for name in MEASURES:
        if name == "items" and options.tokenizer is None:
            continue
        one = figures[name] = _figure(name, options, rows, figures["bare"].seconds if figures else None)
        times, peak = one.times_list_sum, one.peak_mib
        print(f"{one.what:<46}{one.seconds:>9.2f}{times:>13.2f}{peak:>10,.0f}{one.six_tokens:>12.1%}", flush=True)
    limits = _limits(figures)
    for words, met in limits.items():
        print(f"{'met' if met else 'MISSED':<8}{words}")
    if options.write:
        _write(rows, tokens, list(figures.values()), limits)
    return 0 if all(limits.values()) else 1


def _limits(figures: dict[str, Figure]) -> dict[str, bool]:
    """What was promised, and whether it holds."""
    core, wholes = figures["core"], [figures[name] for name in ("whole", "items") if name in figures]
    slowest, peak = max(one.times_list_sum for one in wholes), max(one.peak_mib for one in wholes)
    return {
        f"core {core.times_list_sum:.2f} times list_sum, at most {MOST_CORE}": core.times_list_sum <= MOST_CORE,
        f"whole {slowest:.2f} times list_sum, under {MOST_WHOLE:.0f}": slowest < MOST_WHOLE,
        f"peak {peak:,.0f} MiB, under {MOST_MIB:,.0f}": peak < MOST_MIB,
    }


def _figure(name: str, options: argparse.Namespace, rows: int, base: float | None) -> Figure:
    """The best of several goes, since what else the machine does can only add to one."""
    seconds, share, peak = min(_measured(name, options) for _ in range(options.times))
    what, measured = (MEASURES[name].__doc__ or "").partition("\n")[0].rstrip("."), rows
    if name == "loop" and rows > options.loop:
        seconds, measured = seconds * rows / options.loop, options.loop
        what = f"A `datasets` loop, extrapolated from {options.loop:,}"
    return Figure(what, seconds, seconds / (base or seconds), peak / 1024, share, measured)


def _measured(name: str, options: argparse.Namespace) -> tuple[float, float, float]:
    """Seconds, share of rows with six supervised tokens, and peak memory in KiB of a process of its own."""
    command = [sys.executable, __file__, "--only", name, "--keep", str(options.keep), "--loop", str(options.loop)]
    command += ["--tokenizer", options.tokenizer] if options.tokenizer else []
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds, share, peak = map(float, said.split())
    return seconds, share, peak


def _write(rows: int, tokens: int, figures: list[Figure], limits: dict[str, bool]) -> None:
    cores, day = len(os.sched_getaffinity(0)), time.strftime("%Y-%m-%d", time.gmtime())
    said: dict[str, Any] = {
        "rows": rows,
        "tokens": tokens,
        "cores": cores,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "measured_at": day,
        "figures": [asdict(one) for one in figures],
        "limits": limits,
    }
    path = RESULTS / f"census-{cores}cores-{day}.json"
    path.write_text(json.dumps(said, indent=1) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    sys.exit(main())
