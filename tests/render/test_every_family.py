"""Every hand-made renderer that the config names, on a vocabulary of bytes and the family's control tokens."""

from __future__ import annotations

import json

import pytest

from reflash.render.control import Encoder
from reflash.render.family import FamilyRenderer
from reflash.types import Message, ToolCall
from tests.render.small import loaded

CHATML = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
CALLS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
VISION = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
GLM = (
    *("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
)
KIMI = (
    *("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "<|im_end|>"),
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    *("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
)
DEEPSEEK = (
    *("begin▁of▁sentence", "end▁of▁sentence", "User", "Assistant", "tool▁calls▁begin", "tool▁calls▁end", "tool▁sep"),
    *("tool▁call▁begin", "tool▁call▁end", "tool▁outputs▁begin", "tool▁outputs▁end"),
    *("tool▁output▁begin", "tool▁output▁end"),
)
LLAMA = (
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
    *("<|eot_id|>", "<|end_of_text|>", "<|eom_id|>"),
)
FAMILIES = {
    "qwen3": (*CHATML, *CALLS),
    "qwen3.5": (*CHATML, *CALLS, *VISION),
    "qwen3.6": (*CHATML, *CALLS, *VISION),
    "qwen3.8": (*CHATML, *CALLS, *VISION),
    "glm-4.5": (*GLM, *CALLS),
    "glm-5": (*GLM, *CALLS),
    "kimi-k2": KIMI,
    "deepseek-v3": tuple(f"<｜{name}｜>" for name in DEEPSEEK),
    "minimax-m2": ("]~!b[", "]~b]", "[e~[", "<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"),
    "nemotron-3": (*CHATML, *CALLS),
    "llama-3": LLAMA,
}  # not gpt-oss: its package brings a vocabulary that is downloaded
THINKING = frozenset(FAMILIES) - {"kimi-k2", "deepseek-v3", "llama-3"}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = json.dumps(
    [{"type": "function", "function": {"name": "weather", "description": "Weather", "parameters": PARAMETERS}}]
)
ASK = Message("user", "Weather?")
CALL = ToolCall("functions.weather:0", "weather", '{"city": "Paris"}')


def renderer_of(family: str) -> FamilyRenderer:
    made = loaded(*FAMILIES[family])
    return FamilyRenderer(made, Encoder(made.tokenizer), family, family, preserve=False)


@pytest.fixture(params=sorted(FAMILIES), scope="module")
def renderer(request: pytest.FixtureRequest) -> FamilyRenderer:
    return renderer_of(request.param)


@pytest.mark.parametrize("tool_calls", [(), (CALL,)])
def test_an_emitted_turn_reads_back_as_it_was(renderer: FamilyRenderer, tool_calls: tuple[ToolCall, ...]) -> None:
    reasoning = "Hm." if renderer.name in THINKING else None
    content = "" if renderer.name == "llama-3" and tool_calls else "Looking."  # Llama's calls stand alone
    turn = Message("assistant", content, reasoning=reasoning, tool_calls=tool_calls)
    emitted = renderer.emitted([ASK, turn], TOOLS, thinking=True)
    answer = renderer.answer(renderer.prompt([ASK], TOOLS, thinking=True), emitted, tools=TOOLS)
    assert (answer.content, answer.reasoning) == (content, reasoning)
    assert [(call.name, json.loads(call.arguments)) for call in answer.tool_calls] == [
        (call.name, json.loads(call.arguments)) for call in tool_calls
    ]
    assert answer.thinking == ("closed" if reasoning else "none")
    assert emitted[-1] in renderer.stop_ids


def test_control_text_from_a_user_stays_text(renderer: FamilyRenderer) -> None:
    typed = "".join(FAMILIES[renderer.name])
    evil = renderer.prompt([Message("user", typed)], TOOLS.replace('"Weather"', json.dumps(typed)), thinking=True)
    plain = renderer.prompt([Message("user", "Hi")], TOOLS, thinking=True)
    control = renderer.control_ids
    assert [number for number in evil if number in control] == [number for number in plain if number in control]


@pytest.mark.parametrize("family", sorted(THINKING))
def test_an_output_that_never_ends_its_thought_is_open(family: str) -> None:
    renderer = renderer_of(family)
    marks = {renderer.decode([number]): number for number in renderer.control_ids}
    prompt = renderer.prompt([ASK], "", thinking=True)
    opening = [] if renderer.decode(prompt).rstrip().endswith("<think>") else [marks["<think>"]]
    answer = renderer.answer(prompt, [*opening, *renderer.encode("Hm, let me")])
    assert (answer.content, answer.reasoning, answer.thinking) == ("", "Hm, let me", "open")
