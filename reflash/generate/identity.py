"""What a node says of itself in its heartbeat, and whether another one is known to be dead."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from reflash.about import our_version
from reflash.engines.linux import place, process
from reflash.errors import ReflashError
from reflash.generate.progress import Progress
from reflash.printable import printable


def node_name() -> str:
    """A new name, told apart by people and by programs: the machine, the process, and a random end."""
    host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname().split(".", 1)[0])[:40].strip("-") or "node"
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


def node_facts(progress: Progress, engines: Sequence[str], error: ReflashError | None) -> dict[str, Any]:
    """Who it is, and what it did until now."""
    me, now = process(os.getpid()), progress.snapshot()
    return {
        "host": socket.gethostname(),
        "place": place(),
        "pid": os.getpid(),
        "started": me.started if me else 0,
        "reflash": our_version(),
        "engines": list(engines),
        "rows": progress.under_way,
        "turns": now.turns - progress.not_here[0],
        "output_tokens": now.output_tokens - progress.not_here[1],
        "tokens_per_s": round(sum(e.tokens_per_s for e in now.engines if e.name in engines), 1),
        "seconds": round(now.seconds, 1),
        "in_flight": sum(engine.in_flight for engine in now.engines),
        "problem": printable(str(error), 1000) if error else "",
    }


def gone_here(facts: Mapping[str, Any]) -> bool:
    """Whether a node was a process of this machine, and is dead: so a run that goes on at once need not wait."""
    here = place()
    if not here or facts.get("place") != here:
        return False
    pid, started = facts.get("pid"), facts.get("started")
    if not isinstance(pid, int) or not isinstance(started, int) or not started:
        return False
    found = process(pid)
    return found is None or found.zombie or found.started != started
