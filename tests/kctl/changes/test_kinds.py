"""Every kind of change: what the journal has of it is read, written and undone as by the kctl that wrote it."""

import json
from pathlib import Path

import pytest

from kctl.changes.entry import _stage_from_json, _stage_to_json, recorded
from kctl.changes.intents import KINDS, SEVERAL, class_of
from kctl.changes.plan import Stage

# Stages of journal entries of version 0.1, one or more of each kind, with what was said of them.
STAGES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data/changes/stages.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("values", STAGES, ids=lambda values: values["intent"]["kind"])
def test_a_recorded_stage_is_read_written_and_undone(values: dict) -> None:  # type: ignore[type-arg]
    read = _stage_from_json(values)
    assert str(read.intent) == values["says"]
    assert json.loads(json.dumps(_stage_to_json(read))) == {k: v for k, v in values.items() if k != "says"}
    assert recorded(Stage(intent=read.intent, writes=read.writes)) == read


def test_a_stage_of_every_kind_is_recorded() -> None:
    assert {values["intent"]["kind"] for values in STAGES} == {*KINDS, SEVERAL}


@pytest.mark.parametrize("kind", [*KINDS, SEVERAL])
def test_a_kind_is_named_as_its_class_says(kind: str) -> None:
    assert class_of(kind).kind == kind
