"""Losses of many partitions found by several processes are those found by one."""

from __future__ import annotations

import pytest

from kctl.evidence.discover import discover
from kctl.replica.losing import LossOptions, LossSearch
from kctl.scan import pool
from tests.conftest import recording


def test_several_processes_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ALONE_FOR", 0)

    def found(jobs: int) -> list[dict[str, object]]:
        evidence = discover([str(recording("incidents/unclean-2.8"))])
        return list(LossSearch(evidence, LossOptions(), pytest.fail).rows(jobs=jobs))

    one = found(1)
    assert [row["kind"] for row in one].count("loss") == 3
    assert found(2) == one
