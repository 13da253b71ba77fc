"""Worker processes for rendering and judging, so that no event loop and no GPU waits for them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future, ProcessPoolExecutor
from typing import ParamSpec, TypeVar

from reflash.errors import RunStopped, WorkerDied

P = ParamSpec("P")
T = TypeVar("T")

STOPPED = "the run was told to stop; the same command goes on with it"
MOST = 8  # more processes than this wait for the one that feeds them


def default_workers() -> int:
    """One process a core, at most eight."""
    return min(MOST, os.cpu_count() or 1)


class WorkerPool:
    """Processes that end with their parent, however it ends. Started at the first call."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or default_workers()
        self._lock = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None
        self._closed = False

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a module-level function in a worker. Raises RunStopped once the pool is closed."""
        with self._lock:
            if self._closed:
                raise RunStopped(STOPPED)
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    self.workers, multiprocessing.get_context("spawn"), _follow_parent, (os.getpid(),)
                )
            return self._executor.submit(work, *args, **kwargs)

    def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a module-level function in a worker, and wait for it. Raises what it raises, or WorkerDied."""
        return self.result(self.submit(work, *args, **kwargs))

    def result(self, future: Future[T]) -> T:
        """What `submit` promised. Raises RunStopped where the pool was closed before it began.

        Raises WorkerDied where the process was killed; the next call gets new ones.
        """
        try:
            return future.result()
        except CancelledError as error:
            raise RunStopped(STOPPED) from error
        except BrokenExecutor as error:
            with self._lock:
                broken, self._executor = self._executor, None
            if broken is not None:
                broken.shutdown(wait=False, cancel_futures=True)
            raise WorkerDied(
                "a worker process was killed, most often for want of memory. What was finished is safe: give the same"
                " command again, with fewer workers (plan.workers) or smaller shards in a new run (plan.shard_rows)"
            ) from error

    def in_order(self, calls: Iterable[Callable[[], Future[T]]]) -> Iterator[T]:
        """Results of calls in their order, with a few more calls under way than there are workers."""
        waiting: list[Future[T]] = []
        for call in calls:
            waiting.append(call())
            if len(waiting) > 2 * self.workers:
                yield self.result(waiting.pop(0))
        while waiting:
            yield self.result(waiting.pop(0))

    def close(self) -> None:
        """End the workers; what has not begun is dropped."""
        with self._lock:
            self._closed = True
            executor, self._executor = self._executor, None
        if executor is not None:  # whoever waits for a result may need the lock
            executor.shutdown(wait=True, cancel_futures=True)


def _follow_parent(parent: int) -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it is gone (a killed parent tells nobody)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
