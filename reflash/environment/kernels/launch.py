"""Which programs are launched, with what, and what came of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from reflash.engines.serve.command import server_environment
from reflash.environment.facts import Facts, Kernel, Outcome
from reflash.environment.kernels.child import GIB, Ended, run_child
from reflash.printable import printable

PROGRAMS = Path(__file__).with_name("programs")
# Loads one program and writes what it measured as the last line; a package that it wants and that is not there is told.
BOOT = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("program", sys.argv[1])
program = importlib.util.module_from_spec(spec)
sys.modules["program"] = program
try:
    spec.loader.exec_module(program)
    told = program.measure(json.loads(sys.argv[2]))
except ImportError as error:
    told = {"outcome": "absent", "says": str(error)}
sys.stdout.write("\\n" + json.dumps(told) + "\\n")
"""


@dataclass(frozen=True, slots=True)
class Program:
    """One program and the limits it is held to."""

    name: str
    limit_s: float = 60.0
    memory: int = 24 * GIB  # resident, of the host
    when: Callable[[Facts], bool] = lambda _: True


def _tp(facts: Facts) -> bool:
    return facts.subject.tp > 1


def _quantised(kind: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.model is not None and facts.model.quantised == kind


PLAN = (
    Program("cuinit", 20.0),
    Program("bf16"),
    Program("host_copy"),
    Program("triton"),
    Program("graph"),
    Program("fa2", when=lambda facts: facts.subject.engine == "vllm"),
    Program(
        "gated_delta",
        120.0,
        when=lambda facts: facts.subject.engine == "vllm" and facts.model is not None and facts.model.hybrid,
    ),
    Program("fp8", when=_quantised("fp8")),
    Program("nvfp4", when=_quantised("nvfp4")),
    Program("jit", 180.0, when=lambda facts: bool(facts.toolkit.ninja and facts.toolkit.nvcc)),
    Program("all_reduce", when=_tp),
    Program("peer_copy", when=_tp),
)


def launch_all(facts: Facts, environment: Mapping[str, str]) -> dict[str, Kernel]:
    """Launch what applies to these facts, one after the other, by the audited interpreter; blocks.

    Once cuInit fails nothing else is tried. A program that fails, hangs or crashes is a fact.
    """
    done: dict[str, Kernel] = {}
    if facts.python is None:
        return done
    variables = server_environment(environment, {"PYTHONUNBUFFERED": "1"})
    options = {"cards": len(facts.cards), "visible": facts.driver.visible}
    for program in PLAN:
        if program.when(facts):
            done[program.name] = launch(
                facts.python.executable, PROGRAMS / f"{program.name}.py", options, variables, program
            )
            if program.name == "cuinit" and done["cuinit"].outcome != "passed":
                break
    return done


def launch(
    python: str, file: Path, options: Mapping[str, Any], environment: Mapping[str, str], limits: Program
) -> Kernel:
    """One program in a child process; blocks until its end or its limit."""
    argv = [python, "-I", "-c", BOOT, str(file), json.dumps(options)]
    return came_of(run_child(argv, environment, limits.limit_s, limits.memory))


def came_of(ended: Ended) -> Kernel:
    """What a child that ended has told."""
    said = printable(ended.errors.strip().rpartition("\n")[2], 300)
    if ended.outcome != "passed":
        return Kernel(ended.outcome, "; ".join(filter(None, (ended.why, said))), ended.seconds)
    try:
        told = json.loads(ended.output.rstrip().rpartition("\n")[2])
        outcome, says, rate = told["outcome"], str(told["says"]), told.get("rate")
    except (ValueError, KeyError, TypeError, AttributeError):
        return Kernel("raised", f"it told nothing; {said}", ended.seconds)
    if outcome not in get_args(Outcome):
        return Kernel("raised", f"it told {printable(str(outcome))}", ended.seconds)
    return Kernel(outcome, printable(says, 300), ended.seconds, None if rate is None else float(rate))
