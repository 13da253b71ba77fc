"""Worker processes: one that is killed is an error with a remedy, and the next call gets new ones."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from functools import partial

import pytest

from reflash.errors import RunStopped, WorkerDied
from reflash.pool import WorkerPool


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_told_with_a_remedy_and_replaced() -> None:
    with closing(WorkerPool(1)) as pool:
        with pytest.raises(WorkerDied, match=r"plan\.workers"):
            pool.run(die)
        assert pool.run(abs, -3) == 3


def test_results_come_in_the_order_of_the_calls() -> None:
    with closing(WorkerPool(2)) as pool:
        assert list(pool.in_order(partial(pool.submit, abs, -n) for n in range(20))) == list(range(20))


def test_a_closed_pool_begins_nothing_more_and_says_so_to_those_who_wait() -> None:
    pool = WorkerPool(1)
    pool.run(abs, -3)
    waiting = [pool.submit(time.sleep, 0.2) for _ in range(20)]  # two or three of them are with the worker already
    pool.close()
    with pytest.raises(RunStopped):
        pool.result(waiting[-1])
    with pytest.raises(RunStopped):
        pool.run(abs, -3)
