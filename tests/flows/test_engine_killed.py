"""The whole flow over a real vLLM that is killed in the middle of it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reflash.engines.linux import descendants
from tests.engines.real_vllm import vllm_on_cpu
from tests.making import config, conversations_file
from tests.small_qwen3 import END, END_OF_THOUGHT, small_qwen3

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("prefect_server"),
    pytest.mark.filterwarnings("ignore"),
]

ROWS = 120


def computing() -> list[int]:
    """The processes below this one that compute for vLLM."""
    found = []
    for process in descendants(os.getpid()):
        try:
            if b"EngineCore" in Path(f"/proc/{process.pid}/cmdline").read_bytes():
                found.append(process.pid)
        except OSError:
            continue
    return found


def kill_when_half_way(run: Path, killed: list[int]) -> None:
    end = time.monotonic() + 400
    while time.monotonic() < end:
        done = sum(pq.read_metadata(f).num_rows for f in list((run / "segments").rglob("*.parquet")))
        if done >= ROWS // 4:
            killed += computing()
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.1)


def test_an_engine_killed_in_the_middle_is_launched_again_and_no_row_is_lost(tmp_path: Path) -> None:
    from flows.regenerate import regenerate

    engine = vllm_on_cpu(tmp_path, width=8)
    run = config(
        tmp_path / "run",
        source={"path": str(conversations_file(tmp_path / "rows.jsonl", ROWS))},
        model={"name": "Qwen/Qwen3-small", "tokenizer": str(small_qwen3(tmp_path)), "context": 1024},
        engine=engine.model_dump(),
        thinking={"mode": "on"},
        sampling={"max_new_tokens": 512},
        plan={"shard_rows": 60, "workers": 1},
        generate={"flush_s": 0.2},
    )
    killed: list[int] = []
    killer = threading.Thread(target=kill_when_half_way, args=(tmp_path / "run", killed))
    killer.start()
    report = regenerate(run)
    killer.join()
    assert killed
    assert report.complete
    assert report.total.turns == ROWS
    assert report.total.verdicts.get("good", 0) >= 0.9 * ROWS
    files = sorted((tmp_path / "run" / "dataset" / "data").glob("*.parquet"))
    rows = [row for f in files for row in pq.read_table(f).to_pylist()]
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(END_OF_THOUGHT in row["input_ids"] and row["input_ids"][-1] == END for row in rows)
    assert computing() == []
