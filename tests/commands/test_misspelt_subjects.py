"""A name or number that nothing in the evidence has is an error, never an empty answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import kctl, recording


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("remote plan {tier} --topic NONE", "no metadata of a tiered topic NONE in the evidence"),
        ("remote plan {tier} --partition 99", "no metadata of a tiered partition 99 in the evidence"),
        ("remote plan {untiered} --topic ledger", "no metadata of a tiered topic ledger in the evidence"),
        ("replica compare {untiered} --if-leader 9", "--if-leader 9: the evidence has no copy of broker 9"),
        ("replica loss {untiered} --leader 9", "--leader 9: the evidence has no copy of broker 9"),
        ("replica compare {untiered} --compacted NONE", "--compacted NONE: the evidence has no such topic"),
        ("segment verify {untiered} --compacted ledgr", "--compacted ledgr: the evidence has no such topic"),
    ],
)
def test_it_is_named(words: str, error: str) -> None:
    folders = {
        "tier": recording("tier/a-healthy"),
        "untiered": recording("incidents/unclean-2.8") / "moments" / "during",
    }
    ran = kctl(*words.format(**folders).split())
    assert ran.status == 2 and error in ran.err


def test_an_audit_of_a_log_directory_without_a_partition_is_not_judged(tmp_path: Path) -> None:
    folder = tmp_path / "broker-1" / "data"
    folder.mkdir(parents=True)
    (folder / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    assert kctl("audit", "run", tmp_path / "broker-1", "--out", tmp_path / "out").status == 3
