"""Lines of statuses written at once are the lines of their rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.cli.render import json_encoder, tab_separated
from commands.reassign.rows import move_status_lines, move_status_row
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V2_8
from kctl.model import TopicPartition
from kctl.operations.reassignment.verification import DONE, FAILED, IN_PROGRESS, MoveStatus

STATE = ClusterState(cluster_id=None, kafka_version=V2_8, brokers={}, controller=None)
IDS = st.lists(st.integers(0, 3), max_size=3).map(tuple)
SIZES = st.none() | st.integers(0, 2)
STANDINGS = st.lists(
    st.builds(
        MoveStatus,
        partition=st.builds(
            TopicPartition,
            st.sampled_from(["a", "b.c", 'say "it"', "tab\tbed", "ü\udcff"]),
            st.integers(0, 1200),
        ),
        state=st.sampled_from([DONE, DONE, IN_PROGRESS, FAILED]),
        target=IDS,
        replicas=IDS,
        isr=IDS,
        leader=st.none() | st.integers(-1, 2),
        reason=st.none() | st.just("waits"),
        bytes_done=SIZES,
        bytes_left=SIZES,
    ),
    max_size=12,
)


@pytest.mark.slow
@given(STANDINGS)
def test_as_rows_are_written(statuses: list[MoveStatus]) -> None:
    rows = [move_status_row(one) for one in statuses]
    encode = json_encoder()
    text = "".join(f"{line}\n" for line in tab_separated(rows)).encode("utf-8", "surrogateescape")
    assert b"".join(move_status_lines(statuses, "text") or ()) == text
    assert b"".join(move_status_lines(statuses, "jsonl") or ()) == b"".join(
        encode(row) + b"\n" for row in rows
    )
    assert move_status_lines(statuses, "json") is None


def test_more_lines_than_a_part_has() -> None:
    statuses = [MoveStatus(TopicPartition("t", n), DONE, (1,), (1,), (1,), 1) for n in range(2500)]
    lines = b"".join(move_status_lines(statuses, "text") or ()).splitlines()
    assert len(lines) == 2501 and lines[2500].split(b"\t")[:4] == [b"partition", b"t", b"2499", b"done"]
