from __future__ import annotations

from dataclasses import replace

from reflash.generate.progress import EngineNow, Snapshot
from reflash.report.lines import alarm_lines, commit_line, drift_line, plan_line, shard_line, verdict_line
from reflash.report.words import describe
from reflash.types import Shard
from reflash.validate.checks import REASONS
from tests.report.making import report, summary


def snapshot(rows: int, *, seconds: float = 60.0, rate: float = 1234.0, left: float | None = 250.0) -> Snapshot:
    return Snapshot(rows, 2000, rows, 99, rate, seconds, left)


def test_the_plan_says_what_was_read_what_was_left_out_and_what_is_to_do() -> None:
    counts = {"rows": 2500, "accepted": 2490, "repaired": 0, "rejected": 10, "duplicate ids": 0}
    said = plan_line(counts, [Shard("00000", 2000, 3000), Shard("00001", 490, 500)])
    assert said == "Plan: 2,500 rows read (rejected 10); 2,490 conversations, 3,500 turns to generate, in 2 shards"


def test_a_committed_shard_says_how_much_an_earlier_attempt_had_done() -> None:
    shard = Shard("00003", 2000, 2000)
    assert commit_line(shard, 0, fresh=True) == "Shard 00003 committed: 2,000 conversations"
    assert commit_line(shard, 1500, fresh=True).endswith("2,000 conversations (1,500 from an earlier attempt)")
    assert commit_line(shard, 2000, fresh=False) == "Shard 00003 was committed earlier: 2,000 conversations"


def test_a_judged_shard_names_its_reasons_the_most_frequent_first() -> None:
    bad = summary(verdicts={"good": 3, "rejected": 7}, reasons={"empty": 2, "loop": 5})
    assert shard_line(bad) == "Shard 00000: 10 turns, 1,500 tokens; 3 good, 7 rejected (loop 5, empty 2)"
    assert shard_line(summary()) == "Shard 00000: 10 turns, 1,500 tokens; 10 good"


def test_the_verdict_of_a_run_is_a_share_or_that_it_is_not_finished() -> None:
    some = summary(verdicts={"good": 9, "flagged": 1})
    assert verdict_line(report(some)) == "9 of 10 turns (90.0%) are fit to train on."
    assert verdict_line(report(some, shards=3)).startswith("Not finished: 1 of 3 shards.")


def test_one_is_told_as_one() -> None:
    one = summary(turns=1, output_tokens=1, verdicts={"good": 1})
    assert verdict_line(report(one)) == "1 of 1 turn (100.0%) is fit to train on."
    assert shard_line(one) == "Shard 00000: 1 turn, 1 token; 1 good"
    assert plan_line({"rows": 1}, [Shard("00000", 1, 1)]).endswith("1 conversation, 1 turn to generate, in 1 shard")
    assert commit_line(Shard("00000", 1, 1), 0, fresh=True).endswith("committed: 1 conversation")


def test_a_run_without_turns_is_no_share_of_nothing() -> None:
    nothing = summary(turns=0, verdicts={}, output_tokens=0)
    assert verdict_line(report(nothing)) == "There was no turn to generate."
    assert shard_line(nothing) == "Shard 00000: 0 turns, 0 tokens; no verdict"


def test_nearly_all_is_not_told_as_all() -> None:
    nearly = summary(turns=100_000, verdicts={"good": 99_999, "rejected": 1})
    assert verdict_line(report(nearly)) == "99,999 of 100,000 turns (>99.9%) are fit to train on."


def test_an_alarm_says_how_many_and_what_it_means() -> None:
    assert alarm_lines(("loop",), {"loop": 5, "empty": 1}, 10) == [f"loop on 5 of 10 turns: {REASONS['loop']}"]


def test_drift_is_told_by_kind_with_what_was_looked_for_and_not_found() -> None:
    some = summary(turns=200, reasons={"prompt-drift": 3, "spells-control": 2, "loop": 9}, notes={"retokenized": 50})
    assert drift_line(some).endswith(
        "non-canonical emission 50 (25.0%), template drift 3 (1.5%), control tokens in text 2 (1.0%),"
        " stop-string cut 0 (0.0%)."
    )
    assert "agree on every turn" in drift_line(summary(reasons={"loop": 9}))


def test_progress_says_how_far_how_fast_how_long_and_how_good() -> None:
    judged = summary(verdicts={"good": 9, "rejected": 1})
    assert describe(snapshot(500), judged) == (
        "500 of 2,000 conversations, 1,234 tok/s, about 4 min 10 s left, 90.0% of 10 judged turns are good"
    )


def test_progress_of_several_engines_says_how_far_apart_they_are() -> None:
    engines = tuple(EngineNow(f"gpu/{n}", 64, 10, 1000, rate) for n, rate in enumerate((620.0, 614.4, 0.0)))
    assert "1,234 tok/s (0 to 620 on each of 3 engines), " in describe(replace(snapshot(500), engines=engines))


def test_progress_says_only_what_is_known() -> None:
    waiting = describe(snapshot(0, seconds=0.0, rate=0.0, left=None))
    assert waiting == "0 of 2,000 conversations, engines are starting"
    assert describe(snapshot(2000, left=0.0)) == "2,000 of 2,000 conversations, 1,234 tok/s"
    assert describe(snapshot(2000, seconds=0.0, rate=0.0, left=None)) == "2,000 of 2,000 conversations"
