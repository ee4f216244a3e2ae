"""One Spark for all tests of this folder: starting it costs more than what they ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session on `local[2]`, as kctl makes it."""
    from kctl.spark.session import session

    with session("local[2]") as started:
        yield started
