"""Models through their own chat template."""

from __future__ import annotations

import json
import logging

import pytest

from reflash.errors import RenderError
from reflash.render.control import Encoder
from reflash.render.template import TemplateRenderer
from reflash.types import Answer, Message, ToolCall
from tests.render.small import ids_of, loaded, template_renderer

ASK = Message("user", "Hi")
CHATML = (
    "{% for m in messages %}<s>{{ m.role }}:{{ m.content }}<e>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant:{% endif %}"
)
OPENS = CHATML.replace("assistant:{% endif %}", "assistant:<think>\n{% endif %}")
DUMP = "{{ messages | tojson }}{{ tools | tojson }}"


def prompt(renderer: TemplateRenderer, *messages: Message, tools: str = "", thinking: bool = True) -> str:
    return renderer.decode(renderer.prompt(messages, tools, thinking=thinking))


def test_the_template_gets_no_null_keys_and_arguments_as_objects() -> None:
    call = ToolCall("call_0", "weather", '{"city": "Rome", "days": [1, null]}')
    tools = '[{"type": "function", "function": {"name": "weather"}}]'
    messages = (ASK, Message("assistant", "", tool_calls=(call,)), Message("tool", "18", tool_call_id="call_0"))
    written = prompt(template_renderer(DUMP), *messages, tools=tools)
    decoder = json.JSONDecoder()
    seen, end = decoder.raw_decode(written)
    assert json.loads(written[end:]) == json.loads(tools)
    function = {"name": "weather", "arguments": {"city": "Rome", "days": [1, None]}}
    assert seen == [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "18", "tool_call_id": "call_0"},
    ]


def test_arguments_that_are_no_object_stay_text() -> None:
    renderer = template_renderer("{{ messages[0].tool_calls[0].function.arguments }}")
    assert prompt(renderer, Message("assistant", "", tool_calls=(ToolCall("c", "f", "{broken"),))) == "{broken"


def test_special_tokens_and_switches_reach_the_template() -> None:
    source = "{{ bos_token }}{{ enable_thinking }}{{ preserve_thinking }}{{ clear_thinking }}"
    renderer = template_renderer(source, "<s>", preserve=True, bos_token="<s>")
    assert prompt(renderer, ASK, thinking=False) == "<s>FalseTrueFalse"
    assert renderer.prompt([ASK], "", thinking=False)[0] in renderer.control_ids


def test_a_template_s_own_refusal_is_a_render_error_with_its_words() -> None:
    source = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('No system!') }}{% endif %}{% endfor %}"
    )
    with pytest.raises(RenderError, match="chat template of small refuses this conversation: No system!"):
        template_renderer(source).prompt([Message("system", "x"), ASK], "", thinking=True)


@pytest.mark.parametrize("source", ["{{ messages[0].nothing.at_all }}", "{{ 'a' + 1 }}", "{{ messages[7] + 'x' }}"])
def test_a_template_that_breaks_is_a_render_error(source: str) -> None:
    with pytest.raises(RenderError, match="refuses this conversation"):
        template_renderer(source).prompt([ASK], "", thinking=True)


def test_a_template_cannot_reach_out_of_its_sandbox() -> None:
    with pytest.raises(RenderError, match="unsafe"):
        template_renderer("{{ ''.__class__.__mro__ }}").prompt([ASK], "", thinking=True)


def test_the_end_mark_that_the_template_writes_comes_first() -> None:
    renderer = template_renderer(CHATML, "<s>", "<e>", "<|endoftext|>", eos="<|endoftext|>")
    assert [renderer.decode([number]) for number in renderer.stop_ids] == ["<e>", "<|endoftext|>"]


def test_where_the_prompt_opens_the_thought_the_output_begins_inside_it() -> None:
    renderer = template_renderer(OPENS, "<s>", "<e>", "<think>", "</think>")
    asked = renderer.prompt([ASK], "", thinking=True)
    assert renderer.answer(asked, ids_of(renderer, "Hm.\n</think>\n\nHello <e>")) == Answer(
        "Hello ", "Hm.", (), "closed"
    )
    assert renderer.answer(asked, ids_of(renderer, "Hm.")) == Answer("", "Hm.", (), "open")


def test_a_thought_mark_at_the_end_of_the_user_s_words_opens_nothing() -> None:
    renderer = template_renderer("{{ messages[0].content }}", "<think>", "</think>")
    asked = renderer.prompt([Message("user", "<think>")], "", thinking=True)
    assert renderer.answer(asked, renderer.encode("Hello")) == Answer("Hello", None, (), "none")


def test_a_vocabulary_without_thought_tokens_spells_them_out() -> None:
    renderer = template_renderer(OPENS + "{# </think> #}", "<s>", "<e>")
    asked = renderer.prompt([ASK], "", thinking=True)
    assert renderer.answer(asked, renderer.encode("Hm.</think>Hello")) == Answer("Hello", "Hm.", (), "closed")
    assert renderer.answer((), renderer.encode(" <think>Hm.")) == Answer("", "Hm.", (), "open")


def test_a_model_that_knows_no_thinking_may_write_of_it() -> None:
    renderer = template_renderer(CHATML, "<s>", "<e>")
    assert renderer.answer((), renderer.encode("<think> is a tag")) == Answer("<think> is a tag", None, (), "none")


def test_other_marks_of_thinking_are_known() -> None:
    renderer = template_renderer(CHATML, "<s>", "<e>", "[THINK]", "[/THINK]")
    assert renderer.answer((), ids_of(renderer, "[THINK]Hm.[/THINK]Hello")) == Answer("Hello", "Hm.", (), "closed")


def test_content_is_stripped_where_the_template_strips_it() -> None:
    trimming = template_renderer(CHATML.replace("m.content", "m.content | trim"), "<s>", "<e>")
    assert trimming.answer((), trimming.encode(" Hello \n")).content == "Hello"
    keeping = template_renderer(CHATML, "<s>", "<e>")
    assert keeping.answer((), keeping.encode(" Hello \n")).content == " Hello \n"


def test_calls_spelt_out_by_a_vocabulary_without_call_tokens_are_read() -> None:
    renderer = template_renderer(CHATML, "<s>", "<e>")
    written = (
        'Hm.\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>\n<tool_call>{"name": "g"}</tool_call>'
    )
    calls = (ToolCall("call_0", "f", '{"x": 1}'), ToolCall("call_1", "g", "{}"))
    assert renderer.answer((), renderer.encode(written)) == Answer("Hm.", None, calls, "none")


def test_what_the_model_emitted_is_the_rest_of_the_whole_rendering() -> None:
    renderer = template_renderer(CHATML, "<s>", "<e>", eos="<e>")
    assert renderer.decode(renderer.emitted([ASK, Message("assistant", "Hello")], "", thinking=True)) == "Hello<e>"


def test_a_template_that_leaves_the_last_turn_open_gets_the_end_mark() -> None:
    source = CHATML.replace("<e>\n", "{% if not loop.last or m.role == 'user' %}<e>\n{% endif %}")
    renderer = template_renderer(source, "<s>", "<e>", eos="<e>")
    assert renderer.decode(renderer.emitted([ASK, Message("assistant", "Hello")], "", thinking=True)) == "Hello<e>"


def test_a_template_that_writes_the_prompt_otherwise_later_is_an_error_not_a_shift() -> None:
    unstable = "{{ messages | length }}" + CHATML
    with pytest.raises(RenderError, match="the answer's ids cannot be told"):
        template_renderer(unstable, "<s>", "<e>").emitted([ASK, Message("assistant", "Hello")], "", thinking=True)


def test_a_template_that_is_not_jinja_is_an_error_once_not_for_each_row() -> None:
    with pytest.raises(RenderError, match="chat template of small is not valid Jinja: line 1"):
        template_renderer("{% if %}")


def test_a_template_that_writes_the_date_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        template_renderer("{{ strftime_now('%d %b %Y') }}")
    assert "writes today's date into prompts" in caplog.text


def test_the_digest_follows_template_and_preserving() -> None:
    digests = {
        template_renderer(CHATML, "<s>", "<e>").digest,
        template_renderer(CHATML, "<s>", "<e>", preserve=True).digest,
        template_renderer(OPENS, "<s>", "<e>").digest,
    }
    assert len(digests) == 3
    assert template_renderer(OPENS, "<s>", "<e>").digest in digests


def test_the_vocabulary_is_at_least_what_the_config_says() -> None:
    made = loaded("<s>", "<e>")
    encoder = Encoder(made.tokenizer, CHATML, "small")
    assert TemplateRenderer(made, encoder, CHATML, preserve=False).vocabulary == 258
    assert TemplateRenderer(made, encoder, CHATML, preserve=False, vocabulary=300).vocabulary == 300
