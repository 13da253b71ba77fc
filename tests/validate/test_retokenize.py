"""Which answers of a shard are what their own text encodes to: all at once as one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reflash.validate.retokenize import canonical_outputs
from reflash.validate.shard import judge_shard
from tests.fake_renderer import BYTES, CALL, END, THINK, THOUGHT, VOCABULARY
from tests.validate.making import CONFIG, CONTEXT, PLAIN, SELF_OPENING, asked, ended, planned_of, turn_of

CONTROL = SELF_OPENING.control_ids
A = BYTES + ord("a")  # "aa" is one id: two of these are never chosen


def one_by_one(output: list[int]) -> bool:
    runs: list[list[int]] = [[]]
    for number in output:
        if number in CONTROL:
            runs.append([])
        else:
            runs[-1].append(number)
    return all(SELF_OPENING.encode(SELF_OPENING.decode(run)) == run for run in runs)


ids = st.sampled_from([A, A + 1, BYTES + 0xC3, BYTES + 0xA9, THINK, THOUGHT, CALL, END, VOCABULARY - 1, BYTES + 256])


@given(st.lists(st.lists(ids, max_size=8), max_size=6))
def test_outputs_together_are_judged_as_each_by_itself(outputs: list[list[int]]) -> None:
    assert canonical_outputs(outputs, SELF_OPENING, CONTROL) == [one_by_one(output) for output in outputs]


def test_outputs_without_a_plain_id_are_canonical() -> None:
    assert canonical_outputs([], PLAIN, CONTROL) == []
    assert canonical_outputs([(), (END,), (THINK, THOUGHT, END), ()], PLAIN, CONTROL) == [True] * 4
    assert canonical_outputs([(), (A, A, END), ()], PLAIN, CONTROL) == [True, False, True]


def test_in_a_shard_the_note_stands_on_the_turn_that_has_it() -> None:
    talks = [asked(f"Question {n}?", name=f"c{n}") for n in range(5)]
    turns = [turn_of(talk, ended("a", "a") if talk.id in ("c1", "c3") else ended("Paris.")) for talk in talks]
    judged = judge_shard(planned_of(talks), reversed(turns), PLAIN, CONFIG, CONTEXT)
    assert [j.conversation for j in judged if j.notes == ("retokenized",)] == ["c1", "c3"]
