"""Holds what kctl says of an incident against what happened.

A statement is one thing that kctl said, or should have said, and whether that is right. What only a disk held that was
cut or wiped is not demanded of kctl: nothing in the evidence need tell of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from kctl.times import parse_time as milliseconds
from tests.conftest import Ran, rows
from tests.nemesis.story import Fault, Sent, State, Story
from tests.nemesis.truth import Stored, log_of, stored

Row = dict[str, Any]
ANSWERS = (0, 3, 5)
UNBOUNDED = 1 << 62
NO_STARTS: Mapping[str, int] = {}
SLACK = 700.0  # ms between an act and what a log says of it
SLOWEST_START = 30_000.0  # ms until a broker has logged that it starts, or ended
LONGEST_SHUTDOWN = 40_000.0  # ms between a signal or a pause and the last leadership that it moves
GONE = ("kill", "stopped", "exited")
# What a cluster under faults may well be in, whatever its bytes.
OF_STATE = {"isr-below-minimum", "stale-controller-request"}
CUT_AND_CLEANED = {"recovery-point-above-log-end", "snapshot-beyond-log-end"}


class Statement(NamedTuple):
    """What was held against the truth."""

    is_right: bool
    text: str


def ranges(offsets: Iterable[int]) -> str:
    """Offsets as `[from, to)`, for people."""
    found: list[list[int]] = []
    for offset in sorted(offsets):
        if found and found[-1][1] == offset:
            found[-1][1] += 1
        else:
            found.append([offset, offset + 1])
    return " ".join(f"[{start}, {end})" for start, end in found)


def text(value: bytes | None) -> str:
    """A record's value as the story has it."""
    return (value or b"").decode("utf-8", "replace")


def partition_of(row: Row) -> str:
    """`TOPIC-N`."""
    return f"{row['topic']}-{row['partition']}"


class Copies:
    """The copies of an incident's evidence, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[tuple[str, str, int], dict[int, Stored] | None] = {}

    def of(self, moment: str, partition: str, broker: int) -> dict[int, Stored] | None:
        """Records by offset; None where the broker has no such folder."""
        key = moment, partition, broker
        if key not in self._read:
            folder = self.folder / "moments" / moment / f"broker-{broker}" / "data" / partition
            self._read[key] = log_of(folder) if folder.is_dir() else None
        return self._read[key]

    def log_start(self, moment: str, partition: str, broker: int) -> int:
        """Where a copy's log begins as its broker knew: files may hold more."""
        data = self.folder / "moments" / moment / f"broker-{broker}" / "data"
        try:
            lines = (data / "log-start-offset-checkpoint").read_text().splitlines()
        except OSError:
            return 0
        starts = [int(line.split()[2]) for line in lines[2:] if "-".join(line.split()[:2]) == partition]
        return max([0, *starts])

    def first_epoch_start(self, moment: str, partition: str, broker: int) -> int:
        """Where the first epoch of a copy starts: brokers delete the epochs of what they delete from a tier."""
        folder = self.folder / "moments" / moment / f"broker-{broker}" / "data" / partition
        lines = (folder / "leader-epoch-checkpoint").read_text().splitlines()
        return min((int(line.split()[1]) for line in lines[2:]), default=0)


# --- loss ---------------------------------------------------------------------------------------------


def judge_loss(
    story: Story,
    found: list[Row],
    kept: dict[str, dict[int, Stored]],
    has_copy: Callable[[str, int, str], bool],
    starts: Mapping[str, int] = NO_STARTS,
) -> list[Statement]:
    """Rows of `replica loss` against the leaders' logs at the end.

    `kept` holds these by partition; `has_copy` says whether a copy in the evidence has a value at an offset. What lies
    below `starts` the leaders deleted.
    """
    said: list[Statement] = []
    for partition, log in sorted(kept.items()):
        losses = [row for row in found if row["kind"] == "loss" and partition_of(row) == partition]
        is_sound = any(
            row["verdict"] == "sound"
            for row in found
            if row["kind"] == "judgement" and row["question"] == "loss" and partition_of(row) == partition
        )
        end = max(log, default=-1) + 1
        held = story.held.get(partition, {})
        acknowledged = [s for s in story.sent if s.partition == partition and s.offset is not None]
        answered: dict[int | None, set[str]] = {}
        for sent in acknowledged:
            answered.setdefault(sent.offset, set()).add(sent.value)
        is_compacted = partition.rpartition("-")[0] in story.compacted

        def claims(offset: int, losses: list[Row] = losses) -> list[Row]:
            return [r for r in losses if r["from_offset"] <= offset < (r["to_offset"] or UNBOUNDED)]

        lost = {}
        for sent in acknowledged:
            offset = sent.offset
            assert offset is not None
            if offset < starts.get(partition, 0):
                continue
            if offset in log:
                if text(log[offset].value) != sent.value:
                    lost[offset] = sent
            elif offset >= end or not is_compacted:
                lost[offset] = sent
        shown = {o: s for o, s in lost.items() if has_copy(partition, o, s.value)}
        unclaimed = [offset for offset in shown if not claims(offset)]
        said.append(
            Statement(
                not unclaimed,
                f"loss {partition}: {ranges(unclaimed)} are lost, a copy holds them, and no range claims them",
            )
        )
        understated = [
            offset
            for offset, sent in shown.items()
            if sent.acks == "all"
            and claims(offset)
            and {r["class"] for r in claims(offset)} == {"uncommitted"}
        ]
        said.append(
            Statement(
                not understated,
                f"loss {partition}: {ranges(understated)} were acknowledged with acks=all and are called uncommitted",
            )
        )
        untouched = [
            sent.offset
            for sent in acknowledged
            if sent.offset in log
            and text(log[sent.offset].value) == sent.value
            and {*held.get(sent.offset, ()), *answered[sent.offset]} <= {sent.value}
            and any(r["to_offset"] is not None for r in claims(sent.offset))
        ]
        said.append(
            Statement(
                not untouched,
                f"loss {partition}: {ranges(o for o in untouched if o is not None)} are claimed, and the leader has "
                f"what was acknowledged there; nobody held anything else",
            )
        )
        # What only a leader had is no loss of anything committed: a row of class uncommitted is all that is due.
        gone = [
            offset
            for offset, sent in lost.items()
            if any(r["class"] != "uncommitted" for r in claims(offset))
            or (sent.acks == "all" and (offset in shown or has_trace(story, sent)))
        ]
        said.append(
            Statement(
                not (is_sound and gone),
                f"loss {partition}: called sound, and {ranges(gone)} are lost"
                + "".join(f" ({lost[o].value[:16]} acks={lost[o].acks})" for o in gone[:2]),
            )
        )
    return said


def has_trace(story: Story, sent: Sent) -> bool:
    """Whether a log that had a record was neither cut nor wiped afterwards: Kafka itself dropped it there."""
    held = story.held.get(sent.partition, {}).get(sent.offset or 0, {}).get(sent.value, set())
    leader = story.leader(sent.partition, sent.time)
    holders = held | ({leader} if leader is not None else set())
    destroyed = {
        fault.broker
        for fault in story.of("power-loss", "wipe")
        if fault.time > sent.time and fault.detail.get("partition") in (None, sent.partition)
    }
    return bool(holders - destroyed)


# --- bytes --------------------------------------------------------------------------------------------


def touched(story: Story, before: float) -> set[tuple[int, str | None]]:
    """Broker and partition whose bytes were cut or wiped up to a time; partition None: all of a broker."""
    return {
        (fault.broker, fault.detail.get("partition"))
        for fault in story.of("power-loss", "wipe")
        if fault.broker is not None and fault.time <= before
    }


def judge_damage(story: Story, found: list[Row], command: str) -> list[Statement]:
    """Errors and warnings about bytes, in rows of one command: only where bytes were touched."""
    end = max(moment.done for moment in story.moments)
    done = {moment.name: moment.done for moment in story.moments}
    said = []
    for row in found:
        if row["kind"] != "finding" or row["severity"] == "info" or row["code"] in OF_STATE:
            continue
        marks = touched(story, done.get(row.get("moment") or "", end))
        broker = row.get("broker_id")
        right = (
            bool({(broker, partition_of(row)), (broker, None)} & marks) if broker is not None else bool(marks)
        )
        # A follower was cut back by an unclean leader; of a compacted log newer records were cut, and older ones cleaned.
        is_compacted = row["topic"] in story.compacted
        if row["code"] == "high-watermark-above-log-end" or (is_compacted and row["code"] in CUT_AND_CLEANED):
            states = story.history.get(partition_of(row), [])
            right |= any(
                state.is_unclean and state.time <= done.get(row.get("moment") or "", end) for state in states
            )
        what = f"{row['severity']} {row['code']} {row.get('file')}: {row['message'][:200]}"
        said.append(
            Statement(right, f"{command} {row.get('moment')} broker {broker} {what}; nobody touched it")
        )
    return said


def judge_torn(story: Story, found: list[Row]) -> list[Statement]:
    """Segments that were cut within a batch, in copies made before the broker ran again, have a finding."""
    said = []
    for fault in story.of("power-loss"):
        if not fault.detail["is_torn"]:
            continue
        again = [f.time for f in story.of("start", "wipe", broker=fault.broker) if f.time > fault.time]
        for moment in story.moments:
            if not fault.time < moment.time < moment.done < min(again, default=moment.done + 1):
                continue
            named = any(
                row["kind"] in ("finding", "damage")
                and row.get("broker_id") == fault.broker
                and row.get("moment") in (moment.name, None)
                and partition_of(row) == fault.detail["partition"]
                and fault.detail["file"] in str(row.get("file"))
                for row in found
            )
            where = f"broker {fault.broker} {fault.detail['partition']}/{fault.detail['file']}"
            said.append(Statement(named, f"verify {moment.name}: {where} was torn, and nothing says so"))
    return said


def judge_divergence(story: Story, found: list[Row], moment: str, copies: Copies) -> list[Statement]:
    """Rows of `replica compare` on one moment against the records of the copies."""
    said = []
    for partition in sorted(story.held):
        logs = {id: log for id in (1, 2, 3) if (log := copies.of(moment, partition, id)) is not None}
        for a, b in combinations(sorted(logs), 2):
            low = max(copies.log_start(moment, partition, id) for id in (a, b))
            both = logs[a].keys() & logs[b].keys()
            differ = {o for o in both if o >= low and logs[a][o] != logs[b][o]}
            told: set[int] = set()
            for row in found:
                if (
                    row["kind"] == "divergence"
                    and partition_of(row) == partition
                    and row["broker_ids"] == [a, b]
                ):
                    told |= set(range(row["from_offset"], row["to_offset"]))
            # A range that begins where they differ may go on over offsets that compaction took from one.
            right = told == differ or (bool(differ) and differ <= told and min(differ) == min(told))
            text = f"compare {moment} {partition} of {a} and {b}: says {ranges(told)}, the bytes {ranges(differ)}"
            said.append(Statement(right, text))
    return said


# --- history ------------------------------------------------------------------------------------------


def judge_leaders(story: Story, found: list[Row]) -> list[Statement]:
    """Rows of leaders against the states that ZooKeeper or the metadata log had."""
    said = []
    lives = [
        (partition, number, states)
        for partition, present in sorted(story.history.items())
        for number, states in enumerate([*story.before.get(partition, ()), present], 1)
    ]
    for partition, incarnation, states in lives:
        if partition.startswith("__"):
            continue
        told = {
            (partition, r["leader_epoch"]): r
            for r in found
            if r["kind"] == "leader" and partition_of(r) == partition and r["incarnation"] == incarnation
        }
        epochs: dict[int, list[Any]] = {}
        for state in states:
            epochs.setdefault(state.epoch, []).append(state)
        for epoch, row in [(epoch, row) for (name, epoch), row in told.items() if name == partition]:
            where = f"timeline {partition} epoch {epoch}{f' of topic {incarnation}' * (incarnation > 1)}"
            if epoch not in epochs:
                said.append(Statement(False, f"{where} never was: leader {row['leader']} {row['how']}"))
                continue
            first = epochs[epoch][0]
            leaders = {None, *(state.leader for state in epochs[epoch])}
            said.append(
                Statement(
                    row["leader"] in leaders, f"{where}: says leader {row['leader']}, it was {first.leader}"
                )
            )
            if row["isr"] is not None and row["leader"] is not None:
                isrs = [sorted(state.isr) for state in epochs[epoch]]
                said.append(
                    Statement(sorted(row["isr"]) in isrs, f"{where}: says ISR {row['isr']}, it was {isrs}")
                )
            if first.is_unclean or row["how"] == "unclean":
                truth = "unclean" if first.is_unclean else "clean"
                before = [(s.epoch, s.leader, s.isr) for s in states if epoch - 2 <= s.epoch <= epoch]
                said.append(
                    Statement(
                        (row["how"] == "unclean") == first.is_unclean,
                        f"{where}: says {row['how']}, it was {truth}: {before}",
                    )
                )
            before = [state for state in states if state.epoch < epoch][-1:]
            said += judge_beginning(story, row, first, before[0] if before else None, where)
            stated = [sorted(state.isr) for state in epochs[epoch]]
            wrong = [change for change in row["isr_changes"] if sorted(change["isr"]) not in stated]
            said.append(Statement(not wrong, f"{where}: says ISRs {wrong}, they were {stated}"))
        missing = [epoch for epoch in epochs if (partition, epoch) not in told]
        said.append(Statement(not missing, f"timeline {partition}: epochs {missing} are missing"))
    return said


def judge_beginning(
    story: Story, row: Row, first: State, before: State | None, where: str
) -> list[Statement]:
    """How a leadership began and when, against the state before it and what was done to brokers."""
    was = f"{before.leader} {before.isr}" if before else "nothing"
    allowed = hows(first, before)
    said = [
        Statement(
            row["how"] in allowed,
            f"{where}: says {row['how']} ({row['cause']}), it may be {sorted(allowed)}: {was}, then {first.leader} {first.isr}",
        )
    ]
    if before and row["how"] in ("failure", "controlled_shutdown") and before.leader >= 0:
        kinds = ("term",) if row["how"] == "controlled_shutdown" else ("term", "pause", "resume", *GONE)
        acts = [f.time for f in story.of(*kinds, broker=before.leader)]
        said.append(
            Statement(
                any(-LONGEST_SHUTDOWN < time - first.time < SLACK for time in acts),
                f"{where}: says {row['how']} of broker {before.leader}, and nobody did that to it",
            )
        )
    off = milliseconds(row["from_time"], "from_time") - first.time
    said.append(
        Statement(
            row["began_before"] or row["leader"] is None or -1500 < off < 3000,
            f"{where}: says {row['from_time']}, {off / 1000:.1f} s off",
        )
    )
    return said


def hows(state: State, before: State | None) -> set[str]:
    """How a leadership may be said to have begun, by its state and the one before it."""
    unknown = {"unknown"}
    if before is None:
        return {"creation", *unknown}
    if state.leader < 0:
        return {"none", *unknown}
    if state.is_unclean:
        return {"unclean", *unknown}
    if state.leader == before.leader:
        return {"isr_change", "reassignment", *unknown}
    if before.leader < 0:
        return {"failure", *unknown}
    if before.leader in state.isr:
        return {"preferred", "reassignment", *unknown}
    return {"failure", "controlled_shutdown", "reassignment", *unknown}


def judge_lines(found: list[Row], folder: Path) -> list[Statement]:
    """The lines that rows point at have the text that they tell."""
    files: dict[str, list[str]] = {}
    said = []
    for row in found:
        proofs = [p for p in row.get("evidence") or () if p.get("line") is not None]
        for proof in proofs:
            if proof["file"] not in files:
                files[proof["file"]] = (folder / proof["file"]).read_text(errors="replace").split("\n")
            line = files[proof["file"]][proof["line"] - 1]
            where = f"{row['kind']} {proof['file']}:{proof['line']}"
            said.append(
                Statement(
                    proof["text"][:200] in line, f"{where} says {line[:200]}, not {proof['text'][:200]}"
                )
            )
    return said


def judge_strength(found: list[Row]) -> Statement:
    """Hardly any row rests on nearness in time alone."""
    leaders = [row for row in found if row["kind"] == "leader"]
    likely = [row for row in leaders if row["strength"] == "likely"]
    shown = [f"{partition_of(row)} epoch {row['leader_epoch']}" for row in likely]
    return Statement(
        len(likely) <= 0.02 * len(leaders),
        f"timeline: {len(likely)} of {len(leaders)} rows are likely: {shown}",
    )


def judge_lives(story: Story, found: list[Row]) -> list[Statement]:
    """Rows of brokers' states against what was done to them."""
    said = []
    for broker in (1, 2, 3):
        told = [r for r in found if r["kind"] == "broker_state" and r["broker_id"] == broker]
        times = {
            state: [milliseconds(r["time"]) for r in told if r["state"] == state]
            for state in ("starting", "down", "halted")
        }
        acts = story.of("start", "term", *GONE, broker=broker)
        kills = [row for row in told if row["state"] == "killed"]
        for row in kills:
            low, high = (
                milliseconds(row["time"]) - SLACK,
                milliseconds(row["until_time"] or row["time"]) + SLACK,
            )
            right = any(
                low <= fault.time <= high for fault in acts if fault.kind in ("kill", "exited", "term")
            )
            said.append(
                Statement(
                    right,
                    f"timeline: broker {broker} killed at {row['time']}, nobody did: {_near(acts, low)}",
                )
            )
        for fault, following in zip_longest(acts, acts[1:]):
            if fault.kind == "start" and (following is None or following.time - fault.time > SLOWEST_START):
                right = any(-SLACK <= time - fault.time <= SLOWEST_START for time in times["starting"])
                said.append(
                    Statement(right, f"timeline: broker {broker} was started at {fault.time}, not said")
                )
            if fault.kind == "kill" and following is not None and _lived(acts, fault) > SLOWEST_START / 2:
                right = any(
                    milliseconds(r["time"]) - SLACK
                    <= fault.time
                    <= milliseconds(r["until_time"] or r["time"]) + SLOWEST_START
                    for r in kills
                )
                said.append(
                    Statement(
                        right,
                        f"timeline: broker {broker} was killed at {fault.time}, not said: {_states(told, fault.time)}",
                    )
                )
            if fault.kind == "stopped" and _lived(acts, fault) > SLOWEST_START / 2:
                ends = times["down"] + times["halted"]
                right = any(-20_000 <= time - fault.time <= SLACK * 3 for time in ends)
                said.append(
                    Statement(
                        right,
                        f"timeline: broker {broker} stopped at {fault.time}, not said: {_states(told, fault.time)}",
                    )
                )
        for time in times["starting"]:
            right = any(-SLACK <= time - f.time <= SLOWEST_START for f in acts if f.kind == "start")
            said.append(Statement(right, f"timeline: broker {broker} starting at {time}, nobody started it"))
    return said


def _lived(acts: list[Fault], end: Fault) -> float:
    """How long a process had run when it ended, in ms."""
    return end.time - max((f.time for f in acts if f.kind == "start" and f.time < end.time), default=end.time)


def _near(acts: list[Fault], time: float) -> list[tuple[str, float]]:
    return [(f.kind, f.time) for f in acts if abs(f.time - time) < 30_000]


def _states(told: list[Row], time: float) -> list[tuple[str, str]]:
    return [(r["state"], r["time"]) for r in told if abs(milliseconds(r["time"]) - time) < 30_000]


# --- tier ---------------------------------------------------------------------------------------------


class RemoteLogs:
    """The objects with records of a tier, by partition and segment id; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.paths: dict[tuple[str, str], Path] = {}
        for path in folder.glob("kafka-tiered-storage/*/*.log"):
            partition = path.parent.name[:-23]  # TOPIC-N-ID, the id of 22 characters
            self.paths[partition, path.stem[21:]] = path

    def of(self, partition: str, segment_id: str) -> dict[int, str]:
        """Values by offset; none where there is no such object."""
        path = self.paths.get((partition, segment_id))
        return {s.offset: text(s.value) for s in stored(path.read_bytes())} if path else {}


def judge_tier(
    story: Story,
    audited: list[Row],
    segments: list[Row],
    tier: RemoteLogs,
    local_starts: dict[str, int],
) -> list[Statement]:
    """Rows of `remote audit` and `remote segments --all` against the objects and what a consumer was served.

    `local_starts` are the first offsets of the leaders' own logs: below them a consumer reads from the tier.
    """
    said: list[Statement] = []
    for partition, served in sorted(story.served.items()):
        rows = [r for r in segments if r["kind"] == "remote_segment" and partition_of(r) == partition]
        findings = [r for r in audited if r["kind"] == "finding" and partition_of(r) == partition]
        remote = {offset for offset in served if offset < local_starts.get(partition, 0)}
        covered = {
            offset
            for row in rows
            if row["state"] == "COPY_SEGMENT_FINISHED"
            for offset in range(row["start_offset"], row["end_offset"] + 1)
        }
        said.append(
            Statement(
                remote <= covered,
                f"tier {partition}: {ranges(remote - covered)} were served from the tier, and no segment holds them",
            )
        )
        is_sound = any(
            r["verdict"] == "sound"
            for r in audited
            if r["kind"] == "judgement" and partition_of(r) == partition
        )
        start = min(
            [
                r["log_start_offset"]
                for r in audited
                if r["kind"] == "tier_partition" and partition_of(r) == partition
            ]
            or [0]
        )
        holes = set(range(start or 0, local_starts.get(partition, 0))) - served.keys()
        said.append(
            Statement(
                not (is_sound and holes),
                f"tier {partition}: called sound, and nobody could read {ranges(holes)}",
            )
        )
        known = {r["remote_log_segment_id"] for r in (*rows, *findings)}
        for segment_id in sorted(id for name, id in tier.paths if name == partition):
            where = f"tier {partition} segment {segment_id}"
            said.append(Statement(segment_id in known, f"{where} lies in the tier, and nothing says so"))
        for row in rows:
            segment_id = row["remote_log_segment_id"]
            where = f"tier {partition} segment {segment_id} [{row['start_offset']}, {row['end_offset'] + 1})"
            about = {f["code"] for f in findings if f["remote_log_segment_id"] == segment_id}
            values = tier.of(partition, segment_id)
            if row["state"] == "COPY_SEGMENT_FINISHED":
                said.append(Statement(bool(values or about), f"{where} has no object, and nothing says so"))
                other = {o for o, value in values.items() if o in remote and served[o] != value}
                said.append(
                    Statement(
                        bool(about) or not other,
                        f"{where}: a consumer is served other records at {ranges(other)}, and nothing says so",
                    )
                )
        for finding in findings:
            said.append(_of_tier(story, finding, served, tier))
    return said


def _of_tier(story: Story, finding: Row, served: dict[int, str], tier: RemoteLogs) -> Statement:
    """A finding about a tier whose objects nobody touched."""
    partition, code = partition_of(finding), finding["code"]
    cut = [f for f in story.of("power-loss") if f.detail["partition"] == partition] + story.of("wipe")
    is_unclean = any(state.is_unclean for state in story.history[partition])
    claimed = range(finding["base_offset"] or 0, (finding["last_offset"] or -1) + 1)
    if finding["severity"] == "info" or code in ("remote-copy-failed", "remote-deletion-interrupted"):
        right = True  # brokers were killed at any time
    elif code in ("remote-gap", "remote-local-deleted-before-copy"):
        right = any(offset not in served for offset in claimed)
    elif code in ("remote-segment-outside-lineage", "remote-log-differs-from-local"):
        values = tier.of(partition, finding["remote_log_segment_id"])
        right = any(served.get(offset) != value for offset, value in values.items())
    elif code == "remote-segment-hidden":
        right = bool(cut) or is_unclean
    else:
        lost_metadata = ("remote-metadata", "remote-object-orphan", "remote-segment-forgotten")
        right = code.startswith(lost_metadata) and bool(story.of("wipe"))
    what = f"{finding['severity']} {code} {finding['remote_log_segment_id']} {claimed}: {finding['message'][:200]}"
    return Statement(right, f"tier {partition}: {what}; nobody touched it")


# --- all of it ----------------------------------------------------------------------------------------


def judge_status(ran: Ran, command: str) -> Statement:
    """The exit status says what the rows say."""
    wrong = any(
        row.get("severity") in ("error", "warning")
        or row["kind"] == "divergence"
        or (row["kind"] == "loss" and row["class"] != "uncommitted")
        for row in ran.rows
    )
    unjudged = any(
        r["kind"] == "judgement" and r["verdict"] in ("could_not_judge", "unreadable") for r in ran.rows
    )
    light = any(row["kind"] == "loss" for row in ran.rows)
    expected = {5} if wrong else {3 if unjudged else 0} | ({5} if light else set())
    return Statement(
        ran.status in expected, f"{command}: exit {ran.status}, not {expected}: {ran.err[-300:]}"
    )


def judge(story: Story, folder: Path, audited: Path) -> list[Statement]:
    """Every statement about an incident; `folder` holds the evidence, `audited` is where the audit writes."""
    evidence = folder / "evidence"
    copies = Copies(evidence)
    said: list[Statement] = []

    def run(*args: object) -> list[Row]:
        command = " ".join(str(arg) for arg in args[:2])
        ran = rows(*args)
        said.append(Statement(ran.status in ANSWERS, f"{command}: exit {ran.status}: {ran.err[-2000:]}"))
        said.append(judge_status(ran, command))
        return ran.rows

    kept = {
        partition: log
        for partition in story.held
        if (leader := story.leader(partition, story.settled)) is not None
        and (log := copies.of("after", partition, leader)) is not None
    }
    local_starts = {partition: min(log, default=0) for partition, log in kept.items()}
    starts = {}
    for partition, served in story.served.items():  # a leader's own log is but the end of it
        leader = [state.leader for state in story.history[partition] if state.leader >= 0][-1]
        starts[partition] = copies.first_epoch_start("after", partition, leader)
        kept[partition] = {o: Stored(o, None, value.encode()) for o, value in served.items()}

    def has_copy(partition: str, offset: int, value: str) -> bool:
        logs = (copies.of(m.name, partition, id) or {} for m in story.moments for id in (1, 2, 3))
        return any(offset in log and text(log[offset].value) == value for log in logs)

    said += judge_loss(story, run("replica", "loss", evidence), kept, has_copy, starts)
    timeline = run("state-log", "timeline", evidence)
    said += judge_leaders(story, timeline)
    said += judge_lives(story, timeline)
    said.append(judge_strength(timeline))
    said += judge_lines(timeline, evidence)
    verified = run("segment", "verify", evidence)
    said += judge_damage(story, verified, "verify")
    said += judge_torn(story, verified)
    for moment in story.moments:
        compared = run("replica", "compare", evidence / "moments" / moment.name)
        said += judge_divergence(story, compared, moment.name, copies)
    if story.tiered:
        audit = run("remote", "audit", evidence)
        segments = run("remote", "segments", evidence, "--all")
        said += judge_tier(story, audit, segments, RemoteLogs(evidence / "tier"), local_starts)
    run("audit", "run", evidence, "--out", audited)
    return said
