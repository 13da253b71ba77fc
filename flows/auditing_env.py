"""`reflash audit env`: whether this machine is ready, and what to do where it is not."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from reflash.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from reflash.environment.facts import EngineName, Facts
    from reflash.environment.judge import Finding


def env(
    engine: Annotated[str, typer.Option(help="llamacpp (embedded), vllm or sglang.")] = "llamacpp",
    python: Annotated[
        str, typer.Option(help="Interpreter of the engine's environment; by default the one that was made here.")
    ] = "",
    model: Annotated[str, typer.Option(help="Folder or Hub id of the model to serve.")] = "",
    context: Annotated[int, typer.Option(help="Tokens of the longest sequence that is planned.", min=1)] = 8192,
    tp: Annotated[int, typer.Option(help="GPUs that serve one model together.", min=1)] = 1,
    runs: Annotated[Path, typer.Option(help="Folder where runs are written.")] = Path("runs"),
    facts: Annotated[Path | None, typer.Option(help="Judge this recorded document instead of the machine.")] = None,
    last: Annotated[Path | None, typer.Option(help="Compare with this document; by default the last audit.")] = None,
    save: Annotated[Path | None, typer.Option(help="Record the facts in this file.")] = None,
    kernels: Annotated[bool, typer.Option(help="Launch programs on the GPU, each in a child process.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Look at driver, cards, environment, model and machine, and name the remedy of each fault.

    Exits 0 where all is well, 1 on a warning, 2 on a failure, 3 where something could not be read and nothing fails.
    """
    from reflash.environment.facts import write_facts
    from reflash.environment.history import keep, last_of
    from reflash.environment.judge import EXIT, judge, verdict

    found = _read(facts) if facts else _collect(engine, python, model, context, tp, runs, kernels)
    before = _read(last) if last else None if facts else last_of(found)
    findings = judge(found, before)
    if save is not None:
        save.write_bytes(write_facts(found) + b"\n")
    if facts is None:
        keep(found)
    if as_json:
        told = {"verdict": verdict(findings), "findings": [asdict(f) for f in findings]}
        told["facts"] = json.loads(write_facts(found))
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False).encode())
    else:
        _show(found, findings)
    raise typer.Exit(EXIT[verdict(findings)])


def _read(path: Path) -> Facts:
    """A recorded document; one that cannot be read is exit code 3, for 1 is a warning here."""
    from reflash.environment.facts import load_facts

    try:
        return load_facts(path)
    except SourceError as error:
        typer.echo(f"reflash: {error}", err=True)
        raise typer.Exit(3) from error


def _collect(engine: str, python: str, model: str, context: int, tp: int, runs: Path, kernels: bool) -> Facts:
    from reflash.engines.provision.place import environment_python
    from reflash.environment.collect.cards import NvmlCards
    from reflash.environment.collect.gather import Wanted, gather
    from reflash.environment.facts import Subject

    if engine not in ("llamacpp", "vllm", "sglang"):
        raise ConfigError(f"--engine: {engine} is none of llamacpp, vllm, sglang")
    subject = Subject(cast("EngineName", engine), model, context, tp)
    interpreter = python or (environment_python(engine) if engine != "llamacpp" else "")
    return gather(Wanted(subject, interpreter, runs, kernels), NvmlCards())


def _show(facts: Facts, findings: tuple[Finding, ...]) -> None:
    """What is wrong with its remedy first, then what is well, then a count of what does not apply."""
    from reflash.environment.judge import verdict
    from reflash.printable import printable

    for finding in findings:
        if finding.status != "not applicable":
            typer.echo(f"{finding.status:<8} {finding.id:<20} {printable(finding.found, 300)}")
        if finding.remedy:
            typer.echo(f"{'':8} {'':<20} needs:  {finding.needs}")
            typer.echo(f"{'':8} {'':<20} remedy: {finding.remedy}")
    apart = sum(f.status == "not applicable" for f in findings)
    typer.echo(
        f"\n{verdict(findings)}: {len(findings) - apart} checks for {facts.subject.engine}, {apart} do not apply here"
    )
