"""Figures of a server, as real pages write them."""

from __future__ import annotations

from reflash.engines.dialects.sglang import Sglang
from reflash.engines.dialects.vllm import Vllm
from reflash.engines.load import Load, read_load

VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 46.0
vllm:num_requests_waiting{engine="0",model_name="m"} 210.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:num_preemptions_total{engine="0",model_name="m"} 3.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7646e+09
vllm:generation_tokens_total{engine="0",model_name="m"} 1.234567e+06
vllm:generation_tokens_created{engine="0",model_name="m"} 1.7646e+09
"""


def test_a_page_of_vllm() -> None:
    assert read_load(VLLM, Vllm.metrics) == Load(46, 210, 1234567, 0.25, 3)


def test_workers_are_added_up_and_the_fullest_cache_counts() -> None:
    page = VLLM + VLLM.replace('engine="0"', 'engine="1"').replace("0.25", "0.75")
    assert read_load(page, Vllm.metrics) == Load(92, 420, 2469134, 0.75, 6)


def test_what_a_server_does_not_say_is_unknown() -> None:
    page = 'sglang:num_running_reqs{model_name="m"} 12.0\nsglang:token_usage NaN\nsglang:num_queue_reqs garbage\n'
    found = read_load(page, Sglang.metrics)
    assert (found.running, found.waiting, found.generated, found.preempted) == (12, None, None, None)


def test_a_page_of_something_else_says_nothing() -> None:
    assert read_load("<html>404</html>", Vllm.metrics) == Load()


SGLANG = """sglang:num_running_reqs{engine_type="unified",model_name="m"} 46.0
sglang:generation_tokens_total{model_name="m"} 700.0
sglang:realtime_tokens_total{mode="prefill_compute",model_name="m"} 9000.0
sglang:realtime_tokens_total{mode="decode",model_name="m"} 1234.0
"""


def test_tokens_of_every_step_count_before_those_of_requests_that_ended() -> None:
    """Two answers had ended when 46 were half made: a count by ends says that hardly anything is done."""
    found = read_load(SGLANG, Sglang.metrics)
    assert (found.generated, found.late) == (1234, False)
    without = "".join(line for line in SGLANG.splitlines(keepends=True) if "realtime" not in line)
    found = read_load(without, Sglang.metrics)
    assert (found.generated, found.late) == (700, True)
