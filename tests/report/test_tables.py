from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from reflash.generate.progress import ShardNow
from reflash.publish.summary import ShardSummary
from reflash.report.tables import plan_table, shards_line, shards_table, verdicts_table
from reflash.report.text import report_markdown
from reflash.types import Shard
from tests.report.making import report, summary

MIXED = summary(
    turns=2000,
    verdicts={"good": 1500, "flagged": 100, "rejected": 400},
    reasons={"placeholder": 100, "loop": 400},
    notes={"retokenized": 8},
)


def shard(name: str, state: Literal["waiting", "generating", "generated"], **changes: Any) -> ShardNow:
    facts: dict[str, Any] = {"rows": 10, "rows_all": 10, "output_tokens": 1500, "tokens_per_s": 60.0, "tries": 1}
    return ShardNow(name, state, **({"engines": ("gpu/0",)} | facts | changes))


def shards(*done: ShardSummary) -> tuple[list[ShardNow], dict[str, ShardSummary]]:
    """All of them done."""
    names = [one.shards[0] for one in done]
    return [shard(name, "generated") for name in names], dict(zip(names, done, strict=True))


def test_the_plan_counts_source_rows_and_work() -> None:
    found = plan_table({"rows": 1200, "rejected": 3}, [Shard("00000", 1197, 2000)])
    assert {row["what"]: row["count"] for row in found} == {
        "source rows": "1,200",
        "source rows: rejected": "3",
        "conversations planned": "1,197",
        "turns to generate": "2,000",
        "shards": "1",
    }


def test_the_worst_shard_stands_first_and_names_what_is_wrong() -> None:
    bad = summary("00002", verdicts={"good": 4, "rejected": 6}, reasons={"empty": 2, "loop": 4})
    found = shards_table(*shards(summary("00001"), bad, summary("00000")), ())
    assert [row["shard"] for row in found] == ["00002", "00000", "00001"]
    assert [row["good"] for row in found] == ["40.0%", "100.0%", "100.0%"]
    assert [row["mostly"] for row in found] == ["loop", "", ""]
    assert found[0]["tokens"] == "1,500"


def test_what_failed_and_what_is_under_way_stands_before_what_is_done_and_what_waits() -> None:
    now = [
        shard("00000", "waiting", rows=0, engines=()),
        shard("00001", "generating", rows=3, tries=2),
        shard("00002", "generated"),
        shard("00003", "generated"),
        shard("00004", "generating"),
    ]
    facts = now, {"00003": summary("00003", retried=2)}, {"00004"}
    found = {row["shard"]: row for row in shards_table(*facts)}
    assert list(found) == ["00004", "00001", "00002", "00003", "00000"]
    assert [row["state"] for row in found.values()] == ["failed", "generating", "judging", "done", "waiting"]
    assert found["00001"]["rows"] == "3 of 10"
    assert (found["00001"]["tries"], found["00003"]["retried"]) == ("2", "2")
    assert shards_line(*facts).startswith("5 shards: 1 failed, 1 generating, 1 judging, 1 done, 1 waiting.")


def test_of_engines_the_one_that_answered_most_is_named_by_the_end_of_its_name() -> None:
    names = ["vllm:Qwen3.6-27B/0", "http://10.0.0.1:8000", "https://a.very.long.name.example.org:8001/", ""]
    tables = [shards_table([shard("00000", "generating", engines=(name, "other"))], {}, ()) for name in names]
    shown = [rows[0]["engine"] for rows in tables]
    assert shown == ["vllm:Qwen3.6-27B/0 +1", "10.0.0.1:8000 +1", "…ame.example.org:8001 +1", " +1"]


def test_a_table_of_2000_shards_is_under_a_megabyte_whatever_engines_are_called() -> None:
    engines = tuple(f"http://gpu-node-{n:03}.cluster.example.org:8000/a/long/path" for n in range(8))
    now = [shard(f"{n:05}", "generated", rows=2000, engines=engines) for n in range(2000)]
    done = {s.name: summary(s.name, reasons={"template-drift": 5}, output_tokens=3_000_000) for s in now}
    assert len(json.dumps(shards_table(now, done, ()))) < 1_000_000


def test_each_reason_stands_under_the_verdict_that_it_leads_to_and_notes_come_last() -> None:
    found = verdicts_table(report(MIXED))
    assert [(row["kind"], row["name"], row["share"]) for row in found] == [
        ("verdict", "good", "75.0%"),
        ("verdict", "flagged", "5.0%"),
        ("reason", "placeholder", "5.0%"),
        ("verdict", "rejected", "20.0%"),
        ("reason", "loop", "20.0%"),
        ("note", "retokenized", "0.4%"),
    ]
    assert all(row["meaning"] for row in found)


def test_the_markdown_puts_reasons_under_their_verdicts_too() -> None:
    text = report_markdown(report(MIXED))
    order = ["**good**", "**flagged**", "`placeholder`", "**rejected**", "`loop`", "`retokenized` (note)"]
    places = [text.index(f"| {name} |") for name in order]
    assert places == sorted(places)
    assert "A turn counts under each of its reasons" not in text


def test_a_reason_of_a_turn_rejected_for_another_counts_under_its_own_weight_and_that_is_said() -> None:
    both = summary(verdicts={"good": 9, "rejected": 1}, reasons={"loop": 1, "placeholder": 1})
    found = [(row["name"], row["turns"]) for row in verdicts_table(report(both))]
    assert found == [("good", "9"), ("flagged", "0"), ("placeholder", "1"), ("rejected", "1"), ("loop", "1")]
    assert "A turn counts under each of its reasons" in report_markdown(report(both))


def test_a_reason_that_is_no_longer_known_stands_under_rejected() -> None:
    old = summary(verdicts={"good": 9, "rejected": 1}, reasons={"of-old": 1})
    assert [row["name"] for row in verdicts_table(report(old))][-1] == "of-old"


def test_cells_are_plain_text() -> None:
    tables: list[list[dict[str, Any]]] = [
        plan_table({"rows": 1}, []),
        shards_table(*shards(MIXED), ()),
        shards_table([shard("00000", "waiting")], {}, ()),
        verdicts_table(report(MIXED)),
    ]
    assert {type(cell) for table in tables for row in table for cell in row.values()} == {str}


def test_the_report_begins_with_its_verdict_and_what_to_look_at() -> None:
    text = report_markdown(report(MIXED, alarms=("loop",)))
    order = ["# rows.jsonl answered by model", "**1,500 of 2,000 turns", "Look at this first", "## Verdicts", "## Rows"]
    places = [text.replace("\\", "").index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize("bins", [{}, {7: 100}, {7: 100, 8: 5000}, {7: 100, 8: 5000, 9: 5000, 10: 30}])
def test_a_run_of_any_length_has_a_report(bins: dict[int, int]) -> None:
    text = report_markdown(report(summary(tokens_by_time=bins, lengths={4: 10}, output_tokens=sum(bins.values()))))
    assert text.count("data:image/png") == (3 if bins else 1)


def test_intervals_that_were_only_begun_do_not_count_into_the_rate() -> None:
    whole = summary(tokens_by_time={1: 10, 2: 5000, 3: 5000, 4: 10}, lengths={4: 10})
    other = summary(tokens_by_time={1: 70, 2: 5000, 3: 5000, 4: 99}, lengths={4: 10})
    assert report_markdown(report(whole)) == report_markdown(report(other))


def test_a_run_with_nothing_judged_shows_no_table_of_noughts() -> None:
    nothing = summary(turns=0, verdicts={}, output_tokens=0)
    text = report_markdown(report(nothing, shards=3, shards_done=0, planned_turns=30))
    assert "**Not finished: 0 of 3 shards." in text
    assert "No turn has its verdict yet." in text
    assert "0.0%" not in text
    assert not {"## Output", "## Examples"} & set(text.splitlines())
    assert "fit to train on" not in text


def test_a_run_whose_rows_are_all_bad_says_that_none_is_fit() -> None:
    text = report_markdown(report(summary(verdicts={"rejected": 10}, reasons={"loop": 10})))
    assert "**0 of 10 turns (0.0%) are fit to train on.**" in text
    assert "## Examples\n\nNo row is fit to train on." in text


def test_a_share_of_nearly_all_is_not_all() -> None:
    nearly = summary(turns=100_000, verdicts={"good": 99_999, "rejected": 1}, reasons={"loop": 1})
    assert [row["share"] for row in verdicts_table(report(nearly))] == [">99.9%", "0.0%", "<0.1%", "<0.1%"]
    assert shards_table(*shards(nearly), ())[0]["good"] == ">99.9%"


def test_rejects_are_named_where_there_are_some() -> None:
    assert "`/runs/one/rejects`" in report_markdown(report(MIXED))
    clean = report(summary(), source_counts={"rows": 10, "accepted": 10})
    assert "| set aside, with reasons | nothing |" in report_markdown(clean)
