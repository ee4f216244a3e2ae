"""Parts of the evidence of random incidents: what is left out makes a loss unknown, and never sound."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import recording, recordings, rows

OF_CONTROLLERS = ("controller.log", "state-change.log")
# What is left out: logs or copies of the first, second or third broker, kinds of logs, the export of znodes.
LEFT_OUT = (
    "nothing",
    "logs of controllers", "server.log",
    "logs of 0", "logs of 1", "logs of 2", "logs of 1 2", "logs of 0 2", "logs of 0 1",
    "copy of 0", "copy of 1", "copy of 2",
    "znodes", "znodes, copy of 0", "znodes, copy of 1", "znodes, logs of 1 2",
    "logs of 0, copy of 0", "logs of 1, copy of 1", "logs of 2, copy of 2",
)  # fmt: skip


def brokers_of(left_out: str, what: str, broker_ids: list[int]) -> set[int]:
    parts = (part.strip() for part in left_out.split(","))
    named = (part.removeprefix(f"{what} of ").split() for part in parts if part.startswith(f"{what} of "))
    return {broker_ids[int(number)] for numbers in named for number in numbers if number.isdecimal()}


def part_of(incident: Path, story: dict[str, Any], left_out: str, target: Path) -> None:
    """Copy what is not left out."""
    without_logs, without_copy = (
        brokers_of(left_out, what, story["broker_ids"]) for what in ("logs", "copy")
    )
    names = (
        OF_CONTROLLERS
        if "logs of controllers" in left_out
        else ("server.log",)
        if "server.log" in left_out
        else ()
    )
    for broker_id in story["broker_ids"]:
        name = f"broker-{broker_id}"
        if broker_id not in without_logs:
            shutil.copytree(
                incident / name / "logs",
                target / name / "logs",
                ignore=lambda _, files: [file for file in files if file.startswith(names)] if names else [],
            )
        if broker_id not in without_copy:
            for log_dir in (incident / "moments/after" / name).iterdir():
                shutil.copytree(log_dir, target / name / log_dir.name, symlinks=True)
    if "znodes" not in left_out:
        for path in (incident / "moments/after").iterdir():
            if path.is_file():
                shutil.copy(path, target)


@pytest.mark.parametrize("left_out", LEFT_OUT)
@pytest.mark.parametrize("name", recordings("random"))
def test_what_was_acknowledged_by_all_and_is_lost_is_never_sound(
    name: str, left_out: str, tmp_path: Path
) -> None:
    incident = recording(name)
    story = json.loads((incident / "story.json").read_text())
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    part_of(incident, story, left_out, evidence)
    ran = rows("replica", "loss", evidence)
    verdicts = {f"{row['topic']}-{row['partition']}": row["verdict"] for row in ran.of("judgement")}
    lost = story["acknowledged_by_all_and_lost"]
    assert lost and set(lost) <= set(verdicts)
    assert {partition: verdicts[partition] for partition in lost if verdicts[partition] == "sound"} == {}
    if left_out == "nothing":
        assert {verdicts[partition] for partition in lost} == {"lost"}
