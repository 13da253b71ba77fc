"""Points compared in a given time: the best is found, the hopeless are told of, the time is kept."""

from __future__ import annotations

from collections.abc import Sequence

from reflash.benchmark.halving import Sweep, best, survivors
from reflash.benchmark.outcome import Outcome
from reflash.benchmark.points import Point, point
from tests.benchmark.worlds import SpeedWorld

MINUTES = 60.0


def test_the_true_best_is_found_in_19_of_20_worlds_within_the_minutes() -> None:
    """16 points, starts of 20 to 120 s, windows that vary by 3 %; `benchmarks/forecast.py` runs more worlds."""
    found = 0
    for seed in range(20):
        world = SpeedWorld(seed)
        chosen = best(world.sweep(MINUTES))
        assert world.now <= 60 * MINUTES
        assert chosen is not None
        found += chosen.point == world.best
    assert found >= 19


def test_every_point_has_an_outcome_and_what_cannot_run_says_why() -> None:
    world = SpeedWorld(1)
    outcomes = world.sweep(MINUTES)
    assert {o.point for o in outcomes} == set(world.points)
    told = {o.point: o for o in outcomes if not o.ok}
    for broken, status in world.cannot.items():
        assert told[broken].status == status
        assert told[broken].why == "out of memory"
        assert sum(o.point == broken for o in outcomes) == 1  # it is not tried again


def test_the_worst_are_measured_once_and_the_best_longest() -> None:
    world = SpeedWorld(2)
    outcomes = world.sweep(MINUTES)
    spent = {p: sum(o.seconds for o in outcomes if o.point == p) for p in world.true}
    worst = min(world.true, key=lambda p: world.true[p])
    assert spent[world.best] == max(spent.values())
    assert sum(o.point == worst for o in outcomes) == 1


def test_widths_of_one_server_share_its_launch() -> None:
    world = SpeedWorld(3)
    first = [o for o in world.sweep(MINUTES) if o.round == 0]
    assert len({o.launch_s for o in first if o.launch_s}) == 4  # two engines by two caches, four widths each


def test_what_there_is_no_time_for_is_named() -> None:
    now = [0.0]

    def slow(points: Sequence[Point], number: int, seconds: float) -> list[Outcome]:
        now[0] += 500.0
        return [Outcome(p, number, "measured", tokens_per_s=10, seconds=seconds, launch_s=400.0) for p in points]

    points = [Point(), point({"kind": "sglang"})]
    outcomes = Sweep(points, 300.0, slow, lambda: now[0]).run()
    assert [o.status for o in outcomes] == ["measured", "not reached"]
    assert best(outcomes) == outcomes[0]


def test_points_that_cannot_be_told_apart_go_on_together() -> None:
    def made(name: str, rate: float, spread: float) -> Outcome:
        return Outcome(point({"width": name}), 0, "measured", tokens_per_s=rate, spread=spread)

    clear = [made("1", 100, 0.005), made("2", 90, 0.005), made("3", 50, 0.005), made("4", 40, 0.005)]
    blurred = [made("1", 100, 0.1), made("2", 99, 0.1), made("3", 98, 0.1), made("4", 97, 0.1)]
    assert len(survivors(clear)) == 2
    assert len(survivors(blurred)) == 3


def test_where_nothing_can_be_measured_there_is_no_best() -> None:
    assert best([Outcome(Point(), 0, "did not start", "no GPU")]) is None
