"""Dataset rows: masks that cover exactly the emitted ids, and rejects with their reasons."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reflash.publish.rows import row_id, split_rows
from reflash.publish.summary import add_up, length_bin, summarize
from reflash.types import Judgement, Planned, Turn
from tests.fake_renderer import END, FakeRenderer
from tests.making import planned, talk, turn

RENDERER = FakeRenderer()


def answered(one: Planned, *answers: str) -> list[Turn]:
    positions = one.conversation.turns()
    return [
        replace(
            turn(one.conversation.id, number),
            position=positions[number],
            prompt_ids=(number, 7, 8),
            output_ids=(*RENDERER.encode(text), END),
        )
        for number, text in enumerate(answers)
    ]


def verdict(made: Turn, word: str = "good", *reasons: str) -> Judgement:
    return Judgement(made.conversation, made.turn, word, reasons)  # type: ignore[arg-type]


def test_the_mask_covers_exactly_the_emitted_ids() -> None:
    one = planned(talk("a", "what?"))
    (made,) = answered(one, "this")
    good, rejected = split_rows([one], [made], [verdict(made)], RENDERER, "m")
    (row,) = good.to_pylist()
    assert row["input_ids"] == [*made.prompt_ids, *made.output_ids]
    assert row["loss_mask"] == [0] * len(made.prompt_ids) + [1] * len(made.output_ids)
    assert rejected.num_rows == 0


def test_messages_hold_the_new_answers_never_the_old() -> None:
    one = planned(talk("a", "first", "second"))
    made = answered(one, "new one", "new two")
    good, _ = split_rows([one], made, [verdict(t) for t in made], RENDERER, "m")
    assert [[m["content"] for m in row["messages"]] for row in good.to_pylist()] == [
        ["first", "new one"],
        ["first", "new one", "second", "new two"],
    ]


def test_lists_are_empty_never_null_and_tools_are_json() -> None:
    one = planned(talk("a", "first"))
    made = answered(one, "new")
    good, _ = split_rows([one], made, [verdict(t) for t in made], RENDERER, "m")
    (row,) = good.to_pylist()
    assert [m["tool_calls"] for m in row["messages"]] == [[], []]
    assert row["tools"] == "[]"


def test_each_turn_of_several_is_a_row_with_an_id_of_its_own() -> None:
    one, other = planned(talk("a", "first", "second")), planned(talk("b", "only"))
    made = [*answered(one, "x", "y"), *answered(other, "z")]
    good, _ = split_rows([one, other], made, [verdict(t) for t in made], RENDERER, "m")
    assert good["id"].to_pylist() == ["a/0", "a/1", "b"]


NAMES = st.lists(st.sampled_from(["a", "a/0", "a/1", "a/0/0", "/0", "0", "a/", "a/x"]), unique=True, min_size=1)


@given(NAMES, st.data())
def test_no_two_rows_share_an_id_whatever_their_conversations_are_called(names: list[str], data: st.DataObject) -> None:
    turns = {name: data.draw(st.integers(1, 3)) for name in names}
    ids = [row_id(turn(name, number), several=count > 1) for name, count in turns.items() for number in range(count)]
    assert len(set(ids)) == len(ids)


def test_a_flagged_row_is_kept_out_of_the_dataset_and_kept_with_its_reasons() -> None:
    one, other = planned(talk("a", "q")), planned(talk("b", "q"))
    made = [*answered(one, "OK."), *answered(other, "fine")]
    judged = [verdict(made[0], "flagged", "placeholder"), verdict(made[1])]
    good, rejected = split_rows([one, other], made, judged, RENDERER, "m")
    assert good["id"].to_pylist() == ["b"]
    assert [(r["id"], r["verdict"], r["reasons"], r["messages"][-1]["content"]) for r in rejected.to_pylist()] == [
        ("a", "flagged", ["placeholder"], "OK.")
    ]


def test_shards_add_up_to_the_run() -> None:
    one = planned(talk("a", "first", "second"))
    made = answered(one, "x", "y")
    judged = [verdict(made[0]), verdict(made[1], "rejected", "loop")]
    total = add_up([summarize("00000", made, judged), summarize("00001", made, judged)])
    assert total.shards == ("00000", "00001")
    assert total.verdicts == {"good": 2, "rejected": 2}
    assert total.reasons == {"loop": 2}
    assert total.output_tokens == 8
    assert total.good_tokens == 4


def test_length_bins_are_four_to_a_doubling() -> None:
    assert [length_bin(n) for n in (1, 2, 4, 1024)] == [0, 4, 8, 40]
