"""Async work from a thread that may be interrupted: what it opened is closed before the interruption goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run it in an event loop of its own, in a thread of its own; blocks.

    Ctrl-C and signals reach the calling thread: then the work is cancelled and waited for.
    """
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="reflash-benchmark", daemon=True)
    thread.start()
    answer: Future[T] = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return answer.result()
    except BaseException:
        if not answer.done():
            loop.call_soon_threadsafe(_cancel_all, loop)
        raise
    finally:
        asyncio.run_coroutine_threadsafe(_settled(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


async def _settled() -> None:
    """Wait for whatever still runs; what closes engines may take a while."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    await asyncio.gather(*others, return_exceptions=True)
