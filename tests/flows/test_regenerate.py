"""The whole flow on a real Prefect server: what a run leaves behind, in its folder and in the UI."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reflash.config.run import RunConfig
from reflash.errors import ManifestChanged, RunIncomplete, SourceError
from tests.flows.made import MODEL
from tests.making import config, conversations_file

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.usefixtures("prefect_server"),
    # Prefect and the libraries under it warn of their own affairs.
    pytest.mark.filterwarnings("ignore"),
]


def settings(tmp_path: Path, count: int = 25, **changes: Any) -> RunConfig:
    source = {"path": str(conversations_file(tmp_path / "rows.jsonl", count))}
    return config(tmp_path / "run", source=source, model=MODEL, plan={"shard_rows": 10, "workers": 1}, **changes)


def test_every_row_ends_in_the_dataset_or_among_the_rejects(tmp_path: Path) -> None:
    from flows.regenerate import regenerate

    report = regenerate(settings(tmp_path))
    assert report.complete
    assert report.total.turns == 25
    assert sum(report.total.verdicts.values()) == 25
    saved = json.loads((tmp_path / "run" / "report.json").read_text())
    assert saved["complete"]
    assert "# " in (tmp_path / "run" / "report.md").read_text()


def test_the_dataset_loads_and_its_masks_cover_exactly_the_emitted_ids(tmp_path: Path) -> None:
    import datasets

    from flows.regenerate import regenerate
    from reflash.ledger.ledger import open_ledger

    run = settings(tmp_path)
    regenerate(run)
    loaded = datasets.load_dataset(str(tmp_path / "run" / "dataset"), split="train", cache_dir=str(tmp_path / "cache"))
    emitted = {
        t.conversation: (t.prompt_ids, t.output_ids) for n in range(3) for t in open_ledger(run.run).part(f"{n:05}")
    }
    assert len(loaded) > 0
    for row in loaded:
        prompt, output = emitted[row["conversation"]]
        assert tuple(row["input_ids"]) == prompt + output
        assert row["loss_mask"] == [0] * len(prompt) + [1] * len(output)


def test_a_second_run_of_the_same_folder_changes_nothing(tmp_path: Path) -> None:
    from flows.regenerate import regenerate

    run = settings(tmp_path)
    first = regenerate(run)
    before = {f: f.read_bytes() for f in (tmp_path / "run" / "parts").glob("*")}
    again = regenerate(run)
    assert again.complete
    assert again.attempt == first.attempt  # the figures of what was generated stay
    assert {f: f.read_bytes() for f in (tmp_path / "run" / "parts").glob("*")} == before


def test_another_seed_is_refused_and_named(tmp_path: Path) -> None:
    from flows.regenerate import regenerate

    regenerate(settings(tmp_path, count=3))
    with pytest.raises(ManifestChanged, match=r"sampling\.seed: 0 -> 5"):
        regenerate(settings(tmp_path, count=3, sampling={"seed": 5}))


def test_a_run_whose_engine_is_gone_fails_and_says_what_is_missing(tmp_path: Path) -> None:
    from flows.regenerate import regenerate

    patience = {"attempts": 1, "backoff_s": 0.01, "connect_s": 1, "absent_s": 1}
    engine = {"kind": "endpoint", "urls": ["http://127.0.0.1:9"], "dialect": "vllm", "model": "m", "patience": patience}
    run = settings(tmp_path, engine=engine, generate={"retries": 0})
    with pytest.raises(
        RunIncomplete, match=r"3 of 3 shards.*rows\.jsonl row 1\).*What stopped it: http://127\.0\.0\.1:9"
    ):
        regenerate(run)
    assert not json.loads((tmp_path / "run" / "report.json").read_text())["complete"]


def test_a_wrong_part_that_only_its_verdicts_show_is_named_with_the_remedy(tmp_path: Path) -> None:
    from flows.regenerate import regenerate

    run = settings(tmp_path)
    regenerate(run)
    part = tmp_path / "run" / "parts" / "00001.parquet"
    table = pq.read_table(part)
    others = pa.array(["zzz", *table["conversation"].to_pylist()[1:]])
    told = {b"run": table.schema.metadata[b"run"]}  # all that the first versions wrote
    pq.write_table(table.set_column(0, "conversation", others).replace_schema_metadata(told), part)
    with pytest.raises(RunIncomplete, match=r"What stopped it: .*parts/00001\.parquet: conversation .*delete it and"):
        regenerate(run)
    part.unlink()
    assert regenerate(run).complete


def test_a_source_without_rows_fails_by_name(tmp_path: Path) -> None:
    from flows.regenerate import regenerate

    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    with pytest.raises(SourceError, match=r"empty\.jsonl"):
        regenerate(config(tmp_path / "run", source={"path": str(empty)}, model=MODEL))


def test_the_ui_gets_tables_progress_and_a_report_with_charts(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    from flows.regenerate import regenerate

    state = regenerate(settings(tmp_path), return_state=True)

    async def artifacts() -> list[Any]:
        async with get_client() as client:
            found = await client.read_artifacts(limit=200)
            return [a for a in found if a.flow_run_id == state.state_details.flow_run_id]

    found = asyncio.run(artifacts())
    keys = {a.key: a for a in found}
    assert {"plan", "shards", "verdicts", "report"} <= set(keys)
    assert {"table", "markdown", "progress"} <= {a.type for a in found}
    assert "data:image/" in keys["report"].data
    assert len(keys["report"].data) < 1_000_000
    progress = next(a for a in found if a.type == "progress")
    assert progress.data == 100


def test_while_a_run_goes_its_page_stands_where_the_report_will_and_its_shards_in_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect import runtime
    from prefect.client.orchestration import get_client

    from flows import watch
    from flows.regenerate import regenerate

    for name, seconds in {"TICK_S": 0.2, "TABLE_S": 0.5, "PAGE_S": 1.0}.items():
        monkeypatch.setattr(watch, name, seconds)
    seen: dict[str, set[str]] = {}

    def look(_: object) -> None:
        with get_client(sync_client=True) as client:
            for found in client.read_artifacts(limit=200):
                if found.key and str(found.flow_run_id) == runtime.flow_run.id:
                    seen.setdefault(found.key, set()).add(str(found.data))

    watch.listeners.append(look)
    try:
        run = settings(tmp_path, 24, engine={"kind": "scripted", "script": "slow", "width": 2})
        state = regenerate(run, return_state=True)
    finally:
        watch.listeners.remove(look)
    assert state.is_completed()
    assert "generating" in "".join(seen["shards"])
    assert len(seen["report"]) > 1
    assert all("Under way" in text for text in seen["report"])
    with get_client(sync_client=True) as client:
        found = [a for a in client.read_artifacts(limit=200) if a.flow_run_id == state.state_details.flow_run_id]
    [report] = [str(a.data) for a in found if a.key == "report"]
    [shards] = [str(a.data) for a in found if a.key == "shards"]
    assert "Under way" not in report
    assert "generating" not in shards


def test_the_run_is_named_by_its_folder_its_model_and_its_rows(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    from flows.regenerate import regenerate

    state = regenerate(settings(tmp_path, 3), return_state=True)
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(state.state_details.flow_run_id).name == "run · smol · 3 rows"
