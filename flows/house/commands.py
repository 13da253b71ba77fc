"""`reflash up` and `reflash down` on the command line."""

from __future__ import annotations

from typing import Annotated

import typer


def up(
    host: Annotated[
        str | None,
        typer.Option(help="Address to serve at; 0.0.0.0 lets other machines in, with a password. Default 127.0.0.1."),
    ] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port of the server. Default 4200.")] = None,
    database: Annotated[
        str | None, typer.Option(help="postgresql://USER:PASSWORD@HOST:PORT/NAME. Default SQLite.")
    ] = None,
    alert: Annotated[
        str,
        typer.Option(
            help="Who hears of failed audits, stalled and given up runs: a webhook's URL, or a mailbox as "
            "mailtos://USER:PASSWORD@HOST?from=NAME@HOST&to=NAME@HOST."
        ),
    ] = "",
    no_password: Annotated[bool, typer.Option("--no-password", help="Let whoever reaches the address in.")] = False,
    systemd: Annotated[bool, typer.Option("--systemd", help="Write systemd units, and start nothing.")] = False,
) -> None:
    """Start a Prefect server with a UI and a worker, and make everything known to it that runs need.

    Work pool, blocks, deployments, and automations that go on with runs that broke off. Given again it changes nothing
    that stands. Where PREFECT_API_URL names a server, that one is used, and only a worker is started. `reflash down`
    ends it.
    """
    from flows.house.up import Wish, write_units
    from flows.house.up import up as stand

    wish = Wish(host, port, database, no_password, alert)
    (write_units if systemd else stand)(wish, typer.echo)


def down() -> None:
    """End the server and the worker that `reflash up` started, and every run of theirs. What is finished is safe."""
    from flows.house.up import down as end

    end(typer.echo)
