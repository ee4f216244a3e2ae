"""The table of keys names every key of the rows that it lists in full."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kctl.rows import row_type

TABLE = Path(__file__).with_name("keys.txt").read_text()


@pytest.mark.parametrize(
    "name",
    [
        "state_log.LEADER",
        "state_log.CONTROLLER_TERM",
        "state_log.BROKER_STATE",
        "replica.LOSS",
        "replica.DIVERGENCE",
        "replica.LINEAGE",
        "replica.VERDICT",
        "replica.REJOIN",
        "replica.EXPLANATION",
        "internal_topics.TRANSACTION",
        "internal_topics.OPEN_TRANSACTION",
        "verify.FILE",
        "common.FINDING",
    ],
)
def test_every_key_is_judged_or_says_why_not(name: str) -> None:
    kind = row_type(name)
    (section,) = re.findall(rf"^{kind.kind}, from .*\n((?:[ -].*\n)+)", TABLE, re.MULTILINE)
    named = {word for line in section.splitlines() for word in re.split(r"  +", line[2:])[0].split()}
    assert kind.schema()["properties"].keys() - named == {"kind"}
