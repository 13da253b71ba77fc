from __future__ import annotations

from dataclasses import replace

import pytest

from reflash.types import Conversation, Judgement, Message, ToolCall
from tests.fake_renderer import CALL, CALLED
from tests.validate.making import TOOLS, asked, ended, judged


def calling(name: str, planned: Conversation) -> Judgement:
    return judged(ended(CALL, f'{{"name": "{name}", "arguments": {{}}}}', CALLED), conversation=planned)


def test_a_call_of_a_tool_that_was_never_offered_is_flagged() -> None:
    row = calling("nope", asked(tools=TOOLS))
    assert (row.verdict, row.reasons) == ("flagged", ("unknown-tool",))
    assert calling("look", asked()).reasons == ("unknown-tool",)
    assert calling("look", asked(tools=TOOLS)).verdict == "good"


@pytest.mark.parametrize("system", ["You may call look(at).", '<tools>{"name": "look"}</tools>'])
def test_a_tool_offered_in_the_text_of_the_prompt_is_offered(system: str) -> None:
    planned = asked()
    told = replace(planned, messages=(Message("system", system), *planned.messages))
    assert calling("look", told).verdict == "good"
    assert calling("loo", told).reasons == ("unknown-tool",)


def test_text_that_names_a_tool_offers_none_where_there_are_definitions() -> None:
    assert calling("nope", asked("Please nope.", tools=TOOLS)).reasons == ("unknown-tool",)


def test_a_tool_that_the_conversation_used_before_is_offered() -> None:
    call = ToolCall("call_0", "find", "{}")
    used = (
        Message("user", "Where?"),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", "Here.", tool_call_id="call_0"),
        Message("assistant", "OK."),
    )
    assert calling("find", Conversation("c", used)).verdict == "good"
