"""Which log lines a person sees."""

from __future__ import annotations

import logging

import pytest

from reflash.errors import EngineLost

pytestmark = [pytest.mark.prefect, pytest.mark.filterwarnings("ignore")]  # importing Prefect takes seconds


def line(name: str, level: int, text: str, error: Exception | None = None) -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, text, None, (type(error), error, None) if error else None)


def test_lines_that_say_nothing_stay_out_of_the_logs_tab() -> None:
    from flows.logs import says_something

    assert not says_something(line("prefect.task_runs", logging.INFO, "Finished in state Completed()"))
    assert not says_something(line("prefect.task_runs", logging.ERROR, 'Finished in state NotReady("Upstream …")'))
    assert says_something(line("prefect.task_runs", logging.ERROR, 'Finished in state Failed("…")'))
    assert says_something(line("prefect.task_runs", logging.INFO, "Shard 00000 committed: 10 conversations"))


def test_the_terminal_shows_errors_and_our_own_warnings() -> None:
    from flows.logs import belongs_on_terminal

    assert belongs_on_terminal(line("prefect.task_runs", logging.ERROR, "Task run failed"))
    assert belongs_on_terminal(line("reflash.ledger.ledger", logging.WARNING, "torn"))
    assert not belongs_on_terminal(line("prefect.task_runs", logging.WARNING, "Shard 00000: loop"))
    assert not belongs_on_terminal(line("reflash.render.load", logging.INFO, "rendered with"))
    assert not belongs_on_terminal(line("prefect.task_runs", logging.ERROR, 'Finished in state Failed("…")'))


def test_an_error_meant_for_people_comes_without_its_traceback_once() -> None:
    from flows.logs import belongs_on_terminal

    shown = line("prefect.task_runs", logging.ERROR, "Task run failed", EngineLost("gone"))
    assert belongs_on_terminal(shown)
    assert shown.exc_info is None
    assert not belongs_on_terminal(line("prefect.flow_runs", logging.ERROR, "Encountered", EngineLost("gone")))


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    from flows.logs import belongs_on_terminal

    shown = line("prefect.flow_runs", logging.ERROR, "Encountered exception", ZeroDivisionError("x"))
    assert belongs_on_terminal(shown)
    assert shown.exc_info is not None
