"""`kctl state-log`: brokers' logs merged by time, who led when, and what a line means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from commands.frame import Callback, Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, Row, folding
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.broker_logs.blocks import Filter
    from kctl.broker_logs.events import Merge
    from kctl.broker_logs.sources import Sources
    from kctl.model import TopicPartition

Decorator = Callable[[Callback], Callback]
BROKER_OPTIONS = (
    click.option(
        "--broker", "brokers", multiple=True, metavar="ID[=FOLDER]",
        help="Only logs of this broker; or say whose a folder of logs is. Repeatable.",
    ),
    click.option(
        "--time-zone", "zones", multiple=True, metavar="[ID=]ZONE",
        help="The zone that a broker logs in, as Asia/Tokyo or +09:00.  [default: told by its start-up lines, else UTC]",
    ),
    click.option(
        "--pattern", "patterns", multiple=True, metavar="PATTERN",
        help="A log4j pattern that logs are laid out by, or `json`; repeatable.",
    ),
)  # fmt: skip
SELECTION = (
    click.option(
        "--topic", "topics", multiple=True, metavar="TOPIC", help="Only lines that name it; repeatable."
    ),
    click.option("--partitions", "--partition", "partitions", metavar="LIST", help="Only these, as 0,3-5."),
    click.option(
        "--from", "start", metavar="TIME", help="From this time: ISO 8601, -2h, or epoch milliseconds."
    ),
    click.option("--to", "end", metavar="TIME", help="Up to this time."),
)


def options(*groups: tuple[Decorator, ...]) -> Decorator:
    """Several options as one decorator."""

    def add(function: Callback) -> Callback:
        for option in reversed([one for group in groups for one in group]):
            function = option(function)
        return function

    return add


def sources_of(
    frame: Frame, paths: tuple[str, ...], brokers: tuple[str, ...], patterns: tuple[str, ...]
) -> Sources:
    """What the arguments name, with each path that cannot be opened reported."""
    from kctl.broker_logs.sources import find_sources, layouts_of, only_brokers

    folders = [text for text in brokers if "=" in text]
    only = [text for text in brokers if "=" not in text]
    found = find_sources(paths, brokers=folders, layouts=layouts_of(patterns))
    for failure in found.failures:
        frame.report(failure)
    if not (found.sources or found.findings or found.failures or "-" in paths):
        frame.report(KctlError(f"{', '.join(paths)}: no broker log lies here"))
    if only:
        found = only_brokers(found, only)
    return found


def merge_of(sources: Sources, zones: tuple[str, ...]) -> Merge:
    """A merge with the zones given."""
    from kctl.broker_logs.events import prepare
    from kctl.broker_logs.zones import parse_zones

    named, default = parse_zones(zones)
    return prepare(sources, named, default)


def selection(
    topics: tuple[str, ...], partitions: str | None, start: str | None, end: str | None
) -> list[Filter]:
    """The filters of the options that every verb has."""
    from kctl.broker_logs.filters import TopicFilter, parse_partitions, parse_time, time_filter

    found: list[Filter] = []
    if start is not None or end is not None:
        found.append(
            time_filter(
                None if start is None else parse_time(start, "--from"),
                None if end is None else parse_time(end, "--to"),
            )
        )
    if topics:
        found.append(TopicFilter(topics, parse_partitions(partitions) if partitions else frozenset()))
    elif partitions:
        raise click.UsageError("--partitions needs --topic")
    return found


@command(
    "merge",
    examples="""
    kctl state-log merge evidence/                            every broker's logs in one order of time
    kctl state-log merge --topic orders --partitions 0,3-5 broker-*/logs/state-change.log*
    kctl state-log merge --from 2026-11-21T13:18:00Z --level WARN --output jsonl evidence/
    kctl state-log merge --format kafka --topic orders logs/  as Kafka's own tool of 0.8.2 printed it
    """,
    status="0 merged · 2 wrong usage · 3 a path could not be opened · 5 a log was damaged or unreadable",
)
@click.argument("source", nargs=-1, type=GIVEN)
@options(SELECTION, BROKER_OPTIONS)
@click.option("--event", "events", multiple=True, metavar="ID", help="Only lines of this template, as C15.")
@click.option(
    "--level", type=click.Choice(["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]), help="This or worse."
)
@click.option("--grep", "expression", metavar="REGEX", help="Only records in which it is found.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["marked", "lines", "kafka"]),
    default="marked",
    show_default=True,
    help="Text: lines marked with broker and file; lines as they are; what Kafka's StateChangeLogMerger prints.",
)
@click.option("--fix-skew", is_flag=True, help="Order by clocks mended by what must have come before what.")
@click.option("--logs-regex", metavar="DIR/REGEX", help="With --format kafka: files of a folder by name.")
@click.option("--start-time", metavar="TIME", help="With --format kafka: yyyy-MM-dd HH:mm:ss,SSS.")
@click.option("--end-time", metavar="TIME", help="With --format kafka: yyyy-MM-dd HH:mm:ss,SSS.")
def merge(
    frame: Frame,
    source: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: str | None,
    start: str | None,
    end: str | None,
    brokers: tuple[str, ...],
    zones: tuple[str, ...],
    patterns: tuple[str, ...],
    events: tuple[str, ...],
    level: str | None,
    expression: str | None,
    form: str,
    fix_skew: bool,
    logs_regex: str | None,
    start_time: str | None,
    end_time: str | None,
) -> Outcome:
    """Merge brokers' logs by time, whatever their version, rotation, compression and zone.

    SOURCE is a file, a folder of logs, a whole evidence folder, or `-` for standard input.
    """
    from kctl.broker_logs.filters import all_of, expression_filter, shape_filter

    if form == "kafka":
        return Outcome(
            encoded=lambda _: like_kafka(frame, source, topics, partitions, logs_regex, start_time, end_time)
        )
    if not source:
        raise click.UsageError("name at least one log, or - for standard input")
    if logs_regex or start_time or end_time:
        raise click.UsageError("--logs-regex, --start-time and --end-time go with --format kafka")
    filters = selection(topics, partitions, start, end)
    if expression:
        filters.append(expression_filter(expression))
    if events or level:
        filters.append(shape_filter(events, level))
    merging = merge_of(sources_of(frame, source, brokers, patterns), zones)
    if fix_skew:
        mend_skew(frame, source, merging)
    keep = all_of(filters)
    if frame.output == "text":
        return Outcome(encoded=lambda _: marked_lines(frame, merging, keep, form))
    note_zones(frame, merging)
    return Outcome(event_rows(frame, merging, keep))


def note_zones(frame: Frame, merging: Merge) -> None:
    """Say which brokers' times were put beside those of the others, and which could not be."""
    from kctl.broker_logs.clock_offsets import CODES

    for finding in merging.sources.findings:
        if finding.code in CODES:
            frame.note(finding.message)


def mend_skew(frame: Frame, source: tuple[str, ...], merging: Merge) -> None:
    """Estimate how far each broker's clock is off, say so, and order by mended clocks."""
    from kctl.broker_logs.events import Merge
    from kctl.broker_logs.skew import WANTED, estimate_skew

    if "-" in source:
        raise click.UsageError("--fix-skew reads the logs twice, standard input can be read only once")
    skew = estimate_skew(Merge(merging.sources, merging.zones).events(wanted=WANTED))
    merging.shifts = skew.shifts()
    for line in skew.sentences():
        frame.note(line)


def event_rows(frame: Frame, merging: Merge, keep: Filter | None) -> Iterator[Row]:
    """Rows of kind `event`, then what was found on the way; the count of lines goes to standard error."""
    from kctl.broker_logs.events import Count
    from kctl.broker_logs.zones import iso
    from kctl.rows.state_log import EVENT

    count = Count()
    for event in merging.events(keep):
        count.note(event)
        time, logged = event.time_ms, event.logged_ms
        written = None if time is None else iso(time)
        yield EVENT(
            time=written,
            broker_id=event.broker_id,
            file=event.file,
            line=event.line,
            level=event.level or None,
            logger=event.logger,
            event=event.event,
            fields=event.fields,
            text=event.text,
            evidence=event.source.evidence,
            logged_time=written if logged == time else event.logged_time,
        )
    for finding in (*merging.sources.findings, *merging.reading.findings):
        yield finding.row()
    frame.note(count.sentence(merging.reading))


def marked_lines(frame: Frame, merging: Merge, keep: Filter | None, form: str) -> Iterator[bytes]:
    """Lines as they are, or each with its broker and file before it; in colour on a terminal."""
    from kctl.broker_logs.marking import Marks

    marks = Marks(
        None if form == "lines" else merging.sources,
        color=frame.color == "always" or (frame.color == "auto" and is_terminal()),
        safe=is_terminal(),
    )
    yield from marks.written(merging.released(keep))
    for finding in (*merging.sources.findings, *merging.reading.findings):
        if finding.is_wrong:
            frame.raise_status(5)
        place = f"{finding.place.file}: " if finding.place.file else ""
        frame.note(f"{place}{finding.message}")
    frame.note(marks.sentence(merging.reading))


def is_terminal() -> bool:
    """Whether people read standard output."""
    import sys

    return sys.stdout.isatty()


def like_kafka(
    frame: Frame,
    source: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: str | None,
    logs_regex: str | None,
    start_time: str | None,
    end_time: str | None,
) -> Iterator[bytes]:
    """The bytes of Kafka's own tool."""
    from kctl.broker_logs.filters import parse_partitions
    from kctl.broker_logs.kafka_merger import FIRST, LAST, Wanted, files_matching, merge_like_kafka
    from kctl.broker_logs.sources import find_sources
    from kctl.errors import KctlError

    if len(topics) > 1:
        raise click.UsageError("--format kafka takes one --topic")
    found = find_sources(source)
    for failure in found.failures:
        frame.report(failure)
    paths = files_matching(logs_regex) if logs_regex else []
    paths += sorted(file.path for file in found.files if file.kind in ("state-change", "other"))
    if not paths:
        raise KctlError("no state-change log among what was given")
    wanted = Wanted(
        topics[0] if topics else None,
        parse_partitions(partitions) if partitions else frozenset(),
        start_time or FIRST,
        end_time or LAST,
    )
    yield from merge_like_kafka(paths, wanted, lambda reason: frame.report(KctlError(reason)))


@command(
    "timeline",
    examples="""
    kctl state-log timeline evidence/                         every partition, controller and broker
    kctl state-log timeline evidence/ --topic ledger --partition 0
    kctl state-log timeline logs/ --output jsonl | jq 'select(.kind == "leader" and .how == "unclean")'
    """,
    status="0 nothing wrong · 2 wrong usage · 3 a path could not be opened · "
    "5 an unclean election, an ISR below its minimum, a stale leader, or a log that was damaged",
)
@click.argument("source", nargs=-1, type=GIVEN, required=True)
@options(SELECTION, BROKER_OPTIONS)
@click.option(
    "--min-isr", type=click.IntRange(1), metavar="N", help="min.insync.replicas.  [default: as the logs say]"
)
@click.option("--fix-skew", is_flag=True, help="Order by clocks mended by what must have come before what.")
def timeline(
    frame: Frame,
    source: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: str | None,
    start: str | None,
    end: str | None,
    brokers: tuple[str, ...],
    zones: tuple[str, ...],
    patterns: tuple[str, ...],
    min_isr: int | None,
    fix_skew: bool,
) -> Outcome:
    """Say who led each partition from when to when, how each leadership began, and what proves it.

    SOURCE is a file, a folder of logs, a whole evidence folder, or `-` for standard input. Controllers' terms
    and brokers' comings and goings follow the partitions, then what is wrong.
    """
    from commands.state_log_chart import chart

    sources = sources_of(frame, source, brokers, patterns)
    filters = selection((), None, start, end)
    merging = merge_of(sources, zones)
    note_zones(frame, merging)
    if fix_skew:
        mend_skew(frame, source, merging)
    wanted = partitions_wanted(topics, partitions)
    return Outcome(
        _told(frame, timeline_rows(merging, filters, wanted, min_isr), topics), text=folding(chart)
    )


def _told(frame: Frame, rows: Iterator[Row], topics: tuple[str, ...]) -> Iterator[Row]:
    """The rows; a topic that was asked for and that no line names is said."""
    unheard = dict.fromkeys(topics)
    for row in rows:
        if row["kind"] == "leader":
            unheard.pop(str(row["topic"]), None)
        yield row
    for topic in unheard:
        frame.note(f"no line says who led a partition of {topic}")


def partitions_wanted(topics: tuple[str, ...], partitions: str | None) -> Callable[[TopicPartition], bool]:
    """Whether a partition was asked for."""
    from kctl.broker_logs.filters import parse_partitions

    if partitions and not topics:
        raise click.UsageError("--partitions needs --topic")
    numbers = parse_partitions(partitions) if partitions else None
    return lambda one: (not topics or one.topic in topics) and (numbers is None or one.partition in numbers)


def timeline_rows(
    merging: Merge, filters: list[Filter], wanted: Callable[[TopicPartition], bool], min_isr: int | None
) -> Iterator[Row]:
    """Rows of leaders, controllers, brokers and findings."""
    from kctl.broker_logs.filters import all_of
    from kctl.broker_logs.timeline import WANTED, timeline

    found = timeline(merging.events(all_of(filters), WANTED), wanted, merging.doubtful)
    for leaderships in found.leaderships.values():
        for one in leaderships:
            yield one.row()
    for term in found.controllers:
        yield term.row()
    for state in found.brokers:
        yield state.row()
    for finding in (*found.findings(min_isr), *merging.sources.findings, *merging.reading.findings):
        yield finding.row()


@command(
    "explain",
    examples="""
    kctl state-log explain broker-3/logs/state-change.log:214
    kctl state-log explain '[2026-11-21 13:18:45,240] TRACE [Controller id=3 epoch=1] ... (state.change.logger)'
    """,
    status="0 explained · 2 wrong usage · 3 the file could not be opened · 5 no template fits the line",
)
@click.argument("line")
def explain(frame: Frame, line: str) -> Outcome:
    """Say in words what a line of a broker's log means.

    LINE is the text of a line, with or without its head, or FILE:NUMBER.
    """
    from commands.state_log_chart import explained
    from kctl.broker_logs.explain import explain_line

    row = explain_line(line)
    if row["event"] is None:
        frame.raise_status(5)
    return Outcome([row], text=folding(explained))
