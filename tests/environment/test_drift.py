"""Against the last audit of the same machine: stable facts by what changed, counters by what came since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reflash.environment.history import keep, last_of
from reflash.environment.judge import judge
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
    keep(LAST)
    assert last_of(LAST) == LAST
    assert last_of(replace(LAST, machine="another")) is None
    next(tmp_path.rglob("*.json")).write_text("{")
    assert last_of(LAST) is None
