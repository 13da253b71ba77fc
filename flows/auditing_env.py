"""`reflash audit env`: whether this machine is ready, and what to do where it is not."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reflash.errors import SourceError

if TYPE_CHECKING:
    from reflash.environment.audit import Audit
    from reflash.environment.facts import Facts


Engine = Annotated[
    str, typer.Option(help="llamacpp (embedded), vllm, sglang, or endpoint for one that runs elsewhere.")
]
Python = Annotated[
    str, typer.Option(help="Interpreter of the engine's environment; by default the one that was made here.")
]
Model = Annotated[str, typer.Option(help="Folder or Hub id of the model to serve.")]
Revision = Annotated[str | None, typer.Option(help="Revision of the Hub repository.")]
Context = Annotated[int, typer.Option(help="Tokens of the longest sequence that is planned.")]
Tp = Annotated[int | None, typer.Option(help="GPUs that serve one model together; by default the fewest it fits on.")]
Runs = Annotated[str, typer.Option(help="Where runs are written: a folder, or a URL of an object store.")]
Recorded = Annotated[Path | None, typer.Option(help="Judge this recorded document instead of the machine.")]
Last = Annotated[Path | None, typer.Option(help="Compare with this document; by default the last audit.")]
Save = Annotated[Path | None, typer.Option(help="Record the facts in this file.")]
Kernels = Annotated[bool, typer.Option(help="Launch programs on the GPU, each in a child process.")]
History = Annotated[bool, typer.Option(help="Compare with the last audit, and keep this one for the next.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]


def env(
    engine: Engine = "llamacpp",
    python: Python = "",
    model: Model = "",
    revision: Revision = None,
    context: Context = 8192,
    tp: Tp = None,
    runs: Runs = "runs",
    facts: Recorded = None,
    last: Last = None,
    save: Save = None,
    kernels: Kernels = True,
    history: History = True,
    as_json: Json = False,
) -> None:
    """Look at driver, cards, environment, model and machine, and name the remedy of each fault.

    Exits 0 where all is well, 1 on a warning, 2 on a failure, 3 where nothing fails but something that is needed
    (an import, a kernel, machine code) could not be looked at. What may be left out, such as a kernel log that this
    user may not read, is `unknown` in the table and does not count.
    """
    from reflash.config.machine import machine_audit
    from reflash.environment.audit import judged, take_audit
    from reflash.environment.facts import write_facts
    from reflash.environment.judge import EXIT
    from reflash.environment.text import terminal_lines

    before = _read(last) if last else None
    if facts is not None:
        audit = judged(_read(facts), before)
    else:
        given = {"engine": engine, "python": python, "model": model, "revision": revision, "context": context, "tp": tp}
        audit = take_audit(machine_audit(**given, runs=runs, kernels=kernels, history=history))
        audit = judged(audit.facts, before) if before else audit
    if save is not None:
        save.write_bytes(write_facts(audit.facts) + b"\n")
    told = _json(audit) if as_json else "\n".join(terminal_lines(audit))
    typer.echo(told.encode("utf-8", "replace"))
    raise typer.Exit(EXIT[audit.verdict])


def _read(path: Path) -> Facts:
    """A recorded document; one that cannot be read is exit code 3, for 1 is a warning here."""
    from reflash.environment.facts import load_facts

    try:
        return load_facts(path)
    except SourceError as error:
        typer.echo(f"reflash: {error}", err=True)
        raise typer.Exit(3) from error


def _json(audit: Audit) -> str:
    from reflash.environment.drift import changes, digest
    from reflash.environment.facts import write_facts

    told = {
        "verdict": audit.verdict,
        "findings": [asdict(finding) for finding in audit.findings],
        "stable": digest(audit.facts),
        "changes": [asdict(change) for change in changes(audit.facts, audit.last)],
        "facts": json.loads(write_facts(audit.facts)),
    }
    return json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)
