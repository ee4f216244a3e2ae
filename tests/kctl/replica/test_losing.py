"""Losses of many partitions found by several processes are those found by one."""

from __future__ import annotations

import pytest

from kctl.copies import scanned
from kctl.evidence.discover import discover
from kctl.judging.judgement import judgement_rows
from kctl.model import Row
from kctl.replica.loss.search import LossOptions, LossSearch
from kctl.scan import pool
from tests.conftest import recording


@pytest.mark.slow
def test_several_processes_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ALONE_FOR", 0)

    def found(jobs: int) -> list[Row]:
        evidence = discover([str(recording("incidents/unclean-2.8"))])
        search = LossSearch(evidence, LossOptions(), pytest.fail)
        return list(judgement_rows(search.rows(jobs=jobs)))

    one = found(1)
    assert [row["kind"] for row in one].count("loss") == 3
    assert found(2) == one


def test_one_process_reads_large_logs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(scanned, "LARGE", 0)
    monkeypatch.setattr(scanned, "SharedScan", lambda folders, jobs: asked.append(jobs))
    evidence = discover([str(recording("incidents/unclean-2.8"))])
    search = LossSearch(evidence, LossOptions(), pytest.fail)
    for jobs in (1, 2):
        assert [row["kind"] for row in judgement_rows(search.rows(jobs=jobs))].count("loss") == 3
        assert bool(asked) == (jobs == 2)
