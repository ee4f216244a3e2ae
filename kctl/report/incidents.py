"""Incidents: losses and unclean elections grouped by their cause, with the partitions and findings of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from formats.values import Struct, replace
from kctl.audit.tables import Tables
from kctl.internal_topics.decisions import LAST_KNOWN
from kctl.model import StoredRow
from kctl.replica.loss.words import amount_of, cause_words, listed
from kctl.report.html import slug
from kctl.times import iso, parse_iso

Key = tuple[str, int]
# When it began, the partition, and the loss where one is known.
Member = tuple[int | None, Key, StoredRow | None]
UNCLEAN = "unclean_election"
TAIL_LOST = "power_failure_tail"
APART_MS = 10 * 60_000  # elections further apart than this are two incidents
LIVES_BEFORE_MS = 10 * 60_000
ENDS = {
    "killed": "was killed", "halted": "halted", "down": "went down", "controlled_shutdown": "was shut down",
    "stopping": "was stopped", "fenced": "was fenced",
}  # fmt: skip
# Findings that follow from records dropped by a leadership, in the same partition.
CONSEQUENCES = frozenset({
    "unclean-leader-election", "isr-below-minimum", "truncated-below-high-watermark", "zombie-leader-write",
    "index-stale-tail", "index-untrimmed", "epoch-entry-beyond-end", "high-watermark-above-log-end",
    "replica-tail-of-handover", "replica-same-payload-other-epoch", "replica-sent-again", "replica-undecided-tail",
    "replica-unclean-cost-unknown", "replica-tail-unproven",
})  # fmt: skip


class Incident(Struct, frozen=True):
    """A cause, the broker that dropped records, and the losses; times in ms, None if unknown."""

    cause: str
    broker_id: int | None
    from_ms: int | None
    to_ms: int | None
    partitions: tuple[Key, ...]
    losses: tuple[StoredRow, ...]
    before: StoredRow | None  # the last change in the life of a broker that led to it
    is_last_known: bool = False  # nobody was in the ISR or eligible, and the last known leader was elected

    @property
    def anchor(self) -> str:
        """The id of the incident in the page, equal in every report of the same evidence."""
        topic, partition = self.partitions[0]
        return slug(f"incident-{self.cause}-{topic}-{partition}")

    @property
    def from_time(self) -> str:
        """When it began, ISO 8601; empty if unknown."""
        return iso(self.from_ms)

    @property
    def to_time(self) -> str:
        """When its last election was, ISO 8601; empty if unknown."""
        return iso(self.to_ms)

    def sentence(self) -> str:
        """What happened and when, as a sentence."""
        where = names(self.partitions)
        who = "A broker" if self.broker_id is None else f"Broker {self.broker_id}"
        unclean = "as the last known leader, for nobody was in the ISR or eligible"
        event = {
            UNCLEAN: f"{who} became leader of {where} {unclean if self.is_last_known else 'without being in sync'}",
            "high_watermark_truncation": f"{who} led {where} after a truncation to a stale high watermark",
            "power_failure_tail": f"{who} led {where} without the end of its log, which a power failure had taken",
            "zombie_leader": f"a leader of {where} that was cut off went on taking records",
            "handover": f"{who} took over {where} in a controlled shutdown before it had every record",
            "disk_lost": f"{who} led {where} with a disk that had been wiped or replaced",
        }.get(self.cause, f"records of {where} were dropped ({cause_words(self.cause)})")
        when = clause(self.from_ms, self.to_ms)
        after = self._after()
        first = (
            f"{when}, {after}, {uncapital(event)}"
            if when and after
            else f"{when} {uncapital(event)}"
            if when
            else event
        )
        return f"{first[0].upper()}{first[1:]}."

    def line(self) -> str:
        """What it cost, what it was, where and when: `60 records: unclean election, 3 partitions, 2026-11-21 13:18:34 UTC`."""
        cost = amount_of(self.losses).words() if self.losses else "no known loss"
        led = "" if self.broker_id is None else f" (broker {self.broker_id} led)"
        when = [] if self.from_ms is None else [f"{iso(self.from_ms)[:19].replace('T', ' ')} UTC"]
        return f"{cost}: {', '.join((f'{cause_words(self.cause)}{led}', names(self.partitions), *when))}"

    def _after(self) -> str:
        if self.before is None:
            return ""
        why = self.before.get("cause") or self.before.get("how")
        how = f" ({str(why).replace('_', ' ')})" if why not in (None, "no_shutdown") else ""
        from_ms, until_ms = (
            parse_iso(self.before[key] or self.before["time"]) for key in ("time", "until_time")
        )
        if self.from_ms is not None:  # what followed from it shows that it was over
            until_ms = max(from_ms, min(until_ms, self.from_ms))
        start, end = clock(from_ms), clock(until_ms)
        when = (
            f"at {start}"
            if start == end or self.before["state"] != "killed"
            else f"between {start} and {end}"
        )
        return f"after broker {self.before['broker_id']} {ENDS[self.before['state']]}{how} {when}"


def uncapital(text: str) -> str:
    """The text with a small first letter."""
    return text[0].lower() + text[1:]


def clock(time_ms: int) -> str:
    """The time of day, UTC, to the second."""
    return iso(time_ms)[11:19]


def clause(start: int | None, end: int | None) -> str:
    """When it happened, as the beginning of a sentence; empty if unknown."""
    if start is None or end is None:
        return ""
    day, until = iso(start)[:10], iso(end)[:10]
    if clock(start) == clock(end) and day == until:
        return f"On {day} at {clock(start)} UTC"
    if day == until:
        return f"On {day} between {clock(start)} and {clock(end)} UTC"
    return f"Between {day} {clock(start)} and {until} {clock(end)} UTC"


def names(partitions: Sequence[Key]) -> str:
    """One partition by name, several by their number."""
    return (
        f"{partitions[0][0]}-{partitions[0][1]}"
        if len(partitions) == 1
        else f"{len(partitions):,} partitions"
    )


def incidents(tables: Tables) -> list[Incident]:
    """The incidents, those with the most lost offsets first, then in order of time."""
    losses = list(tables.rows("losses"))
    lost_keys = {(row["topic"], row["partition"], row["lost_in_epoch"]) for row in losses}
    times: dict[tuple[str, int, int], int] = {}
    last_known = set()
    unclean: list[dict[str, Any]] = []
    for row in tables.rows(
        "leaders", columns=["topic", "partition", "leader", "leader_epoch", "from_time", "how", "cause"]
    ):
        key = row["topic"], row["partition"], row["leader_epoch"]
        if key in lost_keys or row["how"] == "unclean":
            times[key] = parse_iso(row["from_time"])
            if LAST_KNOWN in (row["cause"] or ""):
                last_known.add(key)
            if row["how"] == "unclean":
                unclean.append(row)
    members: dict[tuple[str, int | None, bool], list[Member]] = defaultdict(list)
    incident_keys = set()
    for row in losses:
        key = row["topic"], row["partition"], row["lost_in_epoch"]
        is_last_known = row["cause"] == UNCLEAN and key in last_known
        members[row["cause"], row["dropped_by"], is_last_known].append((times.get(key), key[:2], row))
        incident_keys.add(key)
    for row in unclean:
        key = row["topic"], row["partition"], row["leader_epoch"]
        if key not in incident_keys:
            members[UNCLEAN, row["leader"], key in last_known].append((times[key], key[:2], None))
    ends = [row for row in tables.rows("broker_states") if row["state"] in ENDS]
    all_incidents = [
        replace(_incident(cause, broker_id, group, ends), is_last_known=is_last_known)
        for (cause, broker_id, is_last_known), members_of_cause in members.items()
        for group in _clusters(members_of_cause)
    ]
    all_incidents.sort(key=lambda incident: (incident.from_ms or 0, incident.cause, incident.partitions))
    return sorted(all_incidents, key=lambda incident: -amount_of(incident.losses).offsets)


def _clusters(
    members: list[Member],
) -> Iterator[list[Member]]:
    """Members whose times are close together; those without a time are a group of their own."""
    dated = sorted((m for m in members if m[0] is not None), key=lambda member: (member[0] or 0, member[1]))
    group: list[Member] = []
    for member in dated:
        if group and (member[0] or 0) - (group[-1][0] or 0) > APART_MS:
            yield group
            group = []
        group.append(member)
    if group:
        yield group
    undated = sorted((member for member in members if member[0] is None), key=lambda member: member[1])
    if undated:
        yield undated


def _incident(
    cause: str,
    broker_id: int | None,
    group: Sequence[Member],
    ends: Iterable[StoredRow],
) -> Incident:
    times = [time for time, _, _ in group if time is not None]
    start, end = min(times, default=None), max(times, default=None)
    before = None
    if start is not None and cause in (UNCLEAN, TAIL_LOST):
        in_sync = {broker for _, _, row in group if row for broker in listed(row["isr_before"])}
        near = [
            row for row in ends
            if _may_have_led_to(row, cause, broker_id, in_sync) and 0 <= start - parse_iso(row["time"]) <= LIVES_BEFORE_MS
        ]  # fmt: skip
        before = max(near, key=lambda row: parse_iso(row["time"]), default=None)
        for row in near:
            # The controller only noticed it; the broker's own log has the kind and the broker's last line before.
            if (
                before is not None
                and before["state"] == "down"
                and row["state"] == "killed"
                and row["broker_id"] == before["broker_id"]
                and row["time"] <= before["time"] <= (row["until_time"] or "")
            ):
                before = {**row, "until_time": before["time"]}
    return Incident(
        cause, broker_id, start, end, tuple(sorted({key for _, key, _ in group})),
        tuple(row for _, _, row in group if row is not None), before,
    )  # fmt: skip


def _may_have_led_to(end: StoredRow, cause: str, leader: int | None, in_sync: Container[int]) -> bool:
    """Whether the end of a broker's life can be what an incident began with: the leader's own where it lost its tail."""
    if cause == TAIL_LOST:
        return (leader, end["state"]) in {(end["broker_id"], "killed"), (end["broker_id"], "halted")}
    return bool(end["broker_id"] != leader) and (not in_sync or end["broker_id"] in in_sync)


def is_consequence(finding: StoredRow, partitions: frozenset[Key] | set[Key]) -> bool:
    """Whether a finding follows from an incident of its partition, and is shown there."""
    return finding["code"] in CONSEQUENCES and (finding["topic"], finding["partition"]) in partitions
