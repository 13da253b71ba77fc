"""One S3 server for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.s3 import s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server() as url:
        yield url
