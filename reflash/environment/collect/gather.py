"""All facts of one audit, in the order in which one needs the other."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from reflash.environment.collect.cards import Cards
from reflash.environment.collect.engine import read_engine
from reflash.environment.collect.interpreter import Looked, look
from reflash.environment.collect.libraries import read_libraries
from reflash.environment.collect.model import look_at_model
from reflash.environment.collect.served_model import tried_by
from reflash.environment.collect.system import machine, read_system
from reflash.environment.collect.toolkit import read_toolkit
from reflash.environment.facts import Facts, Subject
from reflash.environment.kernels.launch import launch_all


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be looked at."""

    subject: Subject
    python: str = ""  # interpreter of the engine's environment; "" for our own, with the embedded engine
    folder: Path = Path()  # where runs are written
    kernels: bool = True


def gather(wanted: Wanted, cards: Cards) -> Facts:
    """Look at everything; blocks, up to a minute and a half with kernels. What cannot be read is a fact."""
    subject = wanted.subject
    driver, found = cards.read()
    served = subject.engine != "llamacpp"
    looked = look(wanted.python or sys.executable, (subject.engine, "torch") if served else ("reflash",))
    facts = Facts(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        subject=subject,
        driver=driver,
        cards=found,
        python=looked.python,
        toolkit=read_toolkit(),
        model=look_at_model(subject.model) if subject.model else None,
        system=read_system(wanted.folder, hub=_of_hub(subject.model)),
    )
    return _with_engine(facts, looked, wanted.kernels) if served and not looked.python.error else facts


def _with_engine(facts: Facts, looked: Looked, kernels: bool) -> Facts:
    engine = read_engine(facts.subject.engine, looked)
    return replace(
        facts,
        engine=engine,
        model=tried_by(facts.model, looked.python.executable, engine.name) if facts.model else None,
        libraries=read_libraries(engine.name, looked.folders) if engine.version else None,
        kernels=launch_all(facts, os.environ) if kernels and facts.cards else {},
    )


def _of_hub(model: str) -> bool:
    return model.count("/") == 1 and not model.startswith((".", "/", "~")) and not Path(model).is_dir()
