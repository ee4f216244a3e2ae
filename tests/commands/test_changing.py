"""What every change says where a right is missing before it begins."""

from __future__ import annotations

from typing import Any

import pytest

from commands.cli.changing import How, changes
from kctl.cluster.rights import MissingRight, Right
from kctl.errors import KctlError

OPTIONS = {"yes": True, "dry_run": False, "wait": True, "timeout": 1.0, "reason": None, "kafka_version": None}


def run(error: Exception) -> None:
    @changes()
    def command(frame: object, how: How) -> Any:
        assert how.yes
        raise error

    command(None, **OPTIONS)


def test_a_missing_right_is_said_with_what_was_written() -> None:
    missing = MissingRight(Right("Alter"), "User:a")
    with pytest.raises(
        KctlError, match="Alter on Cluster is missing for User:a; nothing was written"
    ) as raised:
        run(missing)
    assert raised.value.hint == missing.hint and raised.value.exit_code == missing.exit_code


@pytest.mark.parametrize("place", ["1 of 2 steps was carried out", "topic a; nothing was written"])
def test_what_is_said_already_is_not_said_again(place: str) -> None:
    missing = MissingRight(Right("Alter"), "User:a", place)
    with pytest.raises(MissingRight) as raised:
        run(missing)
    assert raised.value is missing
