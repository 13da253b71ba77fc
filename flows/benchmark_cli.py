"""`reflash benchmark`: how fast, with what, how long, before a run begins."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reflash.benchmark.result import Result
    from reflash.config.run import RunConfig


def benchmark(
    config: Annotated[Path, typer.Argument(help="A run config in YAML.")],
    minutes: Annotated[float | None, typer.Option(help="Time for all of it, starts of engines included.")] = None,
    expect: Annotated[
        str | None, typer.Option(metavar="A-B", help="A hypothesis to answer: output tokens a second on one GPU.")
    ] = None,
    out: Annotated[
        str | None, typer.Option(help="Folder of what is measured; by default `benchmark` in the run's folder.")
    ] = None,
    point: Annotated[
        list[str] | None,
        typer.Option(help="Compare this point: key=value,key=value. May be given often; `none` compares nothing."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change one setting: dotted.key=value, read as YAML. May be given often."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's own log lines too.")] = False,
) -> None:
    """Measure instead of estimating: compare engines and settings, answer a sample, forecast the whole run.

    The same command goes on where it stopped. It says which config to use and why, and how long the run will take, in
    nine cases of ten; `regenerate` holds its run against that at the end.
    """
    from reflash.config.load import load_config

    settled = _settled(load_config(config, overrides or []), minutes, expect, point)
    result = _measured(settled, out, verbose)
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _show(result, out or f"{settled.run.rstrip('/')}/benchmark")


def _settled(config: RunConfig, minutes: float | None, expect: str | None, points: list[str] | None) -> RunConfig:
    """The config with what the command line says; raises ConfigError as a config's own values would."""
    from reflash.benchmark.points import read_point
    from reflash.benchmark.suggest import NONE
    from reflash.config.load import parse_config

    given: dict[str, Any] = {"minutes": minutes, "expect": expect, "points": tuple(points) if points else None}
    changed = {key: value for key, value in given.items() if value is not None}
    if changed:
        settings = config.benchmark.model_dump() | changed
        config = parse_config(config.model_dump() | {"benchmark": settings}, "command line")
    for text in config.benchmark.points:
        if text != NONE:
            read_point(text)
    return config


def _measured(config: RunConfig, out: str | None, verbose: bool) -> Result:
    from reflash.engines.open import check_engines

    check_engines(config.engine, context=config.model.context)
    from flows.benchmark import benchmark as flow
    from flows.logs import quiet_terminal
    from flows.server import some_server
    from tasks.benchmark import listeners

    if not verbose:
        quiet_terminal()
    try:
        with some_server():
            listeners.append(lambda line: typer.echo(line, err=True))
            return flow(config, out)
    except KeyboardInterrupt:
        print("reflash: stopped; what was measured is kept, and the same command goes on", file=sys.stderr)  # noqa: T201
        raise typer.Exit(130) from None
    finally:
        listeners.clear()


def _show(result: Result, folder: str) -> None:
    """The paragraph, the advice, what was not used and why."""
    from reflash.printable import printable
    from reflash.report.speed import summary

    for part in summary(result, printable):
        typer.echo(f"{part}\n")
    advice = result.to_json()["advice"]
    typer.echo(f"use       {advice['point']}: {printable(advice['why'], 400)}")
    for option in advice["set"]:
        typer.echo(f"          --set '{option}'")
    for one in advice["rejected"]:
        typer.echo(f"not       {printable(one['point'])}: {printable(one['why'], 400)}")
    typer.echo(f"forecast  {folder}/forecast.json\nreport    {folder}/benchmark.md")
