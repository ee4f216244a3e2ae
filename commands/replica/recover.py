"""`kctl replica recover`: lost records produced to the cluster again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from commands.cli.changing import How, carry_out, changes
from commands.cli.connecting import open_brokers_for_change, wire
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.options import Size, flag, option
from commands.cli.render import Outcome, Page, Row
from formats.words import counted
from kctl.errors import BadValue, KctlError
from kctl.model import TopicPartition, some

if TYPE_CHECKING:
    from kctl.replica.recovery.lost_ranges import LostRange
    from kctl.wire.recovering.planning import PlannedPartition

STATUS = (
    "0 done, or nothing to do · 3 unknown topic, no connection, or not judged · 4 refused, nothing was written · "
    "5 written in part, or with --verify: a record is not there"
)


@command("recover", status=STATUS)
@evidence("broker", "moment", "topic", "partition", "compacted", "acks", "jobs")
@option("--leader ID", "Take the log of this broker as the present one.", type=int)
@option("--into TOPIC", "Write to this topic, which is created with as many partitions if it does not exist.")
@flag("--all", "Also write records of compacted topics whose keys have later records.", into="everything")
@option("--rate BYTES", "Limit on bytes written per second.", type=Size())
@option("--incident NAME", "Name of the incident in the headers.  [default: from the lost offsets]")
@flag("--verify", "Write nothing; check that the cluster has every record.")
@changes(timeout=600)
def recover(
    frame: Frame,
    options: EvidenceOptions,
    how: How,
    leader: int | None,
    into: str | None,
    everything: bool,
    rate: int | None,
    incident: str | None,
    verify: bool,
) -> Outcome:
    """Produce lost records to the cluster again.

    EVIDENCE is what `kctl replica loss` reads, or a folder that its --export wrote. Key, value, headers, timestamp and
    compression are kept; three headers name where a record was lost. Records that the cluster has already are not
    written again, however often this runs. Records of aborted and unfinished transactions are left out.

    $ kctl replica recover evidence/ --bootstrap-server kafka1:9092 --dry-run
    $ kctl replica recover evidence/ --topic ledger --into ledger-recovered --rate 5MiB
    $ kctl replica recover evidence/ --verify
    """
    from kctl.changes.journal import journalled
    from kctl.changes.kept_records import forget
    from kctl.wire.cluster import AdminCluster
    from kctl.wire.recovering.planning import Recovery, RecoveryOptions, keep_records

    frame.acks = options.acks
    if rate == 0:
        raise BadValue("--rate 0 would write nothing", "give bytes per second, such as 5MiB")
    ranges = list(_lost_ranges(frame, options, leader, decides=verify))
    with AdminCluster(wire(frame)) if verify else open_brokers_for_change(frame) as cluster:
        recovery_options = RecoveryOptions(
            into=into,
            every=everything,
            with_uncommitted=options.acks != "all",
            incident=incident,
            max_rate=rate,
        )
        recovery = Recovery(cluster, ranges, recovery_options, frame.progress())
        planned = list(recovery.partitions())
        rows = [*recovery.passed_over, *(row for partition in planned for row in partition.rows())]
        if unproven := list(_unproven(planned)):
            error = KctlError(
                f"records that no copy gives are not recovered: {some(unproven)}",
                "look for other copies: disks of brokers that were replaced, snapshots, the tier",
            )
            frame.report(error) if verify else frame.note(str(error))
        if verify:
            return Outcome([*rows, *_missing(planned)], text=recovery_text)
        before, files = journalled(), {}
        try:
            for partition in planned:
                if partition.to_write():
                    files[partition.target] = ("", "") if how.dry_run else keep_records(partition)
            return carry_out(frame, how, cluster, recovery.plan(planned, files), rows, recovery_text)
        finally:
            if journalled() == before:  # not confirmed
                for name, _ in files.values():
                    forget(name)


def _lost_ranges(
    frame: Frame, options: EvidenceOptions, leader: int | None, *, decides: bool
) -> Iterator[LostRange]:
    """The lost ranges of evidence, or of folders that were exported. `decides`: what was not judged is an error."""
    from kctl.judging.judgement import Verdict
    from kctl.replica.recovery.lost_ranges import exported_ranges, is_exported, range_of

    folders = [Path(path) for path in options.paths]
    exported = [folder for folder in folders if is_exported(folder)]
    if exported and len(exported) < len(folders):
        raise BadValue("evidence and exported records are both named", "name one of them")
    for folder in exported:
        for lost in exported_ranges(folder):
            is_topic = not options.topics or lost.partition.topic in options.topics
            if is_topic and (not options.partitions or lost.partition.partition in options.partitions):
                yield lost
    if exported:
        return
    from kctl.copies.moments import assigned_in
    from kctl.replica.loss.recovery import refuse_hashes
    from kctl.replica.loss.search import LossOptions, LossSearch

    found = options.find(frame)
    refuse_hashes(found)
    options.require_broker("--leader", leader, found)
    loss_options = LossOptions(
        options.topics,
        frozenset(options.partitions),
        frozenset(options.compacted),
        leader,
        options.acks,
    )
    search = LossSearch(found, loss_options, frame.report)
    options.report_absent(frame, found, assigned_in(search.znodes))
    unjudged: list[str] = []
    for result in search.results(frame.progress(), options.jobs):
        if search.judgement(result).verdict in (Verdict.COULD_NOT_JUDGE, Verdict.UNREADABLE):
            unjudged.append(str(result.partition))
        for loss in result.losses:
            if (lost_range := range_of(loss)) is not None:
                yield lost_range
            else:
                unjudged.append(f"{loss.partition} from offset {loss.from_offset:,} on")
    unjudged += [
        str(TopicPartition(str(judgement.subject.topic), judgement.subject.partition or 0))
        for judgement in search.without_copies()
    ]
    if unjudged:
        error = KctlError(
            f"whether more was lost is unknown of {some(unjudged)}",
            f"`{options.command_line('kctl replica loss')}` says what is missing",
        )
        frame.report(error) if decides else frame.note(str(error))


def _unproven(planned: Iterable[PlannedPartition]) -> Iterator[str]:
    """The ranges of which copies hold a part only, or records that cannot be read."""
    for partition in planned:
        for fate in partition.ranges:
            lost = fate.lost
            if not lost.is_whole or fate.unreadable:
                unreadable = f", {counted(fate.unreadable, 'unreadable record')}" if fate.unreadable else ""
                part = "" if lost.is_whole else ", which copies hold in part or not at all"
                yield f"{lost.partition} [{lost.from_offset:,}, {lost.to_offset:,}){part}{unreadable}"


def _missing(planned: Iterable[PlannedPartition]) -> Iterator[Row]:
    """A finding for each range of which a record is not in the cluster."""
    from kctl.findings import Place
    from kctl.findings.replica import NOT_RECOVERED
    from kctl.replica.recovery.comparison import Fate

    for partition in planned:
        for fate in partition.ranges:
            if missing := fate.count(Fate.WRITTEN):
                lost = fate.lost
                place = Place(
                    topic=lost.partition.topic,
                    partition=lost.partition.partition,
                    base_offset=lost.from_offset,
                    last_offset=lost.to_offset - 1,
                )
                yield NOT_RECOVERED.at(
                    place, missing=missing, records=fate.records, target=partition.target
                ).row()


def recovery_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a range: what was lost, what is there, what is written and what is left out."""
    from commands.cli.render import aligned, finding_line

    listed = list(rows)
    for row in listed:
        if row["kind"] == "recovery":
            yield from _range_lines(row, page)
        elif row["kind"] == "finding":
            yield finding_line(row, page)
    yield from aligned([row for row in listed if row["kind"] not in ("recovery", "finding")], page)
    ranges = [row for row in listed if row["kind"] == "recovery"]
    if not ranges:
        yield "no lost record was found"
        return
    totals = {
        name: sum(cast(int, row[name]) for row in ranges) for name in ("records", "already_there", "to_write")
    }
    yield (
        f"{counted(totals['records'], 'lost record')}: {totals['already_there']:,} in the cluster, "
        f"{totals['to_write']:,} to write, "
        f"{totals['records'] - totals['already_there'] - totals['to_write']:,} left out"
    )


def _range_lines(row: Row, page: Page) -> Iterator[str]:
    name = page.style(f"{row['topic']}-{row['partition']}", "bold")
    into = "" if row["into_topic"] == row["topic"] else f" into {row['into_topic']}-{row['partition']}"
    offsets = f"offsets [{row['from_offset']:,}, {row['to_offset']:,})"
    yield (
        f"{name}   {offsets}   {counted(cast(int, row['records']), 'record')}   "
        f"{row['already_there']:,} there, {row['to_write']:,} to write{into}"
    )
    left_out = cast("dict[str, int]", row["left_out"])
    if left_out:
        reasons = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in left_out.items())
        yield f"    left out: {reasons}"
    if row["keys_with_later_records"]:
        yield f"    {counted(cast(int, row['keys_with_later_records']), 'key')} with later records"
