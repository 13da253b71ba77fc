"""All checks there are: every entry of every file of this folder, in the order they stand in."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from reflash.environment import checks
from reflash.environment.checks.base import Check


@cache
def catalogue() -> tuple[Check, ...]:
    """Every check; a new one is an entry in a file here, and nothing else."""
    names = [f"{checks.__name__}.{m.name}" for m in pkgutil.iter_modules(checks.__path__) if m.name != "catalogue"]
    return tuple(
        entry
        for name in sorted(names)
        for entry in vars(importlib.import_module(name)).values()
        if isinstance(entry, Check)
    )
