"""The environment audit on a GPU: clean, under load, and with one fault planted for each kernel check.

usage: python benchmarks/gpu/kernels.py --out FOLDER [--python INTERPRETER] [--site FOLDER ...]

The audited interpreter needs torch alone; the one of this script pydantic, typer and nvidia-ml-py. Writes FOLDER's
facts-idle.json, facts-busy.json, audit.json and kernels.json; exits 1 where a fault is not named by its check.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import planted

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from reflash.environment.collect.cards import NvmlCards  # noqa: E402
from reflash.environment.facts import Facts, Kernel, load_facts, write_facts  # noqa: E402
from reflash.environment.judge import judge  # noqa: E402
from reflash.environment.kernels.child import GIB  # noqa: E402
from reflash.environment.kernels.launch import PLAN, launch_all  # noqa: E402

COMMAND = "import typer; from flows.auditing_env import env; typer.run(env)"  # `reflash audit env` alone
LOAD = """
import time, torch
a = torch.randn(8192, 8192, device="cuda:0", dtype=torch.bfloat16)
until = time.monotonic() + 30
while time.monotonic() < until:
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    print("busy", flush=True)
"""
SETTLED_S = 4.0  # until figures of a card under load are those of the load
AT_ONCE = 6
LIMIT_S, HUNG_S, HOST_MEMORY = 60.0, 25.0, 6 * GIB


def main() -> None:
    """Everything, one line each."""
    options = _options()
    began = time.monotonic()
    result: dict[str, Any] = {"clean": clean(options.out, options.python)}
    idle = load_facts(options.out / "facts-idle.json")
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder), options.site)
        facts = with_the_rest(idle, python)
        result["kernels"] = {name: asdict(kernel) for name, kernel in facts.kernels.items()}
        if facts.cards:
            result["busy"] = under_load(idle, python, options.out)
            result["planted"] = all_planted(facts)
    result["seconds"] = time.monotonic() - began
    (options.out / "kernels.json").write_text(json.dumps(result, indent=1) + "\n")
    planted_ones = [told for told in result.get("planted", ()) if told["caught"] is not None]
    missed = [told["fault"] for told in planted_ones if not told["caught"]]
    words = f"NOT CAUGHT: {', '.join(missed)}" if missed else "all caught"
    print(f"{result['seconds']:.0f} s; {len(planted_ones)} of {len(planted.FAULTS)} faults were planted, {words}")
    sys.exit(bool(missed))


def _options() -> Namespace:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environment under audit")
    parser.add_argument("--site", type=Path, action="append", default=[], help="a folder of packages more, as vllm's")
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    return options


def environment(folder: Path, sites: list[Path]) -> str:
    """An interpreter with our packages and those of `sites`, in which what REFLASH_PLANTED names is broken."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    ours = [path for path in sys.path if path.endswith("-packages")]
    lines = [f"import site; site.addsitedir({str(path)!r})" for path in (*(s.resolve() for s in sites), *ours)]
    (packages / "packages.pth").write_text("\n".join(lines) + "\n")
    shutil.copy(planted.__file__, packages)
    (packages / "planted.pth").write_text("import planted\n")
    return str(folder / "bin" / "python")


def clean(out: Path, python: str) -> dict[str, Any]:
    """The command as a user gives it, its seconds and its exit code."""
    began = time.monotonic()
    options = ["--engine", "vllm", "--python", python, "--runs", str(out), "--save", str(out / "facts-idle.json")]
    with tempfile.TemporaryDirectory() as history:
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *options, "--json"],
            cwd=ROOT,
            env={**os.environ, "XDG_DATA_HOME": history, "PYTHONPATH": _path()},
            capture_output=True,
            text=True,
            check=False,
        )
    seconds = time.monotonic() - began
    if done.returncode not in (0, 1, 2, 3) or not done.stdout.startswith("{"):
        sys.exit(f"the audit failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    told = json.loads(done.stdout)
    (out / "audit.json").write_text(json.dumps({**told, "facts": "see facts-idle.json"}, indent=1) + "\n")
    _leave_out(out / "facts-idle.json")
    for finding in told["findings"]:
        if finding["status"] != "not applicable":
            print(f"{finding['status']:<8} {finding['id']:<24} {finding['found'][:150]}")
    print(f"clean: {told['verdict']}, exit code {done.returncode}, {seconds:.1f} s", flush=True)
    return {"seconds": seconds, "exit": done.returncode, "verdict": told["verdict"]}


def _path() -> str:
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))


def _leave_out(path: Path) -> None:
    """Take the numbers that name a card or the machine out of a document."""
    facts = load_facts(path)
    path.write_bytes(write_facts(_nameless(facts)) + b"\n")


def _nameless(facts: Facts) -> Facts:
    return replace(facts, machine="left-out", cards=tuple(replace(c, uuid=f"GPU-{c.index}") for c in facts.cards))


def with_the_rest(facts: Facts, python: str) -> Facts:
    """With the programs that were not launched, since no model was named, or that found no engine there."""
    if facts.python is None or not facts.cards or facts.kernels["cuinit"].outcome != "passed":
        return facts
    done = {name for name, kernel in facts.kernels.items() if kernel.outcome != "absent"}
    rest = [replace(program, when=lambda _: True) for program in PLAN if program.name not in done]
    facts = replace(facts, python=replace(facts.python, executable=python))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = pool.map(lambda program: launch_all(facts, os.environ, [program]), rest)
        more = {name: kernel for part in parts for name, kernel in part.items()}
    for name, kernel in more.items():
        print(f"{kernel.outcome:<8} {name:<24} {kernel.says[:150]} ({kernel.seconds:.0f} s)", flush=True)
    return replace(facts, kernels={**facts.kernels, **more})


def under_load(facts: Facts, python: str, out: Path) -> dict[str, Any]:
    """The cards while they multiply, as a document of their own."""
    with _load(python):
        time.sleep(SETTLED_S)
        driver, cards = NvmlCards().read()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    busy = _nameless(replace(facts, made_at=now, driver=driver, cards=cards))
    (out / "facts-busy.json").write_bytes(write_facts(busy) + b"\n")
    found = {f.id: f.status for f in judge(busy) if f.id.startswith("cards.")}
    worst = {name: status for name, status in found.items() if status not in ("pass", "not applicable")}
    print(
        f"under load: {cards[0].busy} % busy, {cards[0].temperature} degrees, {worst or 'all cards pass'}", flush=True
    )
    return {"findings": found, "card": asdict(busy.cards[0])}


@contextmanager
def _load(python: str) -> Iterator[None]:
    child = subprocess.Popen([python, "-I", "-c", LOAD], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout
        if child.stdout.readline() != "busy\n":
            sys.exit("the load did not start")
        yield
    finally:
        child.kill()
        child.wait()


def all_planted(facts: Facts) -> list[dict[str, Any]]:
    """Several at once, but for those that take what others need."""
    together = [fault for fault in planted.FAULTS if not fault.alone]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = list(pool.map(lambda fault: one_planted(facts, fault), together))
    return told + [one_planted(facts, fault) for fault in planted.FAULTS if fault.alone]


def one_planted(facts: Facts, fault: planted.Fault) -> dict[str, Any]:
    """Launch the program in the broken environment, judge, and see that its check and no other came to say so."""
    before = facts.kernels.get(fault.kernel)
    if before is None or before.outcome != "passed":
        why = before.says if before else "it was not launched"
        return _tell(fault, None, before, f"not planted, since the program does not pass without: {why}")
    program = next(program for program in PLAN if program.name == fault.kernel)
    limit = HUNG_S if fault.outcome == "hung" else LIMIT_S
    held = replace(program, limit_s=limit, memory=HOST_MEMORY, when=lambda _: True)
    kernel = launch_all(facts, {**os.environ, "REFLASH_PLANTED": fault.name}, [held])[fault.kernel]
    named = _troubled(replace(facts, kernels={**facts.kernels, fault.kernel: kernel})) - _troubled(facts)
    caught = kernel.outcome == fault.outcome and named == {f"kernel.{fault.kernel}"}
    return _tell(fault, caught, kernel, f"{kernel.outcome}: {kernel.says} (named by {', '.join(named) or 'none'})")


def _troubled(facts: Facts) -> set[str]:
    return {finding.id for finding in judge(facts) if finding.status in ("fail", "unknown", "warn")}


def _tell(fault: planted.Fault, caught: bool | None, kernel: Kernel | None, words: str) -> dict[str, Any]:
    word = {True: "caught", False: "MISSED", None: "left out"}[caught]
    seconds = kernel.seconds if kernel else 0.0
    print(f"{word:<8} {fault.name:<24} {words[:200]} ({seconds:.0f} s)", flush=True)
    return {"fault": fault.name, "kernel": fault.kernel, "caught": caught, "told": words, "seconds": seconds}


if __name__ == "__main__":
    main()
