"""Copies whose broker nobody knows are compared with nothing, and that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import rows
from tests.kctl.replica.test_compare import FRONT, log_dir


def nameless(folder: Path) -> Path:
    """A log directory as people copy it: without `meta.properties`."""
    data = log_dir(folder, 1, FRONT, high_watermark=15, epochs=[[0, 0]])
    for path in folder.rglob("meta.properties"):
        path.unlink()
    (folder / "broker-1").rename(folder / "copied")
    return data


@pytest.mark.parametrize("verb", ["loss", "compare"])
def test_a_copy_of_a_broker_that_nobody_knows_is_not_passed_over(verb: str, tmp_path: Path) -> None:
    nameless(tmp_path)
    ran = rows("replica", verb, tmp_path)
    (judgement,) = ran.of("judgement")
    assert (judgement["topic"], judgement["verdict"], ran.status) == ("orders", "could_not_judge", 3)
    assert judgement["missing"][0]["get"].startswith("name it: --broker ID=copied")
    named = rows("replica", verb, tmp_path, "--broker", f"1={tmp_path / 'copied'}")
    assert all("broker id" not in str(row["missing"]) for row in named.of("judgement"))
    assert not rows("replica", verb, tmp_path, "--topic", "orders", "--partition", "7").of("judgement")


def test_an_audit_says_it_too(tmp_path: Path) -> None:
    nameless(tmp_path / "evidence")
    ran = rows("audit", "run", tmp_path / "evidence", "--out", tmp_path / "report")
    verdicts = {row["question"]: row["could_not_judge"] for row in ran.of("coverage")}
    assert (verdicts["loss"], verdicts["divergence"], verdicts["integrity"], ran.status) == (1, 1, 0, 3)
