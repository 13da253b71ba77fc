"""Who works on a run: this process with its own engines, or nodes that are started through a work pool."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx
from prefect import get_client
from prefect.blocks.core import Block
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.context import FlowRunContext
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.states import Cancelling

from reflash.config.run import RunConfig
from reflash.errors import ConfigError, RunIncomplete
from reflash.generate.fleet import Fleet
from reflash.ledger.ledger import Ledger
from reflash.types import Shard

log = logging.getLogger(__name__)

LOOK_S = 10.0


@contextmanager
def crew(config: RunConfig, ledger: Ledger, shards: list[Shard]) -> Iterator[Fleet]:
    """Work begins with the block. Raises ConfigError where the nodes' deployment is not there."""
    if not config.nodes.count:
        with Fleet(config, ledger, shards) as fleet:
            fleet.take_any()
            yield fleet
        return
    with Fleet(config, ledger, shards, role="watch") as fleet:
        runs = [] if len(ledger.committed()) == len(shards) else _started(config, ledger.store.url)
        over = threading.Event()
        watching = threading.Thread(target=_watch, args=(runs, fleet, ledger, over), daemon=True)
        watching.start()
        try:
            yield fleet
        finally:
            over.set()
            watching.join()
            if len(ledger.committed()) < len(shards):  # else they end by themselves
                _cancel(runs)


def _started(config: RunConfig, folder: str) -> list[UUID]:
    """Start the nodes; each is a run of its own, shown below this one. `folder` is the run's, by its whole path."""
    name, count = config.nodes.deployment, config.nodes.count
    parameters = {"run": folder, **_saved()}
    try:
        runs = [run_deployment(name=name, parameters=parameters, timeout=0) for _ in range(count)]
    except ObjectNotFound as error:
        raise ConfigError(
            f"nodes.deployment: the Prefect server knows no deployment {name}; `reflash up` or `prefect deploy --all`"
            " makes it"
        ) from error
    return [run.id for run in runs if isinstance(run, FlowRun)]


def _saved() -> dict[str, Any]:
    """The blocks that this run was given, by reference: the nodes need their keys, which no parameter may show."""
    context = FlowRunContext.get()
    parameters = (context.parameters if context else None) or {}
    given = {name: parameters.get(name) for name in ("engine", "store")}
    return {
        name: {"$ref": {"block_document_id": str(block._block_document_id)}}
        for name, block in given.items()
        if isinstance(block, Block) and block._block_document_id
    }


def _watch(runs: list[UUID], fleet: Fleet, ledger: Ledger, over: threading.Event) -> None:
    """Tell of nodes that end badly; where no node is left, tell those who wait."""
    told: set[UUID] = set()
    while not over.wait(LOOK_S):
        states = _states(runs)
        for run, state in states.items():
            if state.is_final() and not state.is_completed() and run not in told:
                told.add(run)
                log.warning("a node has ended: %s (%s); the others go on", state.name, state.message)
        if runs and len(states) == len(runs) and all(s.is_final() for s in states.values()) and not fleet.others_live():
            why = next((f": {s.message}" for s in states.values() if s.is_failed() or s.is_crashed()), "")
            fleet.give_up(RunIncomplete(f"{ledger.where}: every node has ended before the run was done{why}"))


def _states(runs: list[UUID]) -> dict[UUID, State]:
    found: dict[UUID, State] = {}
    try:
        with get_client(sync_client=True) as client:
            for run in runs:
                if state := client.read_flow_run(run).state:
                    found[run] = state
    except (httpx.HTTPError, PrefectException) as error:
        log.warning("the Prefect server does not say how the nodes are: %s", error)
    return found


def _cancel(runs: list[UUID]) -> None:
    with get_client(sync_client=True) as client:
        for run, state in _states(runs).items():
            if not state.is_final() and state.type != StateType.CANCELLING:
                client.set_flow_run_state(run, Cancelling(), force=True)
