"""`reflash node`: one more machine at work on a run, without Prefect."""

from __future__ import annotations

import signal
from typing import Annotated, Any

import typer


def node(
    run: Annotated[str, typer.Argument(help="The run's folder: a path or a URL that this machine can reach.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", help="This node's own engine.KEY=VALUE or generate.KEY=VALUE. May be given often."),
    ] = None,
) -> None:
    """Join a run with this machine's engines: take shards until none is left.

    Start it on as many machines as you like, once `reflash regenerate`, which plans, judges and publishes, has begun.
    It may be stopped or killed at any time: others take what it had not finished.
    """
    from flows.joining import node_config, work
    from flows.screen import progress_bar
    from reflash.engines.open import check_engines
    from reflash.report.words import counted, duration

    signal.signal(signal.SIGTERM, _stop)
    config = node_config(run, overrides or [])
    check_engines(config.engine, context=config.model.context)
    try:
        with progress_bar() as tell:
            done = work(config, tell)
    except KeyboardInterrupt:
        typer.echo("reflash: stopped; what was finished is safe, and other nodes go on with the rest", err=True)
        raise typer.Exit(130) from None
    typer.echo(
        f"{done.node}: {counted(done.turns, 'turn')}, {counted(done.output_tokens, 'token')}"
        f" in {duration(done.seconds)}. Every shard is generated; `reflash regenerate` judges and publishes"
    )


def _stop(*_: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever signals a whole group signals twice
    raise KeyboardInterrupt
