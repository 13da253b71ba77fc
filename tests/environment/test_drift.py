"""Against the last audit of the same machine: stable facts by what changed, counters by what came since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reflash.environment.audit import judged
from reflash.environment.drift import changes, digest
from reflash.environment.history import best_rates, keep, last_of
from reflash.environment.judge import judge
from reflash.environment.text import audit_markdown
from tests.environment.recorded import recorded, troubled

LAST = recorded("pro6000x4")


def test_nothing_changed_is_nothing_to_tell() -> None:
    assert troubled(LAST, LAST) == {}


def test_what_may_change_from_minute_to_minute_is_no_drift() -> None:
    now = recorded("pro6000x4", cards__0__temperature=61, system__memory_available=2**37, made_at="later")
    assert troubled(now, LAST) == {}


@pytest.mark.parametrize(
    ("fault", "check", "status"),
    [
        ({"driver__version": "590.10.01", "driver__module": "590.10.01"}, "drift.driver", "warn"),
        ({"cards__1__vbios": "98.02.7F.00.01"}, "drift.vbios", "warn"),
        ({"python__packages__transformers": "5.6.0"}, "drift.packages", "warn"),
        ({"kernels__bf16__rate": 330.0}, "rate.matmul", "warn"),
        ({"kernels__bf16__rate": 280.0}, "rate.matmul", "fail"),
        ({"kernels__host_copy__rate": 20.0}, "rate.host", "fail"),
        ({"cards__3__uuid": "GPU-another"}, "drift.cards", "fail"),
    ],
)
def test_a_change_is_named(fault: dict[str, Any], check: str, status: str) -> None:
    assert troubled(recorded("pro6000x4", **fault), LAST) == {check: status}


def test_a_rate_that_declines_slowly_is_held_against_the_best_and_a_new_driver_begins_anew() -> None:
    last = LAST
    for rate in (375.0, 350.0, 330.0):
        now = recorded("pro6000x4", kernels__bf16__rate=rate)
        last = replace(now, baseline=best_rates(now, last))
    assert last.baseline["bf16"] == LAST.baseline["bf16"]
    assert troubled(recorded("pro6000x4", kernels__bf16__rate=310.0), last) == {"rate.matmul": "warn"}
    newer = recorded("pro6000x4", driver__version="590.10.01", driver__module="590.10.01", kernels__bf16__rate=310.0)
    assert best_rates(newer, last)["bf16"] == 310.0


def test_a_slow_rate_on_a_busy_card_is_no_failure() -> None:
    busy = recorded("pro6000x4", kernels__bf16__rate=100.0, cards__0__busy=90, cards__0__pcie_generation=5)
    assert troubled(busy, LAST) == {"rate.matmul": "warn"}


def test_what_stays_has_one_number_and_its_changes_are_told() -> None:
    now = recorded("pro6000x4", python__packages__transformers="5.6.0", cards__0__temperature=60)
    assert digest(recorded("pro6000x4", cards__0__temperature=61)) == digest(LAST) != digest(now)
    (change,) = changes(now, LAST)
    assert str(change).startswith("package transformers ")
    page = audit_markdown(judged(now, LAST))
    assert "```diff\n- package transformers" in page
    assert "+ package transformers  5.6.0" in page


def test_counters_are_told_by_what_came_since() -> None:
    then = recorded("pro6000x4", cards__0__xids=[31], cards__1__ecc_uncorrected=1)
    now = recorded("pro6000x4", cards__0__xids=[31, 43], cards__1__ecc_uncorrected=1)
    assert [(c.what.split()[0], c.then, c.now) for c in changes(now, then)] == [("events", "1", "2")]


def test_a_card_that_is_gone_is_a_fault() -> None:
    finding = next(f for f in judge(replace(LAST, cards=LAST.cards[:3]), LAST) if f.id == "drift.cards")
    assert (finding.status, finding.found[:6]) == ("fail", "gone: ")


def test_an_event_that_the_last_audit_knew_is_not_told_again() -> None:
    before = recorded("pro6000x4", cards__2__xids=[79])
    assert troubled(before, before) == {}
    assert troubled(recorded("pro6000x4", cards__2__xids=[79, 79]), before) == {"cards.xid": "fail"}


def test_the_last_audit_of_a_machine_and_engine_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert last_of(LAST) is None
    keep(LAST, None)
    assert last_of(LAST) == LAST
    assert last_of(replace(LAST, machine="another")) is None
    next(tmp_path.rglob("*.json")).write_text("{")
    assert last_of(LAST) is None
