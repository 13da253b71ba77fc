"""Whether this machine may begin a run: it is audited first."""

from __future__ import annotations

from reflash.config.run import RunConfig
from reflash.environment.audit import audit_of
from reflash.environment.text import refusal
from reflash.errors import ConfigError
from tasks.look import look


def check_machine(config: RunConfig) -> None:
    """Raises ConfigError with each fault and its remedy, unless the config goes on all the same.

    It is compared with the last audit of this machine, and not kept: the nightly one is.
    """
    found = look(audit_of(config), kept=False)
    if found.verdict == "fail" and config.audit.refuse == "fail":
        raise ConfigError(refusal(found))
