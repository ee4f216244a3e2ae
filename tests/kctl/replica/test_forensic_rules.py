"""The rules by which replicas are judged, against recorded cases."""

from typing import Any

import numpy as np
import pytest

from kctl.copies.leaders import Leaders, LeaderTerm
from kctl.copies.lineage import Lineage, compare_lineages
from kctl.model import OffsetRange
from kctl.replica.comparison.best_source import best_source, rejoin_table
from kctl.replica.comparison.pairs import DIVERGED, BatchColumns, DifferenceKind, batch_differences
from kctl.replica.loss.causes import is_unclean
from kctl.replication.epochs import entries_of
from kctl.replication.truncation import Algorithm
from tests.conftest import vectors


def broker(name: str) -> int:
    return int(name) if name.isdigit() else ord(name)


def lineage(state: dict[str, Any]) -> Lineage:
    return Lineage(
        state["log_start"],
        state["leo"],
        state["hw_checkpoint"],
        entries_of(state["epochs"]),
        state.get("local_log_start"),
    )


def span(value: OffsetRange | None) -> list[int | None] | None:
    return None if value is None else list(value)


def columns(batches: list[dict[str, Any]], log_start: int, marks: dict[str, int]) -> BatchColumns:
    def column(name: str) -> Any:
        return np.array([b[name] for b in batches], dtype=np.int64)

    for batch in batches:
        marks.setdefault(batch["crc"], len(marks))
    crc = np.array([marks[b["crc"]] for b in batches], dtype=np.int64)
    return BatchColumns(column("base"), column("last"), column("epoch"), crc, log_start)


def check_batches(have: dict[str, Any], want: dict[str, Any]) -> None:
    marks: dict[str, int] = {}
    starts = have.get("log_start", [0, 0])
    first, second = (columns(have[n], s, marks) for n, s in zip(("first", "second"), starts, strict=True))
    compacted = have.get("cleanup_policy") == "compact"
    found = list(batch_differences(first, second, compacted=compacted))
    assert [(d.offset, d.kind) for d in found] == [(d["offset"], d["kind"]) for d in want["differences"]]
    for difference, expected in zip(found, want["differences"], strict=True):
        assert difference.same_payload == expected.get("same_payload", difference.same_payload)
    diverged = [d.offset for d in found if d.kind in DIVERGED]
    verdict = (
        "diverged"
        if diverged
        else "damaged"
        if any(d.kind is DifferenceKind.HOLE for d in found)
        else "consistent"
    )
    assert verdict == want["verdict"]
    assert min(diverged, default=None) == want["first_divergent_offset"]


def check_branch_points(have: dict[str, Any], want: dict[str, Any]) -> None:
    """Where each replica leaves the leader's lineage; what is lost behind it, the search for losses says."""
    replicas = {broker(b): lineage(r) for b, r in have["replicas"].items()}
    leader = replicas[broker(have["leader"])]
    for name, expected in want["per_replica"].items():
        other = replicas[broker(name)]
        differs_at = compare_lineages(leader, other).first_divergent_offset
        end = min(leader.log_end_offset, other.log_end_offset) if differs_at is None else differs_at
        branch_point = max(end, leader.log_start_offset)
        assert branch_point == expected["branch_point"]
        assert (other.log_end_offset > branch_point) is (expected["only_here"] is not None)


def check_election(before: dict[str, Any], after: dict[str, Any], want: dict[str, Any]) -> None:
    known = [
        LeaderTerm(one["leader_epoch"], one["leader"], tuple(one["isr"]), tuple(one["isr"]), is_isr_last=True)
        for one in (before, after)
    ]
    leaders = Leaders(tuple(known), {led.leader_epoch: led for led in known})
    assert leaders.isr_before(after["leader_epoch"]).is_complete is not bool(want.get("missed_decisions"))
    if want["verdict"] != "no_leader":
        assert is_unclean(leaders, known[1]) is (want["verdict"] == "unclean")


def check_best(have: dict[str, Any], want: dict[str, Any]) -> None:
    found = best_source({broker(b): lineage(r) for b, r in have["replicas"].items()})
    assert found is not None
    assert [
        {
            "replicas": [str(r) for r in b.replicas],
            "longest": str(b.longest),
            "leo": b.log_end_offset,
            "last_epoch": b.last_epoch,
            "highest_hw": b.highest_high_watermark,
        }
        for b in found.branches
    ] == want["branches"]
    assert str(found.current_lineage) == want["current_lineage"]
    assert str(found.most_committed) == want["most_committed"]
    assert found.choice == want["decision"]


@pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in vectors("replica_forensics")["cases"]])
def test_vectors(case: dict[str, Any]) -> None:
    have, want, op = case["given"], case["expect"], case["op"]
    if op == "compare_replicas":
        found = compare_lineages(lineage(have["first"]), lineage(have["second"]))
        assert found.relation == want["relation"]
        assert span(found.common_range) == want["common_range"]
        assert found.first_divergent_offset == want["first_divergent_offset"]
        assert span(found.epoch_unknown_range) == want.get("epoch_unknown_range")
    elif op == "compare_batches":
        check_batches(have, want)
    elif op == "rejoin_table":
        algorithm = Algorithm(have["algorithm"].split()[-1])
        replicas = {broker(b): lineage(r) for b, r in have["replicas"].items()}
        table = rejoin_table(replicas, broker(have["leader"]), algorithm, have["new_leader_epoch"])
        got = {
            str(b): {
                "truncate_to": r.truncate_to,
                "offsets_dropped": r.offsets_dropped,
                "full_truncation": r.full_truncation,
                "below_own_high_watermark": r.below_own_high_watermark,
            }
            for b, r in table.items()
        }
        assert got == want["followers"]
    elif op == "committed_loss":
        check_branch_points(have, want)
    elif op == "best_source":
        check_best(have, want)
    else:
        assert op == "election_verdict"
        check_election(have["before"], have["after"], want)
