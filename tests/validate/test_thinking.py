"""Each thinking mark at most once and in its place, whoever opens the thinking; and only where it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.render.base import Renderer
from reflash.render.load import load_renderer
from reflash.validate.marks import learn_marks
from tests.fake_renderer import CALL, CALLED, END, THINK, THOUGHT, USER, FakeRenderer
from tests.qwen_files import qwen3_tokenizer_folder, qwen36_tokenizer_folder
from tests.validate.making import PLAIN, PROMPT_OPENING, SELF_OPENING, TOOLS, asked, ended, judged, thought

WHOLE = "<think>\nA thought.\n</think>\n\nParis."
MALFORMED_WHERE_THE_MODEL_OPENS = (
    "A thought.</think>Paris.",
    WHOLE + "</think>More.",
    WHOLE + "<think>",
    WHOLE + "<think>x</think>",
    "<think>a</think><think>b</think>Paris.",
    "<think>a<think>b</think>Paris.",
    "Hm.<think>a</think>Paris.",
    "<|im_end|><think>a</think>Paris.",
)
MALFORMED_WHERE_THE_PROMPT_OPENS = (
    WHOLE,
    "A thought.</think>Paris.<think>x",
    "A thought.</think>Paris.</think>More.",
    "A thought.</think>Paris.<think>x</think>",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@pytest.fixture(scope="module")
def qwen3(folder: Path) -> Renderer:
    return load_renderer(
        ModelConfig(name="Qwen/Qwen3-8B", tokenizer=str(qwen3_tokenizer_folder(folder))), ThinkingConfig()
    )


@pytest.fixture(scope="module")
def qwen36(folder: Path) -> Renderer:
    return load_renderer(
        ModelConfig(name="Qwen/Qwen3.6-27B", tokenizer=str(qwen36_tokenizer_folder(folder))), ThinkingConfig()
    )


def emitted(renderer: Renderer, text: str, end: str = "<|im_end|>") -> tuple[int, ...]:
    """Text as ids, its marks as control tokens."""
    marks = {renderer.decode([one]): one for one in renderer.control_ids}
    out: list[int] = []
    while text:
        place, mark = min(((at, m) for m in marks if (at := text.find(m)) >= 0), default=(len(text), ""))
        out += renderer.encode(text[:place]) + ([marks[mark]] if mark else [])
        text = text[place + len(mark) :]
    return (*out, marks[end])


def reasons(renderer: Renderer, text: str, *, thinking: bool = True, end: str = "<|im_end|>") -> tuple[str, ...]:
    return judged(emitted(renderer, text, end), renderer, thinking_on=thinking).reasons


@pytest.mark.parametrize("text", MALFORMED_WHERE_THE_MODEL_OPENS)
def test_a_qwen3_thought_with_a_mark_too_many_or_astray_is_malformed(qwen3: Renderer, text: str) -> None:
    assert "thinking-malformed" in reasons(qwen3, text)


@pytest.mark.parametrize("text", MALFORMED_WHERE_THE_PROMPT_OPENS)
def test_a_qwen36_thought_with_a_mark_too_many_or_astray_is_malformed(qwen36: Renderer, text: str) -> None:
    assert "thinking-malformed" in reasons(qwen36, text)


def test_a_whole_thought_of_a_qwen_is_good(qwen3: Renderer, qwen36: Renderer) -> None:
    assert reasons(qwen3, WHOLE) == ()
    assert reasons(qwen3, "\n" + WHOLE) == ()
    assert reasons(qwen36, "A thought.\n</think>\n\nParis.") == ()


def test_a_malformed_thought_is_rejected_and_an_open_one_keeps_its_own_reason() -> None:
    judgement = judged(ended("France.", THOUGHT, "Paris."), SELF_OPENING, thinking_on=True)
    assert (judgement.verdict, judgement.reasons) == ("rejected", ("thinking-malformed",))
    assert judged(ended(THINK, "Hm."), SELF_OPENING, thinking_on=True).reasons == ("thinking-open",)
    assert judged(ended("Hm."), PROMPT_OPENING, thinking_on=True).reasons == ("thinking-open",)


def test_another_mark_before_the_thought_is_no_space() -> None:
    row = judged(ended(USER, THINK, "Hm.", THOUGHT, "Paris."), SELF_OPENING, thinking_on=True)
    assert "thinking-malformed" in row.reasons


@pytest.mark.parametrize("text", [WHOLE, "<think>A thought.\n</think>\n\nParis."])
def test_a_thought_of_a_qwen_with_thinking_off_is_flagged(qwen3: Renderer, qwen36: Renderer, text: str) -> None:
    for renderer in (qwen3, qwen36):
        row = judged(emitted(renderer, text), renderer, thinking_on=False)
        assert (row.verdict, row.reasons) == ("flagged", ("thinking-unasked",))


def test_a_lone_end_of_a_thought_with_thinking_off_is_malformed_too(qwen3: Renderer) -> None:
    assert reasons(qwen3, "A thought.</think>Paris.", thinking=False) == ("thinking-malformed", "thinking-unasked")


def test_thinking_off_is_broken_only_by_a_thought_and_only_where_it_can_be_turned_off() -> None:
    unasked = judged(thought("Hm.", "Paris."), SELF_OPENING, thinking_on=False)
    assert unasked.reasons == ("thinking-unasked",)
    assert judged(thought("", "Paris."), SELF_OPENING).verdict == "good"  # how some formats write "off"
    told = judged(ended("Paris."), PLAIN, exact=False, content="Paris.", reasoning="Hm.")
    assert "thinking-unasked" not in told.reasons


@pytest.mark.parametrize("nothing", ["\u200b", "\u2060\ufeff", " \u00ad\n", "\u3164", "\x00"])
def test_a_thought_or_an_answer_that_shows_nothing_is_empty(nothing: str) -> None:
    assert judged(thought(nothing, "Paris."), SELF_OPENING, thinking_on=True).reasons == ("thinking-empty",)
    assert judged(thought("France.", nothing), SELF_OPENING, thinking_on=True).reasons == ("empty",)
    assert judged(ended(f"Pa{nothing}ris.")).verdict == "good"


def test_the_end_that_the_template_does_not_write_is_flagged(qwen3: Renderer, qwen36: Renderer) -> None:
    for renderer, text in [(qwen3, WHOLE), (qwen36, "A thought.\n</think>\n\nParis.")]:
        row = judged(emitted(renderer, text, "<|endoftext|>"), renderer, thinking_on=True)
        assert (row.verdict, row.reasons) == ("flagged", ("wrong-end",))
        assert learn_marks(renderer).ends == {renderer.stop_ids[0]}


def test_a_role_mark_that_ends_turns_in_the_template_is_no_wrong_end() -> None:
    class EndsByRole(FakeRenderer):
        stop_ids = (END, USER)  # type: ignore[assignment]

    renderer = EndsByRole()
    assert learn_marks(renderer).ends == {END, USER}
    assert judged((*PLAIN.encode("Paris."), USER), renderer).verdict == "good"


def test_thinking_marks_pair_by_name() -> None:
    marks = learn_marks(SELF_OPENING)
    assert (marks.opens, marks.closes) == ({THINK}, {THOUGHT})
    assert (learn_marks(PLAIN).opens, learn_marks(PLAIN).closes) == (frozenset(), frozenset())


def test_text_behind_a_call_is_flagged_and_text_before_it_is_not(qwen3: Renderer) -> None:
    call = '<tool_call>\n{"name": "look", "arguments": {"at": "x"}}\n</tool_call>'
    thinking = "<think>\nHm.\n</think>\n\n"
    planned = asked(tools=TOOLS)
    before, behind, spaced = (
        judged(emitted(qwen3, thinking + text), qwen3, conversation=planned, thinking_on=True)
        for text in ("Let me look.\n" + call, call + "And so on", call + "\n")
    )
    assert (before.verdict, spaced.verdict) == ("good", "good")
    assert (behind.verdict, behind.reasons) == ("flagged", ("text-after-call",))
    fake = ended(CALL, '{"name": "look", "arguments": {}}', CALLED, "So.")
    assert judged(fake, conversation=planned).reasons == ("text-after-call",)
