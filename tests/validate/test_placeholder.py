from __future__ import annotations

import pytest

from reflash.config.run import ValidateConfig
from reflash.validate.placeholder import says_nothing

WORDS = ValidateConfig().placeholders


@pytest.mark.parametrize("text", ["OK!", "**OK.**", "_Okay_", "`sure`", "O.K.", "- ok", "(N/A)", "…", "TODO:", "OK 👍"])
def test_a_placeholder_in_any_dress_says_nothing(text: str) -> None:
    assert says_nothing(text, WORDS)


@pytest.mark.parametrize(
    "text", ["Na", "OK, Paris.", "+", "🙂", "!", "√", "42", "=>", "Okayama", "ok" + " and on" * 20]
)
def test_short_answers_that_say_something_are_none(text: str) -> None:
    assert not says_nothing(text, WORDS)


def test_without_placeholders_nothing_is_one() -> None:
    assert not says_nothing("OK.", ())
