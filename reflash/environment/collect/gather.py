"""All facts of one audit, in the order in which one needs the other."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from reflash.config.machine import MachineAudit
from reflash.engines.provision.place import environment_python
from reflash.environment.collect.cards import Cards
from reflash.environment.collect.engine import read_engine
from reflash.environment.collect.interpreter import Looked, look, look_here
from reflash.environment.collect.libraries import read_libraries
from reflash.environment.collect.model import look_at_model
from reflash.environment.collect.served_model import tried_by
from reflash.environment.collect.system import machine, read_system
from reflash.environment.collect.toolkit import read_toolkit
from reflash.environment.facts import Facts, Python, Subject
from reflash.environment.kernels.launch import launch_all
from reflash.environment.room import fewest
from reflash.errors import ConfigError


@dataclass(frozen=True, slots=True)
class _Found:
    """What was read so far, and where the engine's packages are."""

    facts: Facts
    looked: Looked


def gather(asked: MachineAudit, cards: Cards) -> Facts:
    """Look at everything; blocks, up to a minute and a half with kernels. What cannot be read is a fact."""
    found = _without_engine(asked, cards)
    served = asked.engine in ("vllm", "sglang")
    return _with_engine(found, asked) if served and not found.looked.python.error else found.facts


def _without_engine(asked: MachineAudit, cards: Cards) -> _Found:
    driver, gpus = cards.read()
    looked = _environment(asked)
    system = read_system(None if "://" in asked.runs else Path(asked.runs), hub=_of_hub(asked.model))
    model = look_at_model(asked.model, asked.revision, online=system.hub == "") if asked.model else None
    if model and asked.random_weights:
        model = replace(model, broken=None, to_fetch=0)
    tp = asked.tp or fewest(model, gpus, asked.context, asked.gpu_memory_utilization)
    facts = Facts(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        subject=Subject(asked.engine, asked.model, asked.context, tp, asked.gpu_memory_utilization),
        driver=driver,
        cards=gpus,
        python=None if asked.engine == "endpoint" else looked.python,
        toolkit=read_toolkit(python=looked.python.executable),
        model=model,
        system=system,
    )
    return _Found(facts, looked)


def _environment(asked: MachineAudit) -> Looked:
    """The engine's environment; that none was made is a fact as well."""
    if asked.engine == "endpoint":
        return Looked(Python("", error="the engine runs elsewhere"))
    if asked.engine == "llamacpp":
        return look_here(("reflash",))
    try:
        python = asked.python or environment_python(asked.engine)
    except ConfigError:
        return Looked(Python("", error=f"no environment with {asked.engine} was made here"))
    return look(python, (asked.engine, "torch"))


def _with_engine(found: _Found, asked: MachineAudit) -> Facts:
    """What only the engine's own interpreter knows. Importing it takes most of the time: both askers do it at once."""
    facts, looked = found.facts, found.looked
    name, model = facts.subject.engine, facts.model
    with ThreadPoolExecutor(1) as beside:
        trying = beside.submit(tried_by, model, looked.python.executable, name) if model and asked.imports else None
        engine = read_engine(name, looked, imports=asked.imports)
        libraries = read_libraries(name, looked.folders) if engine.version else None
    return replace(
        facts,
        engine=engine,
        model=trying.result() if trying else model,
        libraries=libraries,
        kernels=launch_all(facts, os.environ) if asked.kernels and facts.cards else {},
    )


def _of_hub(model: str) -> bool:
    return model.count("/") == 1 and not model.startswith((".", "/", "~")) and not Path(model).is_dir()
