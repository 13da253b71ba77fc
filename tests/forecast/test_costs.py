"""Money, bytes, ceilings and hypotheses: the figures a person asks for."""

from __future__ import annotations

import pytest

from reflash.errors import ConfigError
from reflash.forecast.ceiling import Traffic, ceiling
from reflash.forecast.costs import Machine, bytes_kept, costs
from reflash.forecast.expected import answer, read_expected
from reflash.forecast.outlook import Span

DAY = 86400.0


def test_twice_the_gpus_of_half_the_speed_take_the_same_days_and_twice_the_hours() -> None:
    here, other = costs(
        Span(0.9 * DAY, DAY, 1.1 * DAY), 0.0, 4, [Machine("here", 4, 2.0), Machine("old", 8, 0.5, speed=0.5)]
    )
    assert here.gpu_hours.mid == 96
    assert here.money.mid == 192
    assert other.seconds.mid == pytest.approx(DAY)
    assert other.gpu_hours.mid == pytest.approx(192)


def test_the_end_of_a_run_is_no_shorter_on_more_gpus() -> None:
    [cost] = costs(Span(1000, 1000, 1000), 400.0, 1, [Machine("eight", 8, 1.0)])
    assert cost.seconds.mid == pytest.approx(600 / 8 + 400)


def test_hidden_states_of_the_first_user_would_have_filled_his_disks() -> None:
    """1.37 billion output tokens and 0.3 of prompts, hidden size 5120, 5 layers and the last: about 90 TB and more."""
    kept = bytes_kept(1.37e9 + 0.3e9, 2.5, 5120, 64, 6)
    assert kept.hidden_kept is not None
    assert 80e12 < kept.hidden_kept < 110e12
    assert kept.hidden_all == pytest.approx(64 * 1.67e9 * 5120 * 2)
    assert kept.dataset == pytest.approx(2.5 * 1.67e9)


def test_what_is_unknown_of_a_model_is_not_made_up() -> None:
    assert bytes_kept(1e6, None, 0, 0, 6).hidden_kept is None
    assert ceiling(Traffic(0.0, 0.0), 1e12, 8, 100) is None
    assert ceiling(Traffic(1e9, 0.0), 0.0, 8, 100) is None


def test_the_ceiling_rises_with_the_width_until_the_cache_is_most_of_what_is_read() -> None:
    traffic = Traffic(weights=16e9, cache_per_token=150_000)
    one, many, endless = (ceiling(traffic, 4.8e12, width, 1000) for width in (1, 256, 10**9))
    assert one is not None
    assert many is not None
    assert endless is not None
    assert one.tokens_per_s == pytest.approx(4.8e12 / (16e9 + 150e6))
    assert one.tokens_per_s < many.tokens_per_s < endless.tokens_per_s == pytest.approx(4.8e12 / 150e6, rel=1e-3)


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (Span(600, 700, 800), "yes"),
        (Span(300, 400, 450), "no"),
        (Span(1100, 1200, 1300), "no"),
        (Span(900, 980, 1060), "undecided"),
    ],
)
def test_a_hypothesis_is_answered(measured: Span, said: str) -> None:
    found = answer(read_expected("500-1000"), measured)
    assert found.answer == said
    assert f"{measured.mid:,.0f}" in found.why


@pytest.mark.parametrize("text", ["1000-500", "fast", "500", ""])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="500-1000"):
        read_expected(text)
