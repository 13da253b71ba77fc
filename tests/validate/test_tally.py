from __future__ import annotations

from reflash.config.run import ValidateConfig
from reflash.types import Judgement, Verdict
from reflash.validate.summary import Tally, combine, tally

CONFIG = ValidateConfig(alarm_share=0.25)


def said(verdict: Verdict, *reasons: str, notes: tuple[str, ...] = ()) -> Judgement:
    return Judgement("c", 0, verdict, reasons, notes)


def test_verdicts_reasons_and_notes_are_counted_most_frequent_first() -> None:
    judgements = [
        said("good", notes=("retokenized",)),
        said("rejected", "empty"),
        said("rejected", "loop", "truncated"),
        said("rejected", "loop"),
    ]
    counted = tally(judgements, CONFIG)
    assert counted.turns == 4
    assert counted.verdicts == {"good": 1, "flagged": 0, "rejected": 3}
    assert list(counted.reasons.items()) == [("loop", 2), ("empty", 1), ("truncated", 1)]
    assert counted.notes == {"retokenized": 1}


def test_a_reason_alarms_once_its_share_passes_the_configured_one() -> None:
    at_share = [said("rejected", "empty"), said("good"), said("good"), said("good")]
    assert tally(at_share, CONFIG).alarms == ()
    assert tally(at_share[:3], CONFIG).alarms == ("empty",)


def test_notes_never_alarm() -> None:
    assert tally([said("good", notes=("retokenized",))], CONFIG).alarms == ()


def test_the_tally_of_all_shards_is_that_of_their_turns_together() -> None:
    shards = [[said("rejected", "empty")], [said("good")] * 3, [said("flagged", "placeholder", notes=("not-exact",))]]
    together = [judged for shard in shards for judged in shard]
    assert combine((tally(shard, CONFIG) for shard in shards), CONFIG) == tally(together, CONFIG)


def test_nothing_judged_is_a_tally_of_zeros() -> None:
    assert tally([], CONFIG) == Tally(verdicts={"good": 0, "flagged": 0, "rejected": 0})
