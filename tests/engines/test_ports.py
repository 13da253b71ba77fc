"""A port that is held: free for its server, taken for everybody else."""

from __future__ import annotations

import socket
import sys

import pytest

from reflash.engines.serve.ports import Port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="two sockets at one port are a matter of Linux")


def test_a_server_listens_at_a_held_port_and_a_stranger_cannot() -> None:
    with Port() as port, socket.socket() as stranger:
        with pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", port.number))
        with socket.create_server(("127.0.0.1", port.number)) as server:  # says SO_REUSEADDR, as servers do
            assert server.getsockname()[1] == port.number
            with socket.create_connection(("127.0.0.1", port.number)):
                server.accept()[0].close()


def test_no_port_is_held_twice() -> None:
    held = [Port() for _ in range(300)]
    try:
        assert len({port.number for port in held}) == 300
    finally:
        for port in held:
            port.__exit__(None, None, None)
