"""The number in flight follows what the engine holds."""

from __future__ import annotations

import pytest

from reflash.engines.load import Load
from reflash.generate.width import Width


def settle(width: Width, holds: int, looks: int = 60) -> int:
    """An engine that decodes `holds` requests at once and queues the rest."""
    for _ in range(looks):
        running = min(width.now, holds)
        width.see(Load(running=running, waiting=width.now - running, generated=1))
    return width.now


@pytest.mark.parametrize(("asked", "holds"), [(256, 46), (256, 255), (64, 1), (512, 200)])
def test_it_settles_just_above_what_runs_and_keeps_the_engine_full(asked: int, holds: int) -> None:
    found = settle(Width(asked), holds)
    assert holds <= found <= min(asked, holds + max(2, holds // 8))


def test_it_never_leaves_an_engine_that_holds_all_of_it() -> None:
    assert settle(Width(64), 64) == 64


def test_it_comes_back_when_the_engine_holds_more_again() -> None:
    width = Width(256)
    settle(width, 46)
    assert settle(width, 300) == 256


def test_a_burst_of_prompts_is_no_queue() -> None:
    width = Width(64)
    for waiting in (60, 30, 0, 60, 30, 0):
        width.see(Load(running=64 - waiting, waiting=waiting))
    assert width.now == 64


def test_requests_thrown_out_of_the_batch_make_it_narrower() -> None:
    width = Width(100)
    width.see(Load(running=100, waiting=0, preempted=3))
    assert width.now == 90
    width.see(Load(running=50, waiting=0, preempted=3))
    assert width.now == 90


def test_an_idle_engine_changes_nothing() -> None:
    width = Width(64)
    for _ in range(10):
        width.see(Load(running=0, waiting=0))
    assert width.now == 64
