"""What another node does between two looks at a run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflash.ledger.ledger import Ledger
from reflash.store.objects import Store
from tests.making import begun, rows, turn


class Crowded(Store):
    """A store in which something happens right after the first look at an object, or right after one was written."""

    def __init__(self, like: Store, other: Ledger) -> None:
        super().__init__(like.url, like._objects, like.root)
        self.other = other
        self.came = False

    def tail(self, name: str, length: int) -> bytes | None:
        seen = super().tail(name, length)
        if not self.came:
            self.came = True
            plan = rows(1)
            self.other.write_segment("00000", "w1", 0, [turn(plan[0].conversation.id)])
            self.other.commit("00000", {plan[0].conversation.id: 1})
        return seen

    def _settle(self, name: str) -> None:
        if name.startswith("segments/"):
            self.delete([name])
        super()._settle(name)


@pytest.fixture
def other(tmp_path: Path) -> Ledger:
    return begun(tmp_path / "run")


def test_a_part_that_comes_while_one_asks_for_it_is_not_torn(other: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger(Crowded(other.store, other))
    ledger.is_committed("00000")
    assert len(other.part("00000")) == 1
    assert not caplog.text


def test_a_segment_may_be_dropped_as_soon_as_it_is_written(other: Ledger) -> None:
    ledger = Ledger(Crowded(other.store, other))
    ledger.write_segment("00000", "w2", 0, [turn("late")])
    assert len(other.finished("00000")) == 0
