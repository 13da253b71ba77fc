"""What is left when the flow ends, and how soon: after success, SIGTERM, SIGINT and kill -9 of the flow alone."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import clients
import work

from reflash.engines.layout.gpus import NvmlCards

MARK = "REFLASH_BENCHMARK"
START_S, LEAVE_S = 400.0, 60.0


async def stops(options: Namespace) -> dict[str, Any]:
    """Each case in one run's folder, one after the other: the last may finish what the others left."""
    rows = options.out / "rows.jsonl"
    work.write_rows(options, rows, options.rows, options.tokens_in)
    run = options.out / "run"
    config = work.write_config(
        options,
        run,
        rows,
        work.engine(options),
        sampling={"max_new_tokens": 4096},
        plan={"shard_rows": options.rows},
        audit={"refuse": "never", "kernels": False},  # the engine's environment may be put together by hand
    )
    command = clients.flow_command(options.lengths, config)
    result: dict[str, Any] = {"command": command, "before": _seen("", options.out / "ps-before.txt"), "cases": {}}
    for case in options.cases.split(","):
        result["cases"][case] = found = _case(options, command, run, case)
        print(case, found, flush=True)
    return result


def _case(options: Namespace, command: list[str], run: Path, case: str) -> dict[str, Any]:
    mark = secrets.token_hex(8)
    env = {**os.environ, MARK: mark, "COLUMNS": "160"}
    before = _parts(run)
    with (options.out / f"{case}.log").open("w") as log:
        began = time.monotonic()
        flow = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        while flow.poll() is None and time.monotonic() < began + START_S and _parts(run) <= before:
            time.sleep(0.1)
        started = time.monotonic() - began
        running = _seen(mark, options.out / f"ps-{case}-running.txt")
        if case != "success":
            time.sleep(1.0)
            flow.send_signal(getattr(signal, case))
        sent = time.monotonic()
        code = _wait(flow, LEAVE_S if case != "success" else START_S)
        exited = time.monotonic() - sent
        while _marked(mark) and time.monotonic() < sent + exited + LEAVE_S:
            time.sleep(0.1)
    return {
        "first_answers_s": round(started, 1),
        "running": running,
        "exit_code": code,
        "exited_s": round(exited, 1),
        "nothing_left_s": round(time.monotonic() - sent, 1),
        "after": _seen(mark, options.out / f"ps-{case}-after.txt"),
        "left": [_words(pid) for pid in _marked(mark)],
    }


def _wait(flow: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return flow.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _parts(run: Path) -> set[Path]:
    return {*(run / "segments").rglob("*.parquet"), *(run / "parts").glob("*.parquet")}


def _seen(mark: str, listing: Path) -> dict[str, Any]:
    """Processes of ours and the memory of each GPU in use, in MiB; `ps` of everything into a file."""
    ps = subprocess.run(["ps", "-eo", "pid,ppid,sid,stat,rss,args"], capture_output=True, text=True, check=False)
    listing.write_text(ps.stdout)
    return {
        "processes": len(_marked(mark)) if mark else 0,
        "gpu_mib": [gpu.used // 2**20 for gpu in NvmlCards().gpus()],
    }


def _marked(mark: str) -> list[int]:
    """Processes that inherited the mark, in whatever session, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return ""
