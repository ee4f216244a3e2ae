"""Ctrl-C, also during a change: what was done, what goes on in the cluster, and the commands for either way."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from commands.cli.changing import How, interrupted, run
from commands.cli.frame import Frame
from commands.main import main, root
from kctl.changes.entry import Entry, RecordedStage
from kctl.changes.kinds.reassignments import Reassign
from kctl.changes.kinds.throttles import ClearThrottle
from kctl.model import TopicPartition

TP = TopicPartition("orders", 0)
MOVE = Reassign(targets={TP: (3, 1)}, origins={TP: (2, 1)})
CLEAR = ClearThrottle(throttled={}, rates={"3": {}})


def entry(*states: str, undo_refused: str = "") -> Entry:
    intents = (MOVE, CLEAR)
    stages = [
        RecordedStage(intent=intent, state=state, undo_refused=undo_refused)
        for intent, state in zip(intents, states, strict=False)
    ]
    return Entry(
        id="e1", time="", who="", command="", reason=None, cluster_id=None, backend="admin", location="",
        kafka_version=None, title="move 1 partition", stages=stages,
    )  # fmt: skip


def test_what_goes_on_and_what_is_left() -> None:
    assert list(interrupted(entry("written", "planned"))) == [
        f"asked for, and the brokers go on with it: {MOVE}",
        f"not begun: {CLEAR}",
        "to go on: kctl journal resume e1",
        "to take it back: kctl journal undo e1",
    ]


def test_what_may_have_been_written() -> None:
    found = list(interrupted(entry("writing", "planned")))
    assert found[0].startswith("may have been written or not")
    assert "to go on: kctl journal resume e1" in found


def test_what_nothing_takes_back() -> None:
    assert list(interrupted(entry("finished", undo_refused="records are gone"))) == [
        f"done: {MOVE}",
        "it cannot be undone: records are gone",
    ]


def test_nothing_was_written() -> None:
    assert list(interrupted(entry("planned", "planned"))) == [
        "move 1 partition: nothing was written; journal entry e1"
    ]


def test_it_is_said_and_the_interrupt_goes_on(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def action(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("commands.cli.changing.course_of", lambda *_: None)
    how = How(yes=True, dry_run=False, wait=True, timeout=1, reason=None, kafka_version=None)
    with pytest.raises(KeyboardInterrupt):
        run(Frame({}), how, cast(Any, None), entry("written", "planned"), cast(Callable[..., None], action))
    assert "kctl: to go on: kctl journal resume e1" in capsys.readouterr().err


class Interrupting:
    """An attribute of a class, as whose name is set Ctrl-C comes."""

    def __set_name__(self, owner: type, name: str) -> None:
        raise KeyboardInterrupt


def test_within_an_import(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "main", lambda **_: type("Made", (), {"attribute": Interrupting()}))
    assert main(["topic", "list"]) == 130
    assert capsys.readouterr().err == "kctl: interrupted\n"
