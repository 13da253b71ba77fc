"""Two nodes that ignore every fence work on the same shard: one part comes of it, each conversation whole from one."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from reflash.engines.scripted import completion, echo
from reflash.ledger.ledger import open_ledger
from reflash.plan.plan import plan_run
from reflash.pool import WorkerPool
from reflash.store.objects import Store
from reflash.types import Completion, Prompt
from tests.generate.test_fleet import SMOLLM2
from tests.generate.test_nodes import NoFence, nodes, started
from tests.making import config
from tests.store.s3 import environment, s3_server

ROWS, TURNS = 60, 3


class Own:
    """Answers that name their node, at its own pace."""

    def __init__(self, node: int, seconds: float) -> None:
        self.first, self._seconds = 1000 + node, seconds
        self.answered: Counter[tuple[str, int]] = Counter()

    async def __call__(self, prompt: Prompt) -> Completion:
        await asyncio.sleep(self._seconds)
        if prompt.conversation != "canary":
            self.answered[prompt.conversation, prompt.turn] += 1
        return completion(prompt, [self.first, *echo(prompt).tokens])


def talks(path: Path) -> Path:
    talk = [{"role": role, "content": f"{role} {n}"} for n in range(TURNS) for role in ("user", "assistant")]
    rows = [{"id": f"row-{n:04}", "messages": talk} for n in range(ROWS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("where", ["disk", pytest.param("s3", marks=pytest.mark.slow)])
@pytest.mark.parametrize("pace", [0.01, 0.013])
def test_of_two_writers_each_conversation_is_one_writers_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, pace: float
) -> None:
    written: dict[str, set[bytes]] = defaultdict(set)
    put_new = Store.put_new

    def noted(self: Store, name: str, data: bytes, **more: Any) -> None:
        put_new(self, name, data, **more)
        written[name].add(data)  # a store may answer both writers of the same bytes that theirs lie there

    monkeypatch.setattr(Store, "put_new", noted)
    monkeypatch.setattr("reflash.generate.fleet.Claims", NoFence)
    if where == "disk":
        both_write(tmp_path, str(tmp_path / "run"), monkeypatch, pace)
    else:
        with s3_server() as url:
            for name, value in environment(url).items():
                monkeypatch.setenv(name, value)
            both_write(tmp_path, f"s3://bucket/{token_hex(4)}", monkeypatch, pace)
    assert {name: len(data) for name, data in written.items() if name.startswith("parts/")} == {
        "parts/00000.parquet": 1
    }


def both_write(folder: Path, run: str, monkeypatch: pytest.MonkeyPatch, pace: float) -> None:
    settings = config(
        run,
        source={"path": str(talks(folder / "rows.jsonl"))},
        model={"name": "smol", "tokenizer": SMOLLM2, "renderer": "template", "context": 2048},
        plan={"shard_rows": ROWS, "workers": 1},
        generate={"flush_s": 0.05, "heartbeat_s": 0.2, "expiry_s": 1.0},
    )
    shards = plan_run(settings, open_ledger(run, create=True), WorkerPool())
    scripts = {"a": Own(0, 0.01), "b": Own(1, pace)}
    with nodes((settings, shards), monkeypatch, scripts) as fleets, ThreadPoolExecutor(2) as threads:
        for done in started(threads, fleets).values():
            done.result(timeout=90)
    ledger = open_ledger(run)
    [shard] = shards
    turns = ledger.part(shard.name)
    writers: dict[str, list[int]] = defaultdict(list)
    for turn in turns:
        writers[turn.conversation].append(turn.output_ids[0])
    assert Counter((t.conversation, t.turn) for t in turns) == {
        (f"row-{n:04}", k): 1 for n in range(ROWS) for k in range(TURNS)
    }
    assert {conversation: len(set(first)) for conversation, first in writers.items()} == dict.fromkeys(writers, 1)
    both = scripts["a"].answered.keys() & scripts["b"].answered.keys()
    assert len(both) > ROWS, "they were not forced on the same rows"
    assert [f.name for f in ledger.store.under("parts")] == [f"parts/{shard.name}.parquet"]
