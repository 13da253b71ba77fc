"""Engines kept full, and rows kept safe while they are."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reflash.config.run import RunConfig
from reflash.engines.base import Engine
from reflash.engines.scripted import Said, ScriptedEngine, completion, echo
from reflash.errors import (
    Defect,
    EngineAbsent,
    EngineBusy,
    EngineError,
    EngineGarbage,
    EngineLost,
    EngineMisconfigured,
    EngineRefused,
    EngineStarting,
    RunStopped,
    StoreError,
)
from reflash.generate.driver import Driver
from reflash.generate.progress import Progress
from reflash.ledger.ledger import Ledger
from reflash.types import Completion, Prompt
from tests.fake_renderer import END, FakeRenderer
from tests.making import begun, config, planned, rows, talk

Scenario = Callable[[Driver], Awaitable[None]]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return begun(tmp_path / "run")


def drive(ledger: Ledger, engines: list[Engine], scenario: Scenario, settings: RunConfig | None = None) -> None:
    """Run a scenario on a driver, and close it."""

    async def run() -> None:
        driver = Driver(settings or config(ledger.where), ledger, FakeRenderer(), engines, Progress())
        try:
            await scenario(driver)
        finally:
            await driver.aclose()

    asyncio.run(run())


def turns_in(ledger: Ledger, shard: str) -> list[dict[str, Any]]:
    return ledger.finished(shard).to_pylist()


def says(text: str) -> Callable[[Prompt], Said]:
    """A script that answers with a text."""
    ids = FakeRenderer().encode(text)
    return lambda prompt: completion(prompt, [*ids, END])


def test_every_conversation_is_answered_once(ledger: Ledger) -> None:
    engine = ScriptedEngine(echo, width=4)

    async def scenario(driver: Driver) -> None:
        await driver.run("00000", rows(50))

    drive(ledger, [engine], scenario)
    assert sorted(t["conversation"] for t in turns_in(ledger, "00000")) == [f"row-{n:04}" for n in range(50)]
    assert len(engine.asked) == 50
    assert engine.most_in_flight == 4


def test_no_engine_waits_while_another_shard_has_rows(ledger: Ledger) -> None:
    """The last row of the first shard hangs; the second shard runs to its end beside it."""
    release = asyncio.Event()

    async def script(prompt: Prompt) -> Said:
        if prompt.conversation == "first-0000":
            await release.wait()
        return echo(prompt)

    async def scenario(driver: Driver) -> None:
        first = asyncio.create_task(driver.run("00000", rows(3, "first")))
        await driver.run("00001", rows(30, "second"))
        assert not first.done()
        release.set()
        await first

    drive(ledger, [ScriptedEngine(script, width=2)], scenario)
    assert len(turns_in(ledger, "00000")) == 3


def test_an_earlier_shard_goes_first(ledger: Ledger) -> None:
    engine = ScriptedEngine(echo, width=1)

    async def scenario(driver: Driver) -> None:
        await asyncio.gather(driver.run("00001", rows(5, "late")), driver.run("00000", rows(5, "early")))

    drive(ledger, [engine], scenario)
    order = [p.conversation for p in engine.asked]
    assert max(order.index(f"early-{n:04}") for n in range(5)) <= 5
    assert order[-1].startswith("late")


def test_a_later_turn_is_asked_on_top_of_the_new_answers(ledger: Ledger) -> None:
    engine = ScriptedEngine(says("new words"), width=1)

    async def scenario(driver: Driver) -> None:
        await driver.run("00000", [planned(talk("two", "first", "second"))])

    drive(ledger, [engine], scenario)
    second = FakeRenderer().decode(engine.asked[1].tokens)
    assert "new words" in second
    assert "old answer" not in second
    assert [t["turn"] for t in turns_in(ledger, "00000")] == [0, 1]


def test_after_a_truncated_turn_the_rest_is_skipped_with_a_reason(ledger: Ledger) -> None:
    settings = config(ledger.where, sampling={"max_new_tokens": 4})
    engine = ScriptedEngine(says("far too long an answer"), width=1)

    async def scenario(driver: Driver) -> None:
        await driver.run("00000", [planned(talk("two", "first", "second"))])

    drive(ledger, [engine], scenario, settings)
    made = turns_in(ledger, "00000")
    assert [t["finish_reason"] for t in made] == ["length", "skipped"]
    assert "no usable answer" in made[1]["error"]


def test_seeds_differ_by_row_and_turn_and_come_again_in_another_run(ledger: Ledger, tmp_path: Path) -> None:
    def seeds(where: Ledger) -> list[int | None]:
        engine = ScriptedEngine(says("fine"), width=1)

        async def scenario(driver: Driver) -> None:
            await driver.run("00000", [planned(talk("two", "first", "second")), *rows(3)])

        drive(where, [engine], scenario)
        return [p.sampling.seed for p in engine.asked]

    first = seeds(ledger)
    assert len(set(first)) == 5
    assert first == seeds(begun(tmp_path / "again"))


def test_a_refused_row_is_set_aside_and_the_others_go_on(ledger: Ledger) -> None:
    def script(prompt: Prompt) -> Said:
        if prompt.conversation == "row-0003":
            return EngineRefused("400: too strange")
        return echo(prompt)

    engine = ScriptedEngine(script, width=4)

    async def scenario(driver: Driver) -> None:
        await driver.run("00000", rows(10))

    drive(ledger, [engine], scenario)
    refused = [t for t in turns_in(ledger, "00000") if t["finish_reason"] == "error"]
    assert [(t["conversation"], t["error"], t["attempts"]) for t in refused] == [("row-0003", "400: too strange", 1)]
    assert len(turns_in(ledger, "00000")) == 10


def test_what_may_pass_is_tried_again(ledger: Ledger) -> None:
    lost: set[str] = set()

    def script(prompt: Prompt) -> Said:
        if prompt.conversation not in lost:
            lost.add(prompt.conversation)
            return EngineLost("reset")
        return echo(prompt)

    async def scenario(driver: Driver) -> None:
        await driver.run("00000", rows(10))

    drive(ledger, [ScriptedEngine(script, width=4)], scenario)
    assert [t["attempts"] for t in turns_in(ledger, "00000")] == [2] * 10


def impatient(where: Ledger, absent_s: float) -> RunConfig:
    """A run that waits no longer than this for engines that are not there."""
    patience = {"absent_s": absent_s, "backoff_s": 0.01, "backoff_max_s": 0.05, "connect_s": 0.05}
    return config(where.where, engine={"kind": "scripted", "patience": patience})


@pytest.mark.parametrize("count", [100, 20, 1], ids=["among many", "near the end", "alone"])
def test_a_row_that_always_breaks_a_sound_engine_is_set_aside(ledger: Ledger, count: int) -> None:
    def script(prompt: Prompt) -> Said:
        return EngineLost("500: out of range") if prompt.conversation == "row-0000" else echo(prompt)

    async def scenario(driver: Driver) -> None:
        await asyncio.wait_for(driver.run("00000", rows(count)), 20)

    drive(ledger, [ScriptedEngine(script, width=4)], scenario, impatient(ledger, 60))
    bad = [t for t in turns_in(ledger, "00000") if t["finish_reason"] == "given-up"]
    assert [(t["conversation"], t["attempts"], t["error"]) for t in bad] == [("row-0000", 5, "500: out of range")]
    assert len(turns_in(ledger, "00000")) == count


@pytest.mark.parametrize("width", [2, 8, 40])
def test_only_the_row_that_kills_the_engine_is_set_aside_not_those_beside_it(ledger: Ledger, width: int) -> None:
    """Each time the row is asked, everything in flight dies with it, and all of it is asked again at once."""
    dying, up_again = asyncio.Event(), 0.0

    class Mortal(ScriptedEngine):
        async def generate(self, prompt: Prompt) -> Completion:
            nonlocal dying, up_again
            if time.monotonic() < up_again:
                raise EngineStarting("is being launched again")
            alive = dying
            kills = prompt.conversation == "row-0003"
            with suppress(TimeoutError):
                await asyncio.wait_for(alive.wait(), 0.1 if kills else 0.3)
            if kills and not alive.is_set():
                up_again = time.monotonic() + 0.05
                dying.set()
                dying = asyncio.Event()
            if alive.is_set():
                raise EngineLost("connection reset")
            return await super().generate(prompt)

    async def scenario(driver: Driver) -> None:
        await asyncio.wait_for(driver.run("00000", rows(40)), 60)

    drive(ledger, [Mortal(echo, width=width)], scenario, impatient(ledger, 60))
    bad = [t["conversation"] for t in turns_in(ledger, "00000") if t["finish_reason"] != "stop"]
    assert bad == ["row-0003"]
    assert len(turns_in(ledger, "00000")) == 40


def test_an_outage_is_no_rows_fault(ledger: Ledger) -> None:
    """The engine dies under 8 rows, cannot be reached for 100 requests, and comes back."""
    asked = 0

    def script(prompt: Prompt) -> Said:
        nonlocal asked
        asked += 1
        if 30 < asked <= 38:
            return EngineLost("connection reset")
        return EngineAbsent("connection refused") if 38 < asked < 140 else echo(prompt)

    async def scenario(driver: Driver) -> None:
        await asyncio.wait_for(driver.run("00000", rows(100)), 30)

    drive(ledger, [ScriptedEngine(script, width=8)], scenario, impatient(ledger, 60))
    assert [t["finish_reason"] for t in turns_in(ledger, "00000")] == ["stop"] * 100


def test_a_busy_engine_uses_up_no_rows_attempts(ledger: Ledger) -> None:
    turned_away: Counter[str] = Counter()

    def script(prompt: Prompt) -> Said:
        turned_away[prompt.conversation] += 1
        return EngineBusy("429") if turned_away[prompt.conversation] <= 9 else echo(prompt)

    async def scenario(driver: Driver) -> None:
        await asyncio.wait_for(driver.run("00000", rows(20)), 30)

    drive(ledger, [ScriptedEngine(script, width=8)], scenario, impatient(ledger, 60))
    assert [(t["finish_reason"], t["attempts"]) for t in turns_in(ledger, "00000")] == [("stop", 10)] * 20


@pytest.mark.parametrize("fault", [EngineAbsent("connection refused"), EngineLost("500"), EngineBusy("503")])
def test_an_engine_gone_for_good_ends_the_run_and_keeps_what_was_finished(ledger: Ledger, fault: EngineError) -> None:
    answered = 0

    def script(prompt: Prompt) -> Said:
        nonlocal answered
        if answered >= 20:
            return fault
        answered += 1
        return echo(prompt)

    async def scenario(driver: Driver) -> None:
        with pytest.raises(type(fault)):
            await asyncio.wait_for(driver.run("00000", rows(200)), 20)

    drive(ledger, [ScriptedEngine(script, width=8)], scenario, impatient(ledger, 0.4))
    made = turns_in(ledger, "00000")
    assert [t["finish_reason"] for t in made] == ["stop"] * 20


def test_an_engine_that_works_on_a_long_answer_is_not_given_up_as_absent(ledger: Ledger) -> None:
    """It turns all others away for longer than an absent engine would be waited for."""
    working = True

    async def script(prompt: Prompt) -> Said:
        nonlocal working
        if prompt.conversation == "row-0000":
            await asyncio.sleep(1.0)
            working = False
            return echo(prompt)
        return EngineBusy("503") if working else echo(prompt)

    async def scenario(driver: Driver) -> None:
        await asyncio.wait_for(driver.run("00000", rows(20)), 20)

    drive(ledger, [ScriptedEngine(script, width=4)], scenario, impatient(ledger, 0.3))
    assert [t["finish_reason"] for t in turns_in(ledger, "00000")] == ["stop"] * 20


def test_an_engine_that_breaks_on_everything_is_no_fault_of_so_many_rows(ledger: Ledger) -> None:
    """It answers the small prompt and nothing else: that is the machine, not the data."""

    def script(prompt: Prompt) -> Said:
        return echo(prompt) if prompt.conversation == "canary" else EngineGarbage("nonsense")

    async def scenario(driver: Driver) -> None:
        with pytest.raises(EngineGarbage):
            await asyncio.wait_for(driver.run("00000", rows(200)), 20)

    drive(ledger, [ScriptedEngine(script, width=4)], scenario, impatient(ledger, 60))


def test_the_other_engine_finishes_when_one_is_gone(ledger: Ledger) -> None:
    def dead(prompt: Prompt) -> Said:
        return EngineAbsent("connection refused")

    async def scenario(driver: Driver) -> None:
        await driver.run("00000", rows(60))

    drive(ledger, [ScriptedEngine(dead, width=4), ScriptedEngine(echo, width=4)], scenario)
    assert len(turns_in(ledger, "00000")) == 60


def test_a_misconfigured_engine_stops_the_run_at_once(ledger: Ledger) -> None:
    engine = ScriptedEngine(lambda prompt: EngineMisconfigured("404: no such model"), width=2)

    async def scenario(driver: Driver) -> None:
        with pytest.raises(EngineMisconfigured, match="no such model"):
            await driver.run("00000", rows(100))

    drive(ledger, [engine], scenario)
    assert len(engine.asked) <= 2


def test_a_stop_is_honoured_at_once_and_keeps_what_was_finished(ledger: Ledger) -> None:
    async def script(prompt: Prompt) -> Said:
        if prompt.conversation >= "row-0005":
            await asyncio.sleep(3600)
        return echo(prompt)

    async def scenario(driver: Driver) -> None:
        running = asyncio.create_task(driver.run("00000", rows(50)))
        await asyncio.sleep(0.2)
        asked = time.monotonic()
        await driver.aclose()
        with pytest.raises(RunStopped):
            await running
        assert time.monotonic() - asked < 5

    drive(ledger, [ScriptedEngine(script, width=4)], scenario)
    assert len(turns_in(ledger, "00000")) == 5


def test_a_fault_of_our_own_ends_the_run_instead_of_hanging_it(ledger: Ledger) -> None:
    def script(prompt: Prompt) -> Said:
        raise ZeroDivisionError

    async def scenario(driver: Driver) -> None:
        with pytest.raises(Defect, match="ZeroDivisionError"):
            await asyncio.wait_for(driver.run("00000", rows(5)), 5)

    drive(ledger, [ScriptedEngine(script, width=2)], scenario)


class FullDisk(Ledger):
    """A folder that takes no segment."""

    def write_segment(self, shard: str, writer: str, number: int, turns: Any) -> None:
        raise StoreError("no space left on device")


def test_a_folder_that_cannot_be_written_ends_the_run(ledger: Ledger) -> None:
    async def scenario(driver: Driver) -> None:
        with pytest.raises(StoreError, match="no space"):
            await asyncio.wait_for(driver.run("00000", rows(500)), 10)

    drive(FullDisk(ledger.store), [ScriptedEngine(echo, width=2, delay=0.002)], scenario)


def test_a_finished_row_is_safe_within_the_flush_interval(ledger: Ledger) -> None:
    async def script(prompt: Prompt) -> Said:
        if prompt.conversation != "row-0000":
            await asyncio.sleep(3600)
        return echo(prompt)

    async def scenario(driver: Driver) -> None:
        running = asyncio.create_task(driver.run("00000", rows(4)))
        for _ in range(100):
            await asyncio.sleep(0.05)
            if turns_in(ledger, "00000"):
                break
        assert [t["conversation"] for t in turns_in(ledger, "00000")] == ["row-0000"]
        running.cancel()

    drive(ledger, [ScriptedEngine(script, width=4)], scenario)
