"""The command line. Heavy imports wait until a command needs them, so that --help is quick."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from flows.audit_cli import audit_app
from flows.benchmark_cli import benchmark
from flows.engines_cli import engines_app
from flows.exporting import export
from flows.house.commands import down, up
from flows.node_cli import node
from flows.pushing import push
from reflash.errors import ConfigError, ManifestChanged, ReflashError

app = typer.Typer(
    name="reflash",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # paragraphs flow to the width of the terminal; the default keeps line breaks
)
config_app = typer.Typer(no_args_is_help=True, help="What a run config may say.")
app.add_typer(config_app, name="config")
app.add_typer(engines_app, name="engines")
app.add_typer(audit_app, name="audit")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Run = Annotated[str, typer.Argument(help="A run's folder: a path or a URL.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change one setting: dotted.key=value, read as YAML. May be given often."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's own log lines too.")]


def _version(wanted: bool) -> None:
    if wanted:
        from reflash.about import our_version

        typer.echo(f"reflash {our_version()}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Regenerate the answers of a training set with the model that will serve, and prove each row fit to train on.

    Start with `reflash demo`: it needs no GPU and takes about two minutes. Then look at your own set with `reflash
    inspect`, write a config (`reflash config example` prints one to begin with) and run `reflash regenerate`.
    """


@app.command()
def demo(
    run: Annotated[Path, typer.Option(help="Folder of the run; the same folder goes on where it stopped.")] = Path(
        "runs/demo"
    ),
    overrides: Overrides = None,
    verbose: Verbose = False,
) -> None:
    """Regenerate the set that comes with Reflash, on this machine's CPU.

    128 conversations whose old answers are mostly `OK.` are answered anew by SmolLM2-135M-Instruct on llama.cpp.
    """
    from reflash.config.load import load_config

    example = Path(__file__).parent.parent / "reflash" / "demo" / "demo.yaml"
    _regenerate(load_config(example, overrides or []).model_copy(update={"run": str(run)}), verbose)


@app.command()
def regenerate(
    config: Annotated[Path, typer.Argument(help="A run config in YAML.")],
    overrides: Overrides = None,
    verbose: Verbose = False,
) -> None:
    """Regenerate every answer of a set.

    Run the same command again after a crash, a stop or a failure: it goes on where it was. It exits 0 only when
    every row has a verdict.
    """
    from reflash.config.load import load_config

    _regenerate(load_config(config, overrides or []), verbose)


@app.command()
def again(
    run: Run,
    reason: Annotated[
        list[str], typer.Option(help="Why a turn was set aside: truncated, loop, ... May be given often.")
    ],
    into: Annotated[str | None, typer.Option(help="Folder of the new run; by default RUN-again.")] = None,
    overrides: Overrides = None,
    verbose: Verbose = False,
) -> None:
    """Make again what a run set aside, with other settings, and put what comes out good into its dataset.

    For example: reflash again runs/all --reason truncated --set sampling.max_new_tokens=32768. The same command goes
    on after a stop.
    """
    from flows.again import second_pass

    _regenerate(second_pass(run, tuple(reason), into, overrides or []), verbose)


@app.command()
def inspect(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="Files, folders, globs or Hub ids, looked at as one set.")
    ],
    as_json: Json = False,
    split: Annotated[str | None, typer.Option(help="Split of a Hub set or DatasetDict.")] = None,
    threshold: Annotated[
        int, typer.Option(help="Tokenized sets: a turn with this many supervised tokens or fewer is an empty answer.")
    ] = 6,
    vocabulary: Annotated[
        int | None, typer.Option(help="Tokenized sets: number of ids the model knows; by default told by its ids.")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Conversations: the tokenizer that counts; by default SmolLM2's.")
    ] = None,
    context: Annotated[
        int,
        typer.Option(
            help="Tokens, a drafter's usual training length: prompts as long are rejected, and tokenized rows that are "
            "longer are listed. 0: no limit.",
        ),
    ] = 4096,
) -> None:
    """Look at a set before using it: what each row is, and why some are unfit.

    Tokenized sets (input_ids, loss_mask) are told apart from conversations by their columns. Exits 1 where no row
    can be used, or a file cannot be read (the others are looked at all the same), 2 where there is no such path.
    """
    from flows.inspecting import inspect_paths

    raise typer.Exit(inspect_paths(paths, split, threshold, vocabulary, tokenizer, context, as_json=as_json))


@app.command()
def status(
    run: Run,
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every few seconds until it is complete.")] = False,
) -> None:
    """How far a run is and who works on it, from its folder alone: no Prefect, no engine.

    From any machine that can reach the folder, also while nodes are at work. Exits 1 while rows are missing.
    """
    from reflash.report.status import run_status

    if watch:
        from flows.screen import watch_status

        found = watch_status(lambda: run_status(run))
    else:
        found = run_status(run)
    if as_json:
        _print_json(found)
    elif not watch:
        from flows.screen import show_status

        show_status(found)
    raise typer.Exit(0 if found["complete"] else 1)


@app.command()
def validate(run: Run, as_json: Json = False, overrides: Overrides = None) -> None:
    """Judge every finished shard again, and write the dataset, the rejects and the report anew.

    Needs the model's tokenizer, no engine. Other rules: --set validation.loop_window=128. Exits 1 where rows are
    missing.
    """
    from flows.screen import show_report
    from flows.validating import validate_run

    report = validate_run(run, overrides or [])
    if as_json:
        _print_json(report.to_json())
    else:
        show_report(report)
    if not report.complete:
        print("reflash: the run is not finished; `reflash status` says what is missing", file=sys.stderr)  # noqa: T201
    raise typer.Exit(0 if report.complete else 1)


app.command()(benchmark)
app.command()(export)
app.command()(node)
app.command()(push)
app.command()(up)
app.command()(down)


@config_app.command()
def schema() -> None:
    """Print the JSON schema of a run config: every key with its meaning, default and limits."""
    from reflash.config.run import RunConfig

    _print_json(RunConfig.model_json_schema())


@config_app.command()
def example(
    engine: Annotated[str, typer.Option(help="Kind of engine: vllm, sglang, endpoint, llamacpp.")] = "vllm",
) -> None:
    """Print a config to begin with: YAML with every key, its default, and what it means."""
    from reflash.config.example import example as text

    typer.echo(text(engine), nl=False)


def main() -> None:
    """Run a command; an error that a person can mend is printed without a traceback."""
    try:
        app()
    except ReflashError as error:
        _leave(str(error), 2 if isinstance(error, ConfigError | ManifestChanged) else 1)


def _leave(words: str, code: int) -> NoReturn:
    print(f"reflash: {words}", file=sys.stderr)  # noqa: T201
    sys.exit(code)


def _regenerate(config: Any, verbose: bool) -> None:
    from reflash.engines.open import check_engines
    from reflash.plan.preflight import preflight

    if not config.nodes.count:
        check_engines(config.engine, context=config.model.context)
    preflight(config)
    from prefect.exceptions import ObjectNotFound

    from flows import watch
    from flows.logs import quiet_terminal
    from flows.regenerate import regenerate as flow
    from flows.screen import progress_bar, show_report
    from flows.server import some_server

    if not verbose:
        quiet_terminal()
    try:
        with some_server(), progress_bar() as listener:
            watch.listeners.append(listener)
            report = flow(config)
    except KeyboardInterrupt:
        _leave("stopped; what was finished is safe, and the same command goes on with the rest", 130)
    except ObjectNotFound:
        _leave(
            "the Prefect server knows this run no longer: its database is another one. What was finished is safe, and"
            " the same command goes on with the rest",
            1,
        )
    finally:
        watch.listeners.clear()
    show_report(report)


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
