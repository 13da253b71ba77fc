"""`reflash audit`: a set looked at as a whole, and the machine that is to generate."""

from __future__ import annotations

import typer

from flows.audit_data import data
from flows.audit_env import env

audit_app = typer.Typer(no_args_is_help=True, help="Audits: of a tokenized set, of this machine.")
audit_app.command()(data)
audit_app.command()(env)
