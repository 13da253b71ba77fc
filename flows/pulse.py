"""A run's signs of life for the server, and the server's word on the run."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import httpx
from prefect import get_client, runtime
from prefect.events import emit_event
from prefect.exceptions import ObjectNotFound

from flows import watch
from flows.house.automations import PROGRESS
from reflash.errors import ReflashError
from reflash.generate.progress import Snapshot

log = logging.getLogger(__name__)

EVERY_S = 20.0


class GivenUp(ReflashError):
    """The server has called this run crashed, or knows it no longer: another one goes on with its folder."""


class Pulse:
    """Tells of progress as events, and stops a run that the server takes for dead: two would fight for the GPUs."""

    def __init__(self, run: UUID) -> None:
        self._run = run
        self._told = -1  # tokens and rows at the last event
        self._next = 0.0

    def __call__(self, now: Snapshot) -> None:
        """Look at most every so many seconds; raises GivenUp."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY_S
        done = now.rows + now.turns + now.output_tokens
        if done and done != self._told:
            self._told = done
            emit_event(
                event=PROGRESS,
                resource={"prefect.resource.id": f"prefect.flow-run.{self._run}"},
                payload={"rows": now.rows, "tokens": now.output_tokens},
            )
        self._ask()

    def _ask(self) -> None:
        try:
            with get_client(sync_client=True) as client:
                state = client.read_flow_run(self._run).state
        except ObjectNotFound as error:  # a run that nobody sees or can cancel would hold the engines
            raise GivenUp("the Prefect server knows this run no longer: its database is another one") from error
        except httpx.HTTPError as error:
            log.warning("the Prefect server does not answer, the run goes on without it: %s", error)
            return
        if state is not None and state.is_crashed():
            raise GivenUp(f"the server called this run crashed ({state.message}): another one goes on with its folder")


@contextmanager
def pulsing() -> Iterator[None]:
    """Give signs of life while the block lasts."""
    pulse = Pulse(UUID(runtime.flow_run.id))
    watch.listeners.append(pulse)
    try:
        yield
    finally:
        if pulse in watch.listeners:  # the command line clears them all
            watch.listeners.remove(pulse)
