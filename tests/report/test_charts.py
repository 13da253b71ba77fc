from __future__ import annotations

import base64
import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.image import imread

from reflash.report.charts import (
    MAX_BARS,
    POINTS,
    bars_chart,
    binned_lengths_chart,
    engines_chart,
    lengths_chart,
    throughput_chart,
)

LIMIT = 250_000  # characters of a data URI; eight lines of noise are the most


def pixels(uri: str) -> np.ndarray:
    """Height × width × RGBA, each 0 to 1."""
    head, _, body = uri.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(imread(io.BytesIO(base64.b64decode(body, validate=True)), format="png"))


def luminance(rgb: np.ndarray) -> np.ndarray:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def blue(uri: str) -> np.ndarray:
    """Which pixels are solid bar."""
    image = pixels(uri)
    return (image[..., 2] > 0.85) & (image[..., 0] < 0.35) & (image[..., 3] > 0.99)


@pytest.fixture(scope="module")
def charts() -> dict[str, str]:
    rng = np.random.default_rng(1)
    rates = np.abs(rng.normal(1400, 200, 100_000)).tolist()
    return {
        "throughput": throughput_chart([10.0 * i for i in range(len(rates))], rates),
        "lengths": lengths_chart([int(n) for n in rng.lognormal(6, 1.2, 20_000)]),
        "engines": engines_chart(30.0, {f"vllm:_model_$x$/{n}": rates[n * 360 :][:360] for n in range(8)}),
        "one engine": engines_chart(30.0, {"llama.cpp": rates[:360]}),
        "many engines": engines_chart(30.0, {f"{n}": rates[n * 360 :][:360] for n in range(64)}),
        "bars": bars_chart({f"reason-{i}": 10_000 // (i + 1) for i in range(200)}),
    }


def test_every_chart_is_small_however_long_the_run(charts: dict[str, str]) -> None:
    assert {name: len(uri) < LIMIT for name, uri in charts.items()} == dict.fromkeys(charts, True)


def test_the_ground_is_transparent(charts: dict[str, str]) -> None:
    for uri in charts.values():
        corners = pixels(uri)[[0, 0, -1, -1], [0, -1, 0, -1], 3]
        assert not corners.any()


def test_solid_ink_is_readable_on_white_and_on_dark(charts: dict[str, str]) -> None:
    dark = luminance(np.array([0.09, 0.09, 0.1]))
    for uri in charts.values():
        image = pixels(uri)
        ink = luminance(image[image[..., 3] > 0.99][:, :3])
        assert 1.05 / (ink.max() + 0.05) > 3
        assert (ink.min() + 0.05) / (dark + 0.05) > 3


def test_the_same_figures_give_the_same_bytes() -> None:
    assert throughput_chart([0, 10], [5, 6]) == throughput_chart([0, 10], [5, 6])
    assert bars_chart({"loop": 2}) == bars_chart({"loop": 2})
    assert lengths_chart([3, 9]) == lengths_chart([3, 9])


def test_other_figures_give_other_charts() -> None:
    assert throughput_chart([0, 10], [5, 6]) != throughput_chart([0, 10], [5, 7])
    assert bars_chart({"loop": 2, "short": 1}) != bars_chart({"loop": 1, "short": 2})
    assert lengths_chart([3, 9]) != lengths_chart([3, 900])


def test_more_bars_make_a_taller_chart_up_to_a_limit() -> None:
    few, many, most = (pixels(bars_chart({str(i): i for i in range(n)})).shape[0] for n in (5, MAX_BARS, 4 * MAX_BARS))
    assert few < many == most


def test_a_longer_bar_is_drawn_for_a_larger_count() -> None:
    widths = blue(bars_chart({"few": 10, "many": 100})).sum(axis=1)
    half = len(widths) // 2
    assert widths[half:].max() == pytest.approx(10 * widths[:half].max(), rel=0.1)


@pytest.mark.parametrize("seconds", [[], [0.0], [0.0, 0.0], [5.0, 15.0]])
def test_a_run_of_any_length_has_a_throughput_chart(seconds: list[float]) -> None:
    assert pixels(throughput_chart(seconds, [0.0] * len(seconds))).shape[2] == 4
    assert pixels(throughput_chart(seconds, [100.0] * len(seconds))).shape[2] == 4


@pytest.mark.parametrize("lengths", [[], [0], [7], [7, 7, 7], [1, 100_000]])
def test_answers_of_any_lengths_have_a_chart(lengths: list[int]) -> None:
    assert pixels(lengths_chart(lengths)).shape[2] == 4


@pytest.mark.parametrize("counts", [{}, {"none": 0}, {"$a_b^2$ <b> `x`": 3, "≤ 16": 10**9}])
def test_names_are_drawn_as_they_are(counts: dict[str, int]) -> None:
    assert pixels(bars_chart(counts)).shape[2] == 4


def test_rates_without_their_times_are_refused() -> None:
    with pytest.raises(ValueError, match="2 times for 1 rates"):
        throughput_chart([0, 1], [5])


def test_more_points_than_can_be_seen_are_drawn_as_the_mean_of_neighbours() -> None:
    times = range(2 * POINTS)
    assert throughput_chart(times, [50.0, 150.0] * POINTS) == throughput_chart(times, [100.0] * 2 * POINTS)


@pytest.mark.parametrize(
    "counts", [{}, {16.0: 0}, {1.0: 5}, {2.0: 1, 1024.0: 1}, {2.0 ** (i / 4): i for i in range(60)}]
)
def test_counted_lengths_have_a_chart(counts: dict[float, int]) -> None:
    assert pixels(binned_lengths_chart(counts)).shape[2] == 4


def test_empty_bins_leave_a_gap() -> None:
    counts = {2.0**i: 9 for i in range(3, 9)}
    assert blue(binned_lengths_chart(counts)).any(axis=0)[300:700].mean() > 0.8
    assert blue(binned_lengths_chart(counts | {16.0: 0, 32.0: 0, 64.0: 0, 128.0: 0})).any(axis=0)[300:700].mean() < 0.2


def test_the_room_imports_no_drawing_library_until_it_draws() -> None:
    code = "import sys; import reflash.report.charts; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
