"""`kctl audit run --dry-run` says what the audit then does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.audit.estimate import RATE
from tests.conftest import kctl, recording, rows, unchanged


@pytest.mark.slow
@pytest.mark.parametrize("name", ["incidents/unclean-2.8", "segments/3.9.1-kraft", "incidents/pauses-3.9"])
def test_files_and_bytes_are_those_of_the_audit(name: str, tmp_path: Path) -> None:
    with unchanged(recording(name)) as folder:
        (told,) = rows("audit", "run", folder, "--out", tmp_path / "out", "--dry-run").of("audit-estimate")
        assert not (tmp_path / "out").exists(), "a dry run writes"
    (done,) = rows("audit", "run", folder, "--out", tmp_path / "out").of("audit")
    # A log directory has a file or two that no check looks at, such as its lock.
    assert done["files"] <= told["files"] <= 1.1 * done["files"]
    assert done["bytes"] <= told["bytes"] <= 1.01 * done["bytes"]
    assert 0 < told["largest_task"] <= told["bytes"] and told["requests"] is None
    compared = rows("replica", "compare", folder).of("verdict") if told["comparisons"] else []
    assert told["comparisons"] == len(compared)


def test_time_is_that_of_all_cores_but_for_what_one_task_does(tmp_path: Path) -> None:
    log = tmp_path / "evidence" / "orders-0" / "00000000000000000000.log"
    log.parent.mkdir(parents=True)
    with log.open("wb") as file:
        file.truncate(100 * RATE)
    ask = ("audit", "run", tmp_path / "evidence", "--dry-run")
    for options, cores, seconds in (
        (("--jobs", 1), 1, 100),
        (("--jobs", 4), 4, 25),
        (("--jobs", 64), 64, 7.1),  # one task goes through the log when all have read it
        (("--engine", "spark", "--master", "local[8]"), 8, 12.5),
        (("--engine", "spark", "--master", "yarn"), None, None),
    ):
        (told,) = rows(*ask, *options).of("audit-estimate")
        assert told["cores"] == cores and told["core_seconds"] == pytest.approx(100, rel=0.01)
        assert told["seconds"] == (pytest.approx(seconds, rel=0.07) if cores else None)
    text = kctl(*ask, "--jobs", 4, columns=200).out.decode()
    assert "20,000,000,000 bytes in 1 file, in 1 task" in text and "about 25.0 s on 4 cores" in text
    assert not (tmp_path / "out").exists()
