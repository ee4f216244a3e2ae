"""What every change says where a right is missing before it begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from commands.cli.changing import How, changes
from commands.cli.frame import Frame
from commands.elect import _read_after
from kctl.cluster.interface import Cluster
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


def test_an_election_that_is_not_finished_is_said_though_its_outcome_cannot_be_read() -> None:
    """The row of the change stands, and its status stays above that of the look behind it."""

    def unread(*_: object, **__: object) -> Any:
        raise KctlError("reassignments: not the correct controller", "ask again")

    frame = Frame({})
    frame.raise_status(5)
    assert _read_after(frame, cast(Cluster, SimpleNamespace(read_state=unread)), None, None) is None
    assert frame.status == 5
