"""A free port that stays free until its server takes it."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

from reflash.engines.serve.command import LOOPBACK


class Port:
    """A port of loopback, held from `with` to its end.

    Linux lets a second socket bind a port that is bound but not listened at where both say SO_REUSEADDR, as servers
    do; to everybody else it is taken.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((LOOPBACK, 0))
        self.number: int = self._socket.getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
