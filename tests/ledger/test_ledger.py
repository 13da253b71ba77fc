"""A run's folder: nothing half-written, nothing twice, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflash.errors import ConfigError, ManifestChanged, RunIncomplete, StoreError
from reflash.ledger.ledger import Ledger, open_ledger
from reflash.ledger.manifest import FORMAT, Manifest
from reflash.ledger.schema import planned_rows, planned_table, turn_rows, turn_table
from reflash.types import Conversation, Judgement, Message, Planned, ToolCall
from tests.making import planned, rows, talk, turn


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(str(tmp_path / "run"), create=True)


def turns_of(plan: list[Planned]) -> dict[str, int]:
    return {p.conversation.id: len(p.conversation.turns()) for p in plan}


def test_the_same_manifest_goes_on() -> None:
    manifest = Manifest({"model": {"name": "m"}}, {"reflash": "1"})
    assert manifest == Manifest({"model": {"name": "m"}}, {"reflash": "1"})


def test_a_changed_manifest_is_refused_and_names_each_setting(ledger: Ledger) -> None:
    ledger.start(Manifest({"model": {"name": "a"}, "sampling": {"seed": 0, "top_p": 1.0}}, {}))
    with pytest.raises(ManifestChanged) as refusal:
        ledger.start(Manifest({"model": {"name": "b"}, "sampling": {"seed": 1, "top_p": 1.0}}, {}))
    assert "model.name: a -> b" in str(refusal.value)
    assert "sampling.seed: 0 -> 1" in str(refusal.value)
    assert "top_p" not in str(refusal.value)


def test_what_is_only_recorded_may_change(ledger: Ledger) -> None:
    ledger.start(Manifest({"model": {"name": "a"}}, {"reflash": "1"}))
    ledger.start(Manifest({"model": {"name": "a"}}, {"reflash": "2"}))
    assert ledger.manifest().recorded == {"reflash": "1"}


def test_a_manifest_of_a_later_format_asks_for_an_upgrade(ledger: Ledger) -> None:
    ledger.store.put("manifest.json", b'{"format": %d, "decides": {}, "recorded": {}}' % (FORMAT + 1))
    with pytest.raises(StoreError, match="upgrade reflash"):
        ledger.manifest()


def test_a_folder_without_manifest_is_no_run(ledger: Ledger) -> None:
    with pytest.raises(ConfigError, match="not a run's folder"):
        ledger.manifest()


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


def test_verdicts_made_by_other_rules_are_made_again(ledger: Ledger) -> None:
    judged = [Judgement("a", 0, "rejected", ("loop",), ("retokenized",))]
    ledger.write_verdicts("00000", judged, rules="one")
    assert ledger.verdicts("00000", "one") == judged
    assert ledger.verdicts("00000") == judged
    assert ledger.verdicts("00000", "two") is None


def test_a_plan_without_its_index_is_not_whole(ledger: Ledger) -> None:
    ledger.write_shard("00000", rows(2))
    assert ledger.shards() is None
