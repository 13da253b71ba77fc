"""What holds for every task."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.prefect, pytest.mark.filterwarnings("ignore")]  # importing Prefect takes seconds


def test_no_task_has_a_tag_since_it_could_then_not_start_while_the_server_is_away() -> None:
    from tasks.generate import generate
    from tasks.group import shards
    from tasks.plan import plan
    from tasks.publish import publish
    from tasks.report import report
    from tasks.validate import validate

    assert [task.tags for task in (plan, generate, validate, publish, shards, report)] == [set()] * 6
