"""Which log lines a person sees, in the run's Logs tab and on the terminal."""

from __future__ import annotations

import logging

from prefect.context import FlowRunContext, TaskRunContext
from prefect.logging.handlers import APILogHandler

from reflash.errors import ReflashError

# Prefect writes these of each task, without its name: they would bury all others.
NOISE = ("Finished in state Completed(", "Finished in state NotReady(")
TOLD = (  # what we say ourselves
    "Finished in state",
    "Crash detected! Execution was aborted by an interrupt signal",
    "Task run failed with exception: ",
)


class RunLog(APILogHandler):
    """Sends lines to the Logs tab of the run in which they are written."""

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line; outside a run there is nowhere to send it to."""
        if TaskRunContext.get() or FlowRunContext.get():
            super().emit(record)


def show_in_run() -> None:
    """Bring what `reflash` itself logs into the Logs tab, and leave out what says nothing. May be called again."""
    ours = logging.getLogger("reflash")
    if not any(isinstance(handler, RunLog) for handler in ours.handlers):
        ours.addHandler(RunLog())
        ours.setLevel(logging.INFO)
    logging.getLogger("prefect.task_runs").addFilter(says_something)


def quiet_terminal() -> None:
    """Keep the terminal for the progress bar: Prefect's errors and other warnings still show."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(belongs_on_terminal)


def says_something(record: logging.LogRecord) -> bool:
    """Whether a task's line is more than that it went well, or that it waited for one that did not."""
    return not record.getMessage().startswith(NOISE)


def belongs_on_terminal(record: logging.LogRecord) -> bool:
    """Whether a person at a terminal needs a line. Takes the traceback off errors whose sentence is meant for people.

    Prefect's warnings are about Prefect, or in the report too; its states and the flow's own error come twice.
    """
    if not record.name.startswith("prefect"):
        return record.levelno >= logging.WARNING
    if record.levelno < logging.ERROR or record.getMessage().startswith(TOLD):
        return False
    if record.exc_info and isinstance(record.exc_info[1], ReflashError):
        record.exc_info = record.exc_text = None  # the Logs tab has it: its handler comes first
        return record.name != "prefect.flow_runs"
    return True
