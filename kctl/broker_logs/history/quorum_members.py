"""What each node of KRaft's metadata quorum became, and what it did with its copy of the metadata log.

A snapshot's name is its end offset and epoch (`00000000000000001234-0000000007`,
`raft/src/main/java/org/apache/kafka/snapshot/Snapshots.java` @ 3.0.2 to 4.3.0).
"""

from __future__ import annotations

import re

from kctl.broker_logs.events import Event
from kctl.broker_logs.history.quorum_terms import LOSES_MAJORITY, TAKES_ROLE, role_of
from kctl.model import Row
from kctl.rows.state_log import METADATA_LOG, QUORUM_STATE
from kctl.times import iso

CHANGES = {
    "X253": "snapshot_created", "M22": "snapshot_created", "X252": "snapshot_failed", "M21": "snapshot_failed",
    "M20": "snapshot_failed", "Q30": "snapshot_asked_for", "J26": "snapshot_fetched", "J54": "snapshot_loaded",
    "J52": "snapshot_loaded", "X241": "snapshot_loaded", "M23": "snapshot_loaded", "M39": "snapshot_loaded",
    "X405": "snapshot_loaded", "X135": "snapshot_deleted", "Q29": "truncated",
}  # fmt: skip
# Offset and epoch of a snapshot; the offset alone.
NAMED = re.compile(r"(\d{20})-(\d{10})|[oO]ffset=(\d{1,19}), (?:epoch|lastContainedEpoch)=(\d{1,19})")
OFFSET = re.compile(r"(?:offset|snapshot) (\d{1,19})")
LEADERLESS = frozenset(("unattached", "voted", "prospective", "candidate"))
MOST_PROOFS = 20


class QuorumMembers:
    """The nodes of one cluster's metadata quorum."""

    def __init__(self, cluster: int) -> None:
        self.rows: list[Row] = []
        """Rows of kinds `quorum_state` and `metadata_log`, in order of time."""
        self._cluster = cluster
        # Of each node: the states that it took since it last knew a leader. Elections may fail for hours.
        self._leaderless: dict[int | None, dict[str, Row]] = {}
        self._last_change: dict[int | None, Row] = {}

    def note(self, event: Event, time_ms: int) -> None:
        """Take a line into account."""
        if event.event == TAKES_ROLE:
            role = role_of(event)
            if role is not None:
                self._enter(role.name, event, time_ms, role.epoch, role.leader, role.voted_for)
        elif event.event == LOSES_MAJORITY:
            self._enter("majority_lost", event, time_ms)
        elif event.event in CHANGES:
            self._change(CHANGES[event.event], event, time_ms)

    def _enter(
        self,
        state: str,
        event: Event,
        time_ms: int,
        epoch: int | None = None,
        leader: int | None = None,
        voted_for: int | None = None,
    ) -> None:
        node = event.broker_id
        if state not in LEADERLESS:
            self._leaderless.pop(node, None)
        known = self._leaderless.get(node, {}).get(state)
        if known is not None:
            known.update(times=int(str(known["times"])) + 1, last_time=iso(time_ms), last_epoch=epoch)
            return
        row = QUORUM_STATE(
            broker_id=node,
            time=iso(time_ms),
            state=state,
            leader_epoch=epoch,
            leader=leader,
            voted_for=voted_for,
            times=1,
            last_time=iso(time_ms),
            last_epoch=epoch,
            evidence=[event.proof()],
            cluster=self._cluster,
        )
        self.rows.append(row)
        if state in LEADERLESS:
            self._leaderless.setdefault(node, {})[state] = row

    def _change(self, change: str, event: Event, time_ms: int) -> None:
        match = NAMED.search(event.message) or OFFSET.search(event.message)
        numbers = [int(text) for text in match.groups() if text] if match else []
        offset, epoch = (*numbers, None, None)[:2]
        node = event.broker_id
        last = self._last_change.get(node)
        if last and (last["change"], last["offset"]) == (change, offset):
            # Controller and broker of one process say it, and a copy of the log.
            proofs = last["evidence"]
            if isinstance(proofs, list) and len(proofs) < MOST_PROOFS:
                proofs.append(event.proof())
            return
        row = METADATA_LOG(
            broker_id=node,
            time=iso(time_ms),
            change=change,
            offset=offset,
            epoch=epoch,
            evidence=[event.proof()],
            cluster=self._cluster,
        )
        self.rows.append(row)
        self._last_change[node] = row
