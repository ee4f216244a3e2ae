"""How far a verification has come: on disk from time to time, and whatever ends the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kctl.errors import KctlError, Refused
from kctl.model import TopicPartition
from kctl.wire.replicas import verification as resuming
from kctl.wire.replicas.verification import VerificationProgress


def offsets(path: Path) -> dict[str, int]:
    return {name: offset for name, (_, offset) in json.loads(path.read_bytes())["partitions"].items()}


def test_it_is_written_from_time_to_time_and_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "EVERY", 1e9)
    path = tmp_path / "verified.json"
    done = VerificationProgress(path, "c")
    for n in range(3):
        done.remember(TopicPartition("t", n), None, n)
    assert not path.exists()
    monkeypatch.setattr(resuming, "EVERY", 0.0)
    done.remember(TopicPartition("t", 3), "id", 3)
    assert offsets(path) == {f"t-{n}": n for n in range(4)}
    monkeypatch.setattr(resuming, "EVERY", 1e9)
    with pytest.raises(KeyboardInterrupt), done:
        done.remember(TopicPartition("t", 4), "id", 4)
        assert len(offsets(path)) == 4
        raise KeyboardInterrupt
    assert offsets(path) == {f"t-{n}": n for n in range(5)}


def test_nothing_is_written_where_nothing_was_compared(tmp_path: Path) -> None:
    with VerificationProgress(tmp_path / "verified.json", "c"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cluster_id": "c", "partitions": {"t-0": 1}}', "\xff"])
def test_another_file_is_not_taken_for_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "verified.json"
    path.write_text(text, "latin-1")
    with pytest.raises(KctlError, match="does not hold the progress"):
        VerificationProgress(path, "c")


def test_it_is_about_one_cluster(tmp_path: Path) -> None:
    path = tmp_path / "verified.json"
    with VerificationProgress(path, "c") as done:
        done.remember(TopicPartition("t", 0), None, 7)
    with pytest.raises(Refused):
        VerificationProgress(path, "another")


def test_a_folder_that_is_not_there_is_said_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "no" / "verified.json"
    with pytest.raises(KctlError, match=r"verified\.json"), VerificationProgress(path, "c") as done:
        done.remember(TopicPartition("t", 0), None, 7)
