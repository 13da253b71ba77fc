"""The dialects by name: a new one is one file and one line here."""

from __future__ import annotations

from reflash.engines.dialects.base import Dialect
from reflash.engines.dialects.chat import Chat
from reflash.engines.dialects.llamacpp import LlamaCpp
from reflash.engines.dialects.sglang import Sglang
from reflash.engines.dialects.vllm import Vllm

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (Vllm(), Sglang(), LlamaCpp(), Chat())}
