"""How near the client comes to what the engine could do, beside the floors of the same run.

usage: uv run python benchmarks/client.py [--bench FOLDER] [--only main,quick,memory,faults]

Needs the scripted engine and the floors (mock_engine.py, gen.py, raw_aiohttp.py, raw_proto.py) in FOLDER, by default
`../shared/bench`. Loads only loopback; every loop is bounded by its rows.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from scripted import HERE, mock_engine, mortal_engine, shared_bench


def main() -> None:
    """Print one table a question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=shared_bench())
    parser.add_argument("--only", default="main,quick,memory,faults")
    arguments = parser.parse_args()
    if not (arguments.bench / "mock_engine.py").exists():
        sys.exit(f"skipped: no mock_engine.py in {arguments.bench}; name its folder with --bench")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(arguments.bench, Path(scratch))
        for name in arguments.only.split(","):
            getattr(bench, name)()


class Bench:
    """The questions, each a method."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch
        spec = importlib.util.spec_from_file_location("mock_engine", folder / "mock_engine.py")
        assert spec
        assert spec.loader
        self.mock = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.mock)
        subprocess.run([sys.executable, folder / "gen.py", scratch], check=True)

    def main(self) -> None:
        """2,000 rows of a heavy tail at 64 slots: how much of the first-in-first-out bound."""
        print("\n2,000 rows, 64 slots, 1,400 tok/s each, heavy tail")
        print(f"{'client':<14}{'in flight':>10}{'wall s':>9}{'of bound':>10}{'CPU s/1,000 rows':>18}{'slots busy':>12}")
        flags = ["--slots", "64", "--rate", "1400", "--max-len", "8192"]
        rows = self.scratch / "main" / "messages.jsonl"
        for width in (64, 128):
            for name, run in (
                ("raw protocol", self._raw_proto),
                ("raw aiohttp", self._raw_aiohttp),
                ("reflash", self._reflash),
            ):
                if name == "raw protocol" and width != 64:
                    continue
                with mock_engine(self.folder, flags) as url:
                    result, prompts = run(rows, url, width)
                    stats = json.load(urllib.request.urlopen(f"{url}/stats"))
                bound = self._bound(prompts, 64, 1400.0)
                wall, cpu = stats["window_s"], result["cpu_s"] / 2
                busy = stats["occupancy_to_last_start"]
                print(f"{name:<14}{width:>10}{wall:>9.2f}{bound / wall:>10.4f}{cpu:>18.2f}{busy:>12.4f}")

    def quick(self) -> None:
        """10,000 short rows that the engine answers at once: what the client itself costs."""
        print("\n10,000 short rows, engine answers at once, 64 in flight")
        print(f"{'client':<14}{'rows/s':>10}{'CPU s/1,000 rows':>18}")
        flags = ["--slots", "64", "--rate", "0", "--fixed-tokens", "16"]
        rows = self.scratch / "quick" / "messages.jsonl"
        for name, run in (
            ("raw protocol", self._raw_proto),
            ("raw aiohttp", self._raw_aiohttp),
            ("reflash", self._reflash),
        ):
            with mock_engine(self.folder, flags) as url:
                result, _ = run(rows, url, 64)
                stats = json.load(urllib.request.urlopen(f"{url}/stats"))
            seconds = result.get("seconds") or stats["window_s"]
            print(f"{name:<14}{10_000 / seconds:>10,.0f}{result['cpu_s'] / 10:>18.2f}")

    def memory(self) -> None:
        """Peak memory of 10,000 and of 100,000 rows of 2 KB."""
        print("\nrows of 2 KB, engine answers at once: memory of the whole stage, plan included")
        print(f"{'rows':>8}{'peak MiB':>10}{'plan s':>8}{'rows/s':>8}")
        big = self.scratch / "big" / "messages.jsonl"
        flags = ["--slots", "64", "--rate", "0", "--fixed-tokens", "16"]
        for count in (10_000, 100_000):
            rows = self.scratch / f"big-{count}.jsonl"
            with big.open("rb") as source, rows.open("wb") as target:
                target.writelines(line for _, line in zip(range(count), source, strict=False))
            with mock_engine(self.folder, flags) as url:
                result, _ = self._reflash(rows, url, 64)
            print(f"{count:>8,}{result['peak_mib']:>10,}{result['plan_s']:>8.1f}{count / result['seconds']:>8,.0f}")

    def faults(self) -> None:
        """The rows of `main` with an engine that errs, one that dies and comes back, and one of two that dies."""
        print("\n2,000 rows, 64 in flight, heavy tail, engines that fail")
        print(f"{'case':<54}{'wall s':>8}{'rows':>8}{'good':>8}")
        flags = ["--slots", "64", "--rate", "1400", "--max-len", "8192"]
        errs = ["--p500", "0.02", "--pdrop", "0.01", "--phang", "0.005", "--hang-s", "120"]
        rows = self.scratch / "main" / "messages.jsonl"
        with mock_engine(self.folder, flags) as url:
            self._told("none", *self._reflash(rows, url, 64))
        with mock_engine(self.folder, [*flags, *errs]) as url:
            self._told("2 % errors, 1 % drops, 0.5 % hangs of 120 s", *self._reflash(rows, url, 64))
        with mortal_engine(self.folder, [*flags, "--die-after", "800"], back_after_s=10, then=flags) as url:
            self._told("dies at row 800, back after 10 s", *self._reflash(rows, url, 64))
        with (
            mock_engine(self.folder, flags) as one,
            mock_engine(self.folder, [*flags, "--die-after", "300"]) as other,
        ):
            self._told("two engines, one dies at row 300 for good", *self._reflash(rows, f"{one},{other}", 64))

    def _told(self, case: str, result: dict[str, Any], _prompts: list[str]) -> None:
        print(f"{case:<54}{result['seconds']:>8.2f}{result['rows']:>8,}{result['answered']:>8,}")

    def _raw_aiohttp(self, rows: Path, url: str, width: int) -> tuple[dict[str, Any], list[str]]:
        return self._floor("raw_aiohttp.py", rows, url, width)

    def _raw_proto(self, rows: Path, url: str, width: int) -> tuple[dict[str, Any], list[str]]:
        return self._floor("raw_proto.py", rows, url, width)

    def _floor(self, script: str, rows: Path, url: str, width: int) -> tuple[dict[str, Any], list[str]]:
        out = self.scratch / f"floor-{time.monotonic_ns()}.jsonl"
        port = url.rsplit(":", 1)[1]
        command = [sys.executable, self.folder / script, "--input", rows, "--output", out]
        cpu = _children_cpu()
        subprocess.run([*command, "--port", port, "--concurrency", str(width)], check=True, stdout=subprocess.DEVNULL)
        prompts = [json.loads(line)["messages"][0]["content"] for line in rows.open()]
        return {"cpu_s": _children_cpu() - cpu}, prompts

    def _reflash(self, rows: Path, url: str, width: int) -> tuple[dict[str, Any], list[str]]:
        run = self.scratch / f"run-{time.monotonic_ns()}"
        command = [sys.executable, HERE / "stage.py", run, rows, url, str(width)]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        return result, _prompts(run)

    def _bound(self, prompts: list[str], slots: int, rate: float) -> float:
        """Seconds of the best first-in-first-out order, lengths unknown: each slot takes the next row as it frees."""
        free = [0.0] * slots
        for prompt in prompts:
            length = self.mock.draw_length(self.mock.digest(prompt), 400, 8000)
            heapq.heappush(free, heapq.heappop(free) + min(length, 8192) / rate)
        return max(free)


def _prompts(run: Path) -> list[str]:
    """What the engine hashed: the list of ids as Python prints it, in the order in which it was asked."""
    import pyarrow.parquet as pq

    files = sorted((run / "plan").glob("*.parquet"))
    return [str(ids) for file in files for ids in pq.read_table(file, columns=["prompt_ids"])["prompt_ids"].to_pylist()]


def _children_cpu() -> float:
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
