"""Rows of `state-log timeline`, against what was done and what ZooKeeper or the metadata log had."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise, zip_longest
from pathlib import Path

from kctl.times import parse_time as milliseconds
from tests.nemesis.statements import UNBOUNDED, Row, Statement, partition_of
from tests.nemesis.story import IDS, Fault, State, Story

SLACK = 700.0  # ms between an act and what a log says of it
SLOWEST_START = (
    30_000.0  # ms of life in which a broker has to log that it starts; a busy machine takes longer
)
LONGEST_SHUTDOWN = 40_000.0  # ms between a signal or a pause and the last leadership that it moves
EARLY, LATE = -1500.0, 3000.0  # ms that a time may be off
CLOCK = 3000.0  # ms that the difference of clocks may be off
GONE = ("kill", "stopped", "exited")
FAILS = ("term", "pause", "resume", "cut", "mend", "disk-lost", *GONE)
BACK = ("start", "resume", "mend", "cut")


def judge_leaders(story: Story, found: list[Row], *, has_all: bool = True) -> list[Statement]:
    """Rows of leaders against the states that ZooKeeper or the metadata log had; `has_all`: of each epoch."""
    said = []
    for partition, incarnation, states in lives_of(story):
        if partition.startswith("__"):
            continue
        told = {
            row["leader_epoch"]: row
            for row in found
            if row["kind"] == "leader"
            and partition_of(row) == partition
            and row["incarnation"] == incarnation
        }
        epochs: dict[int, list[State]] = {}
        for state in states:
            epochs.setdefault(state.epoch, []).append(state)
        is_present = states is story.history[partition]
        for epoch, row in sorted(told.items()):
            where = f"timeline {partition} epoch {epoch}{f' of topic {incarnation}' * (incarnation > 1)}"
            if epoch not in epochs:
                said.append(Statement(False, f"{where} never was: leader {row['leader']} {row['how']}"))
                continue
            said += judge_state(story, row, epochs[epoch], where)
            before = [state for state in states if state.epoch < epoch][-1:]
            said += judge_beginning(story, row, epochs[epoch][0], before[0] if before else None, where)
            said += judge_cause(story, row, epochs[epoch][0], before[0] if before else None, where)
            later = [other for other in sorted(told) if other > epoch]
            end = told[later[0]]["from_time"] if later else None
            said.append(
                Statement(
                    row["to_time"] == end or not (later or is_present),
                    f"{where}: says to_time {row['to_time']}, the next begins at {end}",
                )
            )
        # A topic that is being deleted loses its leaders and its ISR on the way, of which nobody need tell.
        deleted = [f.time for f in story.of("delete") if f.detail["topic"] == partition.rpartition("-")[0]]
        ends = min([] if is_present else deleted, default=UNBOUNDED)
        missing = [
            epoch for epoch in epochs if epoch not in told and has_all and epochs[epoch][0].time < ends
        ]
        said.append(Statement(not missing, f"timeline {partition}: epochs {missing} are missing"))
    said += judge_clocks(story, found)
    return said


def lives_of(story: Story) -> Iterator[tuple[str, int, list[State]]]:
    """The states of each partition, of each topic of the name, whose number is the second value."""
    for partition, present in sorted(story.history.items()):
        for number, states in enumerate([*story.before.get(partition, ()), present], 1):
            yield partition, number, states


def judge_state(story: Story, row: Row, states: list[State], where: str) -> list[Statement]:
    """What a row says of an epoch, against its states: the first, and those with another ISR."""
    leaders = {None, *(state.leader for state in states)}
    said = [
        Statement(
            row["leader"] in leaders, f"{where}: says leader {row['leader']}, it was {states[0].leader}"
        )
    ]
    isrs = [sorted(state.isr) for state in states]
    if row["isr"] is not None and row["leader"] is not None:
        said.append(Statement(sorted(row["isr"]) in isrs, f"{where}: says ISR {row['isr']}, it was {isrs}"))
    for change in row["isr_changes"]:
        same = [state.time for state in states if sorted(state.isr) == sorted(change["isr"])]
        off = min((milliseconds(change["time"]) - time for time in same), key=abs, default=None)
        said.append(Statement(bool(same), f"{where}: says ISRs {change}, they were {isrs}"))
        said.append(
            Statement(
                off is None or _early(story) < off < LATE * 2,
                f"{where}: says ISR {change['isr']} at {change['time']}, {(off or 0) / 1000:.1f} s off",
            )
        )
    for key, values in (
        ("controller_epoch", {state.controller_epoch for state in states}),
        ("topic_id", {state.topic_id for state in states}),
    ):
        if row[key] is not None and values - {None}:
            said.append(Statement(row[key] in values, f"{where}: says {key} {row[key]}, it was {values}"))
    said.append(Statement(row["cluster"] == 1, f"{where}: says cluster {row['cluster']}"))
    return said


def judge_beginning(
    story: Story, row: Row, first: State, before: State | None, where: str
) -> list[Statement]:
    """How a leadership began and when, against the state before it and what was done to brokers."""
    was = f"{before.leader} {before.isr}" if before else "nothing"
    # An epoch that no line tells of is named, and nothing is said of it.
    allowed = hows(first, before) | ({"unknown"} if row["leader"] is None else set())
    said = [
        Statement(
            row["how"] in allowed,
            f"{where}: says {row['how']} ({row['cause']}), it may be {sorted(allowed)}: {was}, then {first.leader} {first.isr}",
        ),
        Statement(
            (row["strength"] is None) == (row["how"] == "unknown"),
            f"{where}: says {row['how']}, strength {row['strength']}",
        ),
    ]
    needed = {"failure": FAILS, "controlled_shutdown": ("term", "exited")}.get(row["how"])
    if before and needed and before.leader >= 0:
        said.append(
            Statement(
                _was_done(story, needed, before.leader, first.time),
                f"{where}: says {row['how']} of broker {before.leader}, and nobody did that to it",
            )
        )
    partition = where.split()[1]
    if row["how"] in ("preferred", "reassignment"):
        kind = "election" if row["how"] == "preferred" else "reassign"
        asked = [f for f in story.of(kind) if f.detail.get("partition") in (None, partition)]
        said.append(
            Statement(
                any(fault.time - SLACK < first.time for fault in asked),
                f"{where}: says {row['how']}, and nobody asked for that",
            )
        )
    off = milliseconds(row["from_time"], "from_time") - first.time
    said.append(
        Statement(
            row["began_before"] or row["leader"] is None or _early(story) < off < LATE,
            f"{where}: says {row['from_time']}, {off / 1000:.1f} s off",
        )
    )
    return said


def _early(story: Story) -> float:
    """How far a time may be before the truth: times that are corrected are as right as the difference of clocks is."""
    return -CLOCK if story.skew else EARLY


NO_LEADER = -1


def hows(state: State, before: State | None) -> set[str]:
    """How a leadership may be said to have begun, by its state and the one before it."""
    unknown = {"unknown"}
    if before is None:
        return {"creation", *unknown}
    if state.leader < 0:
        return {"none"}
    if state.is_unclean and state.leader in state.isr[1:] and before.leader not in (NO_LEADER, *state.isr):
        # A reassignment that ends takes the leader away as the one that leads next joins the ISR.
        return {"unclean", "reassignment", *unknown}
    if state.is_unclean:
        return {"unclean", *unknown}
    if state.leader == before.leader:
        return {"isr_change", "reassignment", *unknown}
    if before.leader < 0:
        return {"failure", *unknown}
    if before.leader in state.isr:
        return {"preferred", "reassignment", *unknown}
    return {"failure", "controlled_shutdown", "reassignment", *unknown}


def _was_done(story: Story, kinds: Collection[str], broker: int, time: float) -> bool:
    """Whether it was done to a broker, or to its network, before a state shows it."""
    acts = [f for f in story.of(*kinds) if f.broker == broker or broker in f.detail.get("peers", ())]
    # Whose controller, or whose session, went heard of it later.
    # A process that ends by itself shuts down in order, and is found gone afterwards.
    return any(
        act.time - time < (LONGEST_SHUTDOWN if act.kind == "exited" else SLACK) and time < _until(story, act)
        for act in acts
    )


def _until(story: Story, act: Fault) -> float:
    """Until when it may be the cause of a state: a process that runs or is paused, and a network that is cut, stay so.

    Without a majority of controllers nobody takes note of a broker that ends, until it is unfenced: where the metadata
    log does not tell that, until it joins an ISR again.
    """
    if act.kind in GONE and story.fencings:
        unfenced = (
            fencing.time
            for fencing in story.fencings
            if fencing.broker == act.broker and fencing.time > act.time and not fencing.is_fenced
        )
        return min(unfenced, default=UNBOUNDED) + SLACK
    if act.kind in GONE and "kraft" in story.mode:
        joined = (
            state.time
            for states in story.history.values()
            for before, state in pairwise(states)
            if state.time > act.time and act.broker in state.isr and act.broker not in before.isr
        )
        return min(joined, default=act.time) + LONGEST_SHUTDOWN
    if act.kind not in GOES_ON:
        return act.time + LONGEST_SHUTDOWN
    ends = (f.time for f in story.of(*GOES_ON[act.kind]) if f.broker == act.broker and f.time > act.time)
    return min(ends, default=UNBOUNDED) + LONGEST_SHUTDOWN


# A process that was started may take long until it is elected.
GOES_ON = {"pause": ("resume", "kill"), "cut": ("mend", "kill"), "start": GONE}


CAUSES = (
    (re.compile(r"broker (\d+) (?:was )?shut down"), ("term", "exited")),
    (re.compile(r"broker (\d+) failed"), FAILS),
    (re.compile(r"broker (\d+) was back"), BACK),
)
NOT_IN_ISR = re.compile(r"broker (\d+) was (?:not|neither) in the ISR \[([\d,]*)\]")
NO_REPLICA = re.compile(r"broker (\d+) left the ISR as it is no replica")
KILLED = re.compile(r"broker (\d+) was killed between (\S+) and (\S+)")


def judge_cause(story: Story, row: Row, first: State, before: State | None, where: str) -> list[Statement]:
    """What the cause names: a broker to which that was done, an ISR that was."""
    cause, said = row["cause"] or "", []
    for pattern, kinds in CAUSES:
        for broker in map(int, pattern.findall(cause)):
            said.append(
                Statement(
                    _was_done(story, kinds, broker, first.time), f"{where}: says {cause!r}, nobody did that"
                )
            )
    if "being deleted" in cause:
        topic = where.split()[1].rpartition("-")[0]
        right = any(f.detail["topic"] == topic and f.time < first.time + SLACK for f in story.of("delete"))
        said.append(Statement(right, f"{where}: says {cause!r}, nobody deleted it"))
    for broker, listed in NOT_IN_ISR.findall(cause):
        isr = sorted(map(int, listed.split(","))) if listed else []
        right = int(broker) == first.leader and before is not None and isr == sorted(before.isr)
        said.append(Statement(right, f"{where}: says {cause!r}, it was {before and before.isr}"))
    for broker in map(int, NO_REPLICA.findall(cause)):
        partition = where.split()[1]
        moves = [
            f for f in story.of("reassign") if f.detail["partition"] == partition and f.time < first.time
        ]
        right = any(broker not in move.detail["replicas"] for move in moves)
        said.append(Statement(right, f"{where}: says {cause!r}, it was never asked for"))
    for broker, since, until in KILLED.findall(cause):
        acts = story.of("kill", "exited", "term", broker=int(broker))
        right = any(milliseconds(since) - SLACK < act.time < milliseconds(until) + SLACK for act in acts)
        said.append(Statement(right, f"{where}: says {cause!r}, {_near(acts, first.time)}"))
    return said


def judge_clocks(story: Story, found: list[Row]) -> list[Statement]:
    """How far clocks are off."""
    said = []
    for row in found:
        if "clock_offset_ms" not in row:
            continue
        proofs = [proof["broker_id"] for proof in row["evidence"] if proof.get("broker_id") is not None]
        broker = proofs[0] if proofs else row.get("broker_id")
        ahead = story.skew.get(broker, 0) * 1000 if broker is not None else 0
        offset = row["clock_offset_ms"]
        said.append(
            Statement(
                abs((offset or 0) - ahead) < CLOCK,
                f"timeline: {row['kind']} of broker {broker}: says that its clock is {offset} ms ahead, it was {ahead}",
            )
        )
    return said


def judge_terms(story: Story, found: list[Row]) -> list[Statement]:
    """Rows of controllers, and of leaders of the metadata quorum, against what ZooKeeper or the quorum's log has."""
    terms = {term.epoch: term for term in story.controllers}
    said: list[Statement] = []
    if not terms:  # the dump tool of 3.9 does not print who became leader of the quorum
        return said
    for row in found:
        is_term = row["kind"] == "controller_term"
        if not is_term and not (row["kind"] == "leader" and row["topic"] == "__cluster_metadata"):
            continue
        epoch, broker = (
            (row["controller_epoch"], row["broker_id"]) if is_term else (row["leader_epoch"], row["leader"])
        )
        where = f"timeline {row['kind']} epoch {epoch}: broker {broker}"
        if epoch is None or broker is None or broker < 0:
            continue
        term = terms.get(epoch)
        if term is None:  # an epoch of an election that nobody won has no record
            said.append(Statement(not is_term, f"{where}, and there never was such a controller"))
            continue
        said.append(Statement(broker == term.broker, f"{where}, it was {term.broker}"))
        off = milliseconds(row["from_time"]) - term.time
        is_late = is_term or row["began_before"]
        said.append(
            Statement(
                is_late or abs(off) < LATE * 2, f"{where}: from {row['from_time']}, {off / 1000:.1f} s off"
            )
        )
        if is_term:
            later = [other.time for other in story.controllers if other.epoch > epoch]
            end = row["to_time"]
            said.append(
                Statement(
                    end is None or bool(later) or row["ended"] in ("resigned", "stopped"),
                    f"{where}: says that it {row['ended']} at {end}, and nobody came after it",
                )
            )
            said.append(
                Statement(
                    not (row["ended"] or "").startswith("replaced") or bool(later),
                    f"{where}: says {row['ended']}, and nobody came after it",
                )
            )
            said.append(
                Statement(
                    end is None or not later or milliseconds(end) < later[0] + SLOWEST_START,
                    f"{where}: says to_time {end}, the next began {later[:1]}",
                )
            )
            wrong = [r for r in row["rejections"] if (r.get("latest_controller_epoch") or epoch + 1) <= epoch]
            said.append(Statement(not wrong, f"{where}: says that it was rejected: {wrong}"))
    return said


def judge_lines(found: list[Row], folder: Path) -> list[Statement]:
    """The lines that rows point at have the text that they tell."""
    files: dict[str, list[str]] = {}
    said = []
    for row in found:
        proofs = [
            proof
            for key in ("evidence", "rejections", "isr_changes")
            for proof in row.get(key) or ()
            if proof.get("line") is not None
        ]
        for proof in proofs:
            if proof["file"] not in files:
                files[proof["file"]] = (folder / proof["file"]).read_text(errors="replace").split("\n")
            line = files[proof["file"]][proof["line"] - 1]
            where = f"{row['kind']} {proof['file']}:{proof['line']}"
            said.append(Statement(_says(line, proof), f"{where} says {line[:200]}, not {proof}"))
    return said


def _says(line: str, proof: Row) -> bool:
    """Whether a line has the text that is told, or the ISR that it is named for."""
    if proof.get("text"):
        return proof["text"].split("\n")[0][:200] in line
    numbers = set(map(int, re.findall(r"\d+", line)))
    return set(proof.get("isr") or ()) <= numbers


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
    for broker in story.nodes:
        told = [r for r in found if r["kind"] == "broker_state" and r["broker_id"] == broker]
        times = {
            state: [milliseconds(r["time"]) for r in told if r["state"] == state]
            for state in ("starting", "down", "halted")
        }
        acts = story.of("start", "term", *GONE, broker=broker)
        kills = [row for row in told if row["state"] == "killed"]
        said += judge_states(story, told, broker)
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
        # A process with a controller alone is no broker: where it is told of, that is right, and it need not be.
        for fault, following in zip_longest(acts, acts[1:]) if broker in IDS else ():
            if fault.kind == "start" and (
                following is None or _lived(story, acts, following) > SLOWEST_START
            ):
                right = any(_ran(acts, time) == fault.time for time in times["starting"])
                said.append(
                    Statement(right, f"timeline: broker {broker} was started at {fault.time}, not said")
                )
            if (
                fault.kind == "kill"
                and following is not None
                and _lived(story, acts, fault) > SLOWEST_START / 2
            ):
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
            if fault.kind == "stopped" and _lived(story, acts, fault) > SLOWEST_START / 2:
                ends = times["down"] + times["halted"]
                right = any(-20_000 <= time - fault.time <= SLACK * 3 for time in ends)
                said.append(
                    Statement(
                        right,
                        f"timeline: broker {broker} stopped at {fault.time}, not said: {_states(told, fault.time)}",
                    )
                )
        for time in times["starting"]:
            right = time <= _first_said(acts, times["starting"], time) + SLOWEST_START
            said.append(Statement(right, f"timeline: broker {broker} starting at {time}, nobody started it"))
    return said


ENDS_BY = {
    "no_shutdown": ("kill", "exited", "term"),
    "signal_in_startup": ("term",),
    "halted_in_shutdown": ("term", "exited"),
}
TOLD_TO = ("controlled_shutdown", "stopping")


def judge_states(story: Story, told: list[Row], broker: int) -> list[Statement]:
    """Each state of a broker within a life of its process; how it ended, and when the next began."""
    acts = story.of("start", "term", *GONE, broker=broker)
    starts = [act.time for act in acts if act.kind == "start"]
    starting = [milliseconds(row["time"]) for row in told if row["state"] == "starting"]
    said = []
    for row in told:
        time = milliseconds(row["time"])
        where = f"timeline: broker {broker} {row['state']} at {row['time']}"
        since = max((start for start in starts if start <= time + SLACK), default=None)
        ended = [act.time for act in acts if act.kind in GONE and since is not None and act.time > since]
        is_alive = since is not None and (not ended or time < ended[0] + SLACK)
        if row["state"] in ("up", "starting", *TOLD_TO):
            said.append(Statement(is_alive, f"{where}: no process of it ran: {_near(acts, time)}"))
        if row["state"] in TOLD_TO:
            ends = [act for act in acts if act.kind in ("term", "exited") and act.time > (since or 0) - SLACK]
            # One that ends by itself is noticed later than it says that it stops.
            right = any(act.time < time + SLACK or act.kind == "exited" for act in ends)
            said.append(Statement(right, f"{where}: nobody told it to: {_near(acts, time)}"))
        if story.fencings and row["state"] in ("fenced", "unfenced"):
            is_fenced = row["state"] == "fenced"
            times = [f.time for f in story.fencings if (f.broker, f.is_fenced) == (broker, is_fenced)]
            right = any(EARLY < time - fenced < LATE * 2 for fenced in times)
            near = [fenced for fenced in times if abs(fenced - time) < 30_000]
            said.append(Statement(right, f"{where}: the metadata log has it at {near}"))
        if row["until_time"] is not None:
            until = milliseconds(row["until_time"])
            right = until <= _first_said(acts, starting, until) + SLACK
            said.append(Statement(right, f"{where}: says that the next began at {row['until_time']}"))
        if row["state"] in ("killed", "halted") and row["how"] in ENDS_BY:
            until = milliseconds(row["until_time"] or row["time"])
            acts_near = [act for act in acts if act.kind in ENDS_BY[row["how"]]]
            right = any(time - SLOWEST_START < act.time < until + SLACK for act in acts_near)
            said.append(Statement(right, f"{where}: says {row['how']}: {_near(acts, time)}"))
        said.append(
            Statement(
                row["cluster"] == 1 and row["topic_id"] is None,
                f"{where}: says cluster {row['cluster']}, topic_id {row['topic_id']}",
            )
        )
    return said


def _ran(acts: list[Fault], time: float) -> float | None:
    """When the process was started that ran at a time; None where none did."""
    start = max((act.time for act in acts if act.kind == "start" and act.time <= time + SLACK), default=None)
    ends = (act.time for act in acts if act.kind in GONE and start is not None and act.time > start)
    return start if start is not None and time <= min(ends, default=UNBOUNDED) + SLACK else None


def _first_said(acts: list[Fault], starting: Collection[float], time: float) -> float:
    """When the process that ran at a time is first said to start; long before it where none ran, long after it where one
    ended before it said so."""
    life = _ran(acts, time)
    said = (said for said in starting if _ran(acts, said) == life)
    return -UNBOUNDED if life is None else min(said, default=UNBOUNDED)


def _lived(story: Story, acts: list[Fault], end: Fault) -> float:
    """How long a process had run by then, in ms; it does nothing while it is paused."""
    start = max((f.time for f in acts if f.kind == "start" and f.time < end.time), default=end.time)
    lived = end.time - start
    for pause in story.of("pause", broker=end.broker):
        if start < pause.time < end.time:
            resumed = (f.time for f in story.of("resume", broker=end.broker) if f.time > pause.time)
            lived -= min(end.time, min(resumed, default=end.time)) - pause.time
    return lived


def _near(acts: list[Fault], time: float) -> list[tuple[str, float]]:
    return [(f.kind, f.time) for f in acts if abs(f.time - time) < 30_000]


def _states(told: list[Row], time: float) -> list[tuple[str, str]]:
    return [(r["state"], r["time"]) for r in told if abs(milliseconds(r["time"]) - time) < 30_000]
