"""A run's folder: nothing half-written, nothing twice, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from reflash.errors import ConfigError, ManifestChanged, RunIncomplete, StoreError
from reflash.ledger import names
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.ledger.manifest import FORMAT, Manifest
from reflash.ledger.schema import planned_rows, planned_table, turn_rows, turn_table
from reflash.store.objects import Store
from reflash.types import Conversation, Judgement, Message, Planned, Shard, ToolCall
from tests.making import begun, manifest, planned, rows, talk, turn


@pytest.fixture
def empty(tmp_path: Path) -> Ledger:
    return open_ledger(str(tmp_path / "run"), create=True)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return begun(tmp_path / "run")


def turns_of(plan: list[Planned]) -> dict[str, int]:
    return {p.conversation.id: len(p.conversation.turns()) for p in plan}


def test_a_changed_manifest_is_refused_and_names_each_setting(empty: Ledger) -> None:
    empty.start(manifest(model={"name": "a"}, sampling={"seed": 0, "top_p": 1.0}))
    with pytest.raises(ManifestChanged) as refusal:
        empty.start(manifest(model={"name": "b"}, sampling={"seed": 1, "top_p": 1.0}))
    assert "model.name: a -> b" in str(refusal.value)
    assert "sampling.seed: 0 -> 1" in str(refusal.value)
    assert "top_p" not in str(refusal.value)


def test_the_run_keeps_its_first_id_and_what_was_recorded_first(empty: Ledger) -> None:
    first = manifest("first")
    empty.start(first)
    empty.start(Manifest("second", first.decides, first.recorded | {"reflash": "2"}))
    assert (empty.manifest().id, empty.manifest().recorded) == ("first", first.recorded)


def test_a_manifest_of_a_later_format_asks_for_an_upgrade(empty: Ledger) -> None:
    empty.store.put("manifest.json", b'{"format": %d, "id": "x", "decides": {}, "recorded": {}}' % (FORMAT + 1))
    with pytest.raises(StoreError, match="upgrade reflash"):
        empty.manifest()


def test_a_folder_without_manifest_is_no_run(empty: Ledger) -> None:
    with pytest.raises(ConfigError, match="not a run's folder"):
        empty.manifest()


def written_files(ledger: Ledger) -> None:
    """One file of each kind that a run writes."""
    ledger.write_shard("00000", rows(1))
    ledger.finish_plan([Shard("00000", 1, 1)], {"rows": 1})
    ledger.write_segment("00000", "w1", 0, [turn("a")])
    ledger.write_segment("00001", "w1", 0, [turn("b")])
    ledger.commit("00001", {"b": 1})
    ledger.write_verdicts("00001", [Judgement("b", 0, "good")], rules="{}")
    ledger.write_dataset("00001", pa.table({"id": ["b"]}))
    ledger.write_turn_rejects("00001", pa.table({"id": ["c"]}))


@pytest.mark.parametrize("folder", names.WRITTEN)
def test_files_without_a_manifest_are_never_gone_on_with(ledger: Ledger, folder: str) -> None:
    written_files(ledger)
    kept = ledger.store.under(folder)
    assert kept
    ledger.store.delete(
        [
            f.name
            for name in ("manifest.json", *names.WRITTEN)
            for f in ledger.store.under(name)
            if not f.name.startswith(folder)
        ]
        + ["manifest.json"]
    )
    with pytest.raises(ConfigError, match=folder):
        open_ledger(ledger.where).start(manifest())
    assert ledger.store.under(folder) == kept


READS: list[tuple[str, Callable[[Ledger], object]]] = [
    ("plan/index.json", lambda ledger: ledger.shards()),
    ("plan/00000.parquet", lambda ledger: ledger.planned("00000")),
    ("parts/00001.parquet", lambda ledger: ledger.part("00001")),
    ("dataset/data/train-00001.parquet", lambda ledger: ledger.good_rows("00001")),
    ("rejects/turns-00001.parquet", lambda ledger: ledger.rejected_rows("00001")),
]


@pytest.mark.parametrize(("name", "read"), READS)
def test_a_file_of_another_run_is_refused_by_name(tmp_path: Path, name: str, read: Callable[[Ledger], object]) -> None:
    ours, theirs = begun(tmp_path / "ours", "run-1"), begun(tmp_path / "theirs", "run-2")
    for ledger in (ours, theirs):
        written_files(ledger)
        read(ledger)
    data = theirs.store.get(name)
    assert data is not None
    ours.store.put(name, data)
    with pytest.raises(StoreError, match=f"{name} is of another run"):
        read(ours)


def test_segments_and_verdicts_of_another_run_count_as_absent(tmp_path: Path) -> None:
    ours, theirs = begun(tmp_path / "ours", "run-1"), begun(tmp_path / "theirs", "run-2")
    written_files(theirs)
    for found in [*theirs.store.under("segments"), *theirs.store.under("verdicts")]:
        data = theirs.store.get(found.name)
        assert data is not None
        ours.store.put(found.name, data)
    assert ours.finished_conversations("00000") == set()
    assert ours.verdicts("00001") is None


def test_turns_come_back_from_parquet_as_they_went() -> None:
    made = [
        turn("a", engine_text=None, reasoning="why", tool_calls=(ToolCall("c1", "look", '{"q": 1}'),), seed=2**31 - 1),
        turn("b", output_ids=(), finish_reason="error", error="refused", exact=False, thinking="open"),
    ]
    assert turn_rows(turn_table(made)) == made


def test_conversations_come_back_from_parquet_as_they_went() -> None:
    calls = (ToolCall("c1", "look", "{}"),)
    messages = (
        Message("system", "be brief"),
        Message("user", "ein Käfer 🪲"),
        Message("assistant", "", "thought", calls),
        Message("tool", "r", tool_call_id="c1", name="look"),
        Message("assistant", ""),
    )
    made = [planned(Conversation("x", messages, '[{"type": "function"}]', '{"k": 1}')), planned(talk("y", "q"))]
    assert planned_rows(planned_table(made)) == made


def test_a_part_holds_each_conversation_once_in_the_plans_order(ledger: Ledger) -> None:
    plan = rows(3)
    ids = [p.conversation.id for p in plan]
    ledger.write_segment("00000", "w1", 0, [turn(ids[2]), turn(ids[0])])
    ledger.write_segment("00000", "w2", 0, [turn(ids[0], seed=9), turn(ids[1])])
    assert ledger.commit("00000", turns_of(plan))
    assert [t.conversation for t in ledger.part("00000")] == ids
    assert ledger.store.under("segments") == []


def test_a_second_commit_changes_nothing(ledger: Ledger) -> None:
    plan = rows(1)
    name = plan[0].conversation.id
    ledger.write_segment("00000", "w1", 0, [turn(name, seed=1)])
    assert ledger.commit("00000", turns_of(plan))
    ledger.write_segment("00000", "w2", 0, [turn(name, seed=2)])
    assert not ledger.commit("00000", turns_of(plan))
    assert [t.seed for t in ledger.part("00000")] == [1]


def test_a_second_writer_whose_segments_the_first_took_away_loses_nothing(ledger: Ledger) -> None:
    plan = rows(2)
    names = [p.conversation.id for p in plan]
    ledger.write_segment("00000", "slow", 0, [turn(names[0], seed=2)])
    ledger.write_segment("00000", "quick", 0, [turn(n, seed=1) for n in names])
    assert ledger.commit("00000", turns_of(plan))
    ledger.write_segment("00000", "slow", 1, [turn(names[1], seed=2)])
    assert not ledger.commit("00000", turns_of(plan))
    assert [t.conversation for t in ledger.part("00000")] == names
    assert ledger.store.under("segments") == []


def test_a_shard_with_a_missing_conversation_is_not_committed(ledger: Ledger) -> None:
    plan = rows(2)
    ledger.write_segment("00000", "w1", 0, [turn(plan[0].conversation.id)])
    with pytest.raises(RunIncomplete, match="1 of 2 conversations"):
        ledger.commit("00000", turns_of(plan))
    assert not ledger.is_committed("00000")
    assert len(ledger.finished("00000")) == 1


def test_a_conversation_with_a_missing_turn_is_not_committed(ledger: Ledger) -> None:
    plan = [planned(talk("two", "first", "second"))]
    ledger.write_segment("00000", "w1", 0, [turn("two", 0)])
    with pytest.raises(RunIncomplete, match="two"):
        ledger.commit("00000", turns_of(plan))


def test_a_torn_segment_counts_as_absent(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    ledger.write_segment("00000", "w1", 0, [turn("a")])
    ledger.write_segment("00000", "w1", 1, [turn("b")])
    torn = ledger.store.under("segments/00000")[0].name
    data = ledger.store.get(torn)
    assert data is not None
    ledger.store.put(torn, data[: len(data) // 2])
    assert ledger.finished("00000")["conversation"].to_pylist() == ["b"]
    assert "generated again" in caplog.text


def test_a_torn_part_is_written_again(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    plan = rows(1)
    ledger.store.put("parts/00000.parquet", b"PAR1 half a fi")
    assert not ledger.is_committed("00000")
    ledger.write_segment("00000", "w1", 0, [turn(plan[0].conversation.id)])
    assert ledger.commit("00000", turns_of(plan))
    assert ledger.is_committed("00000")
    assert "torn" in caplog.text


def test_a_segment_that_goes_between_the_list_and_the_read_is_no_fault(ledger: Ledger) -> None:
    plan = rows(2)
    ledger.write_segment("00000", "w1", 0, [turn(plan[0].conversation.id)])
    ledger.write_segment("00000", "w2", 0, [turn(plan[1].conversation.id)])

    class Going(Store):
        def get(self, name: str) -> bytes | None:
            if name.startswith("segments/"):
                other.commit("00000", turns_of(plan))  # takes the segments away
            return super().get(name)

    other = open_ledger(ledger.where)
    late = Ledger(Going(ledger.store.url, ledger.store._objects, ledger.store.root))
    assert late.finished("00000").num_rows == 0
    assert not late.commit("00000", turns_of(plan))
    assert len(ledger.part("00000")) == 2


def test_segments_of_a_second_process_do_not_stay(ledger: Ledger) -> None:
    plan = rows(1)
    ledger.write_segment("00000", "w1", 0, [turn(plan[0].conversation.id)])
    ledger.commit("00000", turns_of(plan))
    ledger.write_segment("00000", "w2", 0, [turn(plan[0].conversation.id)])
    ledger.sweep()
    assert ledger.store.under("segments") == []


def test_the_first_missing_conversation_is_named_with_its_place(ledger: Ledger) -> None:
    plan = rows(3)
    ledger.write_shard("00000", plan)
    ledger.write_segment("00000", "w1", 0, [turn(plan[0].conversation.id)])
    missing = ledger.first_missing("00000")
    assert missing is not None
    assert missing.name == "row-0001 (test.jsonl row 1)"
    ledger.write_segment("00000", "w1", 1, [turn(p.conversation.id) for p in plan[1:]])
    ledger.commit("00000", turns_of(plan))
    assert ledger.first_missing("00000") is None


def tear(ledger: Ledger, name: str) -> None:
    data = ledger.store.get(name)
    assert data is not None
    ledger.store.put(name, data[: len(data) // 2])


def test_torn_verdicts_are_made_again(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    ledger.write_verdicts("00000", [Judgement("a", 0, "good")], rules="{}")
    tear(ledger, "verdicts/00000.parquet")
    assert ledger.verdicts("00000") is None
    assert ledger.rules() is None
    assert "made again" in caplog.text


@pytest.mark.parametrize("damage", ["torn", "gone"])
def test_a_damaged_plan_says_how_it_is_made_again(ledger: Ledger, damage: str) -> None:
    ledger.write_shard("00000", rows(2))
    if damage == "torn":
        tear(ledger, "plan/00000.parquet")
    else:
        ledger.store.delete(["plan/00000.parquet"])
    with pytest.raises(StoreError, match=r"plan/00000.parquet.*delete plan/index.json"):
        ledger.planned("00000")


def test_verdicts_made_by_other_rules_are_made_again(ledger: Ledger) -> None:
    judged = [Judgement("a", 0, "rejected", ("loop",), ("retokenized",))]
    ledger.write_verdicts("00000", judged, rules="one")
    assert ledger.verdicts("00000", "one") == judged
    assert ledger.verdicts("00000") == judged
    assert ledger.verdicts("00000", "two") is None


def test_verdicts_on_a_part_that_was_made_again_count_as_absent(ledger: Ledger) -> None:
    plan = rows(1)
    turns = {p.conversation.id: 1 for p in plan}
    for writer in ("first", "second"):
        ledger.write_segment("00000", writer, 0, [turn(plan[0].conversation.id)])
        ledger.commit("00000", turns)
        assert ledger.verdicts("00000") is None
        ledger.write_verdicts("00000", [Judgement(plan[0].conversation.id, 0, "good")], rules="{}")
        assert ledger.verdicts("00000") is not None
        ledger.store.delete(["parts/00000.parquet"])


def test_a_plan_without_its_index_is_not_whole(ledger: Ledger) -> None:
    ledger.write_shard("00000", rows(2))
    assert ledger.shards() is None
