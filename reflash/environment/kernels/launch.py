"""Which programs are launched, with what, and what came of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from reflash.engines.serve.command import server_environment
from reflash.environment.collect.toolkit import with_tools
from reflash.environment.facts import Facts, Kernel, Outcome
from reflash.environment.kernels.child import GIB, Ended, run_child
from reflash.printable import printable

PROGRAMS = Path(__file__).with_name("programs")
# Loads one program and writes what it measured as the last line. A package that is not there is told as absent; one
# that is there and does not import is a fault like any other.
BOOT = """
import importlib.util, json, sys, traceback
spec = importlib.util.spec_from_file_location("program", sys.argv[1])
program = importlib.util.module_from_spec(spec)
sys.modules["program"] = program
try:
    spec.loader.exec_module(program)
    told = program.measure(json.loads(sys.argv[2]))
except Exception as error:
    traceback.print_exc()
    lines = str(error).strip().splitlines() or ["-"]
    ends = " ... ".join(dict.fromkeys([lines[0], lines[-1]]))  # a compiler's begins with a place, ends with the reason
    told = {"outcome": "raised", "says": type(error).__name__ + ": " + ends}
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package and importlib.util.find_spec(package) is None:
        told = {"outcome": "absent", "says": f"no {package} in this environment"}
sys.stdout.write("\\n" + json.dumps(told) + "\\n")
"""
# What the drivers, torch and Triton write where memory of a GPU is refused.
REFUSED = ("out of memory", "OutOfMemoryError", "CUBLAS_STATUS_ALLOC_FAILED")


@dataclass(frozen=True, slots=True)
class Program:
    """One program and the limits it is held to."""

    name: str
    limit_s: float = 60.0
    memory: int = 24 * GIB  # resident, of the host
    when: Callable[[Facts], bool] = lambda _: True
    timed: bool = False  # nothing else runs meanwhile


def _tp(facts: Facts) -> bool:
    return facts.subject.tp > 1


def _quantised(kind: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.model is not None and facts.model.quantised == kind


PLAN = (
    Program("cuinit", 20.0, timed=True),
    Program("bf16", timed=True),
    Program("host_copy", timed=True),
    Program(
        "gated_delta",
        300.0,  # its autotuner compiles for 84 s where nothing is cached (H200), 24 s where something is
        when=lambda facts: facts.subject.engine == "vllm" and facts.model is not None and facts.model.hybrid,
    ),
    Program("triton"),
    Program("graph"),
    Program("flash_attention", when=lambda facts: facts.subject.engine == "vllm"),
    Program("fp8", when=_quantised("fp8")),
    Program("nvfp4", when=_quantised("nvfp4")),
    Program("jit", 180.0, when=lambda facts: bool(facts.toolkit.ninja and facts.toolkit.nvcc)),
    Program("all_reduce", when=_tp),
    Program("peer_copy", when=_tp),
)
AT_ONCE = 2  # so that none waits for the one that compiles for long


def launch_all(facts: Facts, environment: Mapping[str, str], plan: Sequence[Program] = PLAN) -> dict[str, Kernel]:
    """Launch what applies of a plan to these facts by the audited interpreter, what is timed first; blocks.

    Once cuInit fails nothing else is tried. A program that fails, hangs or crashes is a fact.
    """
    if facts.python is None:
        return {}
    python = facts.python.executable
    variables = with_tools(server_environment(environment, {"PYTHONUNBUFFERED": "1"}), python)
    options = {"cards": len(facts.cards), "visible": facts.driver.visible}

    def run(program: Program) -> Kernel:
        return launch(python, PROGRAMS / f"{program.name}.py", options, variables, program)

    done: dict[str, Kernel] = {}
    apply = [program for program in plan if program.when(facts)]
    for program in (p for p in apply if p.timed):
        done[program.name] = run(program)
        if program.name == "cuinit" and done["cuinit"].outcome != "passed":
            return done
    rest = [program for program in apply if not program.timed]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {**done, **dict(zip((p.name for p in rest), pool.map(run, rest), strict=True))}


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
        outcome, says, rate = told["outcome"], printable(str(told["says"]), 300), told.get("rate")
    except (ValueError, KeyError, TypeError, AttributeError):
        return Kernel("raised", f"it told nothing; {said}", ended.seconds)
    if outcome not in get_args(Outcome):
        return Kernel("raised", f"it told {printable(str(outcome))}", ended.seconds)
    if outcome == "raised" and any(words in says for words in REFUSED):
        return Kernel("memory", f"memory of the GPU was refused; {says}", ended.seconds)
    return Kernel(outcome, says, ended.seconds, None if rate is None else float(rate))
