"""What looking costs: a census of a set as large as the first user's.

usage: uv run python benchmarks/census.py [--rows 913786] [--keep FILE.parquet]

Builds the rows (198 M tokens for 913,786; 87 % of them an empty thought and `OK.`; Parquet, zstd, int32 and int8), then
times, each in a process of its own: DuckDB's bare `list_sum` of the masks, the census' core (sums and histogram), the
whole census with its peak memory, and a loop over rows of `datasets`, from as many rows as `--loop` extrapolated.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, EMPTY_SHARE = 913_786, 0.87
PROMPT_MEAN, ANSWER_MEAN = 110.0, 770.0  # tokens; with the share of empty ones about 217 a row
OPEN, END, FEED, THOUGHT = 151644, 151645, 198, 151668  # of Qwen3
EMPTY = np.array([THOUGHT, 271, 3925, 13, END, FEED], np.int32)
AT_ONCE = 10_000  # rows of a group

Work = Callable[[Path, int], float]  # the set, rows of the loop; gives the share of rows with six supervised tokens


def main() -> None:
    """Build and measure, or do one measurement (`--only`) in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--loop", type=int, default=50_000, help="rows of the `datasets` loop")
    parser.add_argument("--keep", type=Path, help="where to keep the set; one that is there is taken as it is")
    parser.add_argument("--only", choices=MEASURES, help="internal: one measurement of the set kept")
    options = parser.parse_args()
    if options.only:
        work = MEASURES[options.only]()
        began = time.perf_counter()
        share = work(options.keep, options.loop)
        print(f"{time.perf_counter() - began:.3f} {share:.6f} {_peak_kib()}")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder, "set.parquet")
        if not path.exists():
            build(path, options.rows)
        _compare(path, options.loop)


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
    """DuckDB's sums of the masks, and how many are six."""
    import duckdb

    def work(path: Path, _: int) -> float:
        query = "SELECT count(*) FILTER (list_sum(loss_mask) = 6) / count(*) FROM read_parquet(?)"
        found = duckdb.execute(query, [str(path)]).fetchone()
        return float(found[0]) if found else 0.0

    return work


def core() -> Work:
    """The census' sums and histogram, from its own reader and of the masks alone."""
    import pandas  # noqa: F401  pyarrow imports it at the first array it makes: no import is timed

    from reflash.census.run import histogram
    from reflash.sources.columns import ParquetPart
    from reflash.tokenized.lists import flat_lists

    def work(path: Path, _: int) -> float:
        pieces = []
        for batch in ParquetPart(str(path), path).batches(("loss_mask",)):
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
    from reflash.config.source import SourceConfig

    def work(path: Path, _: int) -> float:
        report = take_census(SourceConfig(path=str(path))).report
        return report.at_or_under / report.rows

    return work


def loop() -> Work:
    """A loop over the first rows as `datasets` gives them, as it is mostly done."""
    from datasets import load_dataset

    def work(path: Path, rows: int) -> float:
        seen: Counter[int] = Counter()
        for row in load_dataset("parquet", data_files=str(path), split="train", streaming=True).take(rows):
            seen[sum(row["loss_mask"])] += 1
        return seen[6] / seen.total()

    return work


MEASURES = {"bare": bare, "core": core, "whole": whole, "loop": loop}


def _peak_kib() -> int:
    """The most memory that this process held; the kernel's other figure, ru_maxrss, counts its parent's too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _compare(path: Path, looped: int) -> None:
    metadata = pq.ParquetFile(path).metadata
    rows = metadata.num_rows
    tokens = sum(metadata.row_group(n).column(0).num_values for n in range(metadata.num_row_groups))
    print(f"{rows:,} rows, {tokens:,} tokens, {path.stat().st_size / 2**20:,.0f} MiB of Parquet")
    print(f"{'what':<42}{'seconds':>9}{'of list_sum':>13}{'peak MiB':>10}{'six tokens':>12}")
    base = 0.0
    for name in MEASURES:
        seconds, share, peak = _measured(path, name, looped)
        base = base or seconds
        said = (MEASURES[name].__doc__ or "").split(",")[0].rstrip(".")
        if name == "loop" and rows > looped:
            seconds *= rows / looped
            said = f"a `datasets` loop extrapolated from {looped:,}"
        print(f"{said:<42}{seconds:>9.2f}{seconds / base:>13.2f}{peak / 1024:>10,.0f}{share:>12.1%}")


def _measured(path: Path, name: str, looped: int) -> tuple[float, float, float]:
    """Seconds, share of rows with six supervised tokens, and peak memory in KiB of a process of its own."""
    command = [sys.executable, __file__, "--only", name, "--keep", str(path), "--loop", str(looped)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds, share, peak = map(float, said.split())
    return seconds, share, peak


if __name__ == "__main__":
    main()
