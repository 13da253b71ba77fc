"""`reflash push`: a run's dataset on the Hub."""

from __future__ import annotations

from typing import Annotated, cast

import typer


def push(
    run: Annotated[str, typer.Argument(help="A run's folder: a path or a URL.")],
    repo: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The set's name on the Hub; made where it is not.")],
    public: Annotated[bool, typer.Option("--public", help="Let everybody read it; by default it is private.")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="Push a run in which rows are still missing.")] = False,
    block: Annotated[
        str | None,
        typer.Option("--token-block", help="A `reflash-hub-token` block of the Prefect server, in place of HF_TOKEN."),
    ] = None,
) -> None:
    """Put a run's dataset on the Hugging Face Hub, with its card and charts.

    The token is the one in HF_TOKEN, or that of `hf auth login`. The same command again sends only what is not there.
    """
    from reflash.push.hub import push_run

    pushed = push_run(run, repo, token=_token(block), public=public, partial=partial)
    who = "only you and your organization see it" if pushed.private else "public"
    typer.echo(f"{pushed.rows:,} rows in {pushed.files:,} files are at {pushed.url} ({who})")


def _token(block: str | None) -> str | None:
    if block is None:
        return None
    from blocks.hub import HubToken
    from flows.server import some_server

    with some_server():
        return cast(HubToken, HubToken.load(block)).token.get_secret_value()
