"""`reflash audit`: a set looked at as a whole, and the machine that is to generate."""

from __future__ import annotations

import typer

from flows.auditing_data import data
from flows.auditing_env import env
from flows.ngrams_cli import ngrams

audit_app = typer.Typer(no_args_is_help=True, help="Audits: of a set, of this machine.")
audit_app.command()(data)
audit_app.command()(env)
audit_app.command()(ngrams)
