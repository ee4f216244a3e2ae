"""`kctl state-log`: broker logs merged by time, leadership history, and the meaning of a line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.cli import completing
from commands.cli.answer import with_answer
from commands.cli.frame import Frame, command
from commands.cli.leaving import OWN_COLOUR
from commands.cli.options import GIVEN, Decorator, as_one_value, flag, option
from commands.cli.render import Outcome, Row, folding
from kctl.errors import BadValue, KctlError, near_names
from kctl.times import iso, parse_time

if TYPE_CHECKING:
    from kctl.broker_logs.merging import Merge
    from kctl.broker_logs.sources import Sources
    from kctl.internal_topics.decisions import Decided
    from kctl.judging.judgement import Judgement
    from kctl.model import TopicPartition
    from kctl.text_logs.blocks import Filter


class LogOptions(NamedTuple):
    """Which broker logs to read and which lines of them, as given."""

    source: tuple[str, ...]
    topics: tuple[str, ...]
    partitions: str | None
    start: str | None
    end: str | None
    brokers: tuple[str, ...]
    zones: tuple[str, ...]
    patterns: tuple[str, ...]
    layouts: tuple[str, ...]
    explain_layout: bool
    fix_skew: bool

    def sources(self, frame: Frame, *, or_metadata_log: bool = False) -> Sources:
        """The logs that the arguments name; each path that cannot be opened is reported."""
        from kctl.broker_logs.sources import find_sources, layout_in_words, layouts_of, only_brokers, some_of

        folders = [text for text in self.brokers if "=" in text]
        only = [text for text in self.brokers if "=" not in text]
        layouts = layouts_of(self.patterns, self.layouts)
        sources = find_sources(self.source, brokers=folders, layouts=layouts, names_all=bool(only))
        for failure in sources.failures:
            frame.report(failure)
        if self.explain_layout:
            for file in sources.files:
                frame.note(layout_in_words(file))
        if sources.copies_left:
            frame.note(
                f"not read: {some_of(sources.copies_left)}: lines of brokers whose own logs are here (name a file to read it)"
            )
        others = sources.of_other_systems
        is_read = bool(sources.sources or sources.failures or "-" in self.source)
        if not is_read and or_metadata_log and sources.evidence is not None:
            from kctl.internal_topics.decisions import metadata_logs

            is_read = bool(metadata_logs(sources.evidence))
        if not is_read and len(others) == len(sources.findings):
            why = f" ({others[0].message.rstrip('.')})" if others else ""
            frame.fail(
                f"{', '.join(self.source)}: no broker log of Kafka found here{why}",
                "name folders or files such as server.log, controller.log and state-change.log",
            )
        return only_brokers(sources, only) if only else sources

    def merge(
        self, frame: Frame, *, notes_zones: bool, or_metadata_log: bool = False, mends_clocks: bool = False
    ) -> Merge:
        """The merge of the logs, by the time zones given, with mended clocks for --fix-skew."""
        from kctl.broker_logs.clocks.offsets import CODES
        from kctl.broker_logs.clocks.skew import WANTED, estimate_skew
        from kctl.broker_logs.merging import Merge, prepare
        from kctl.text_logs.zones import parse_zones

        sources = self.sources(frame, or_metadata_log=or_metadata_log)
        merging = prepare(sources, *parse_zones(self.zones), mends_clocks=mends_clocks)
        if notes_zones:
            for finding in sources.findings:
                if finding.code in CODES:
                    frame.note(finding.message)
        if self.fix_skew:
            if "-" in self.source:
                raise click.UsageError(
                    "--fix-skew reads the logs twice; standard input can be read only once"
                )
            skew = estimate_skew(Merge(sources, merging.zones).events(templates=WANTED))
            merging.shifts = skew.shifts()
            for line in skew.sentences():
                frame.note(line)
        return merging

    def time_filters(self) -> list[Filter]:
        """The filter by --from and --to."""
        from kctl.broker_logs.filters import time_filter

        since, until = self.time_range()
        return [] if since is until is None else [time_filter(since, until)]

    def time_range(self) -> tuple[int | None, int | None]:
        """The times of --from and --to in milliseconds; None where they were not given."""
        return (
            None if self.start is None else parse_time(self.start, "--from"),
            None if self.end is None else parse_time(self.end, "--to"),
        )

    def decided(self, frame: Frame, sources: Sources) -> Decided | None:
        """What the metadata log says next to the logs; nothing where one broker's logs were asked for."""
        from kctl.internal_topics.decisions import decided_in

        return (
            None
            if sources.evidence is None or sources.brokers
            else decided_in(sources.evidence, frame.report)
        )

    def partition_numbers(self) -> frozenset[int]:
        """The partitions asked for; empty for all."""
        from kctl.broker_logs.filters import parse_partitions

        if self.partitions and not self.topics:
            raise click.UsageError("--partitions needs --topic")
        return parse_partitions(self.partitions) if self.partitions else frozenset()


def log_options(*, required: bool) -> Decorator:
    """Add SOURCE... and the options that choose lines; the function gets them as `LogOptions`."""
    return as_one_value(
        LogOptions, [click.argument("source", nargs=-1, type=GIVEN, required=required), *LOG_OPTIONS]
    )


LOG_OPTIONS = (
    option(
        "--topic TOPIC...",
        "Only lines about this topic; repeatable.",
        into="topics",
        shell_complete=completing.topics,
    ),
    click.option(
        "--partitions",
        "--partition",
        "partitions",
        metavar="LIST",
        help="Only these partitions, such as 0,3-5.",
    ),
    option(
        "--from TIME", "Only lines from this time on: ISO 8601, -2h, or epoch milliseconds.", into="start"
    ),
    option("--to TIME", "Only lines up to this time.", into="end"),
    option(
        "--broker ID[=FOLDER|NAME]...",
        "Only logs of this broker, or set the broker id of a folder, or of lines that a pod, container or host of this "
        "name printed; repeatable.",
        into="brokers",
    ),
    option(
        "--time-zone [ID=]ZONE...",
        "Time zone of a broker's logs, such as Asia/Tokyo or +09:00.  [default: from start-up lines, else UTC]",
        into="zones",
    ),
    option("--pattern PATTERN...", "Log4j pattern of the logs, or `json`; repeatable.", into="patterns"),
    option(
        "--layout NAME|REGEX...",
        "Layout of the logs: its name, as `log-not-text` gives it, or a regular expression of a line with groups "
        "time and message, and maybe level and logger; repeatable.",
        into="layouts",
    ),
    flag("--explain-layout", "Say of each log how its lines were found, and whose they are."),
    flag("--fix-skew", "Estimate the clock skew of brokers from causes and effects, and correct it."),
)


@command(
    "merge",
    paged=True,
    status="0 merged · 2 wrong usage · 3 a path could not be opened · 5 a log was damaged or unreadable",
)
@log_options(required=False)
@option("--event ID...", "Only lines of this template, such as C15; repeatable.", into="events")
@option(
    "--level",
    "Only lines of this level or worse.",
    type=click.Choice(["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]),
)
@option("--grep REGEX", "Only records that match.", into="expression")
@option(
    "--format",
    "Text output: lines with broker and file, plain lines, or the output of Kafka's StateChangeLogMerger.",
    into="form",
    type=click.Choice(["marked", "lines", "kafka"]),
    default="marked",
)
@option("--logs-regex DIR/REGEX", "With --format kafka: files of DIR that match.")
@option("--start-time TIME", "With --format kafka: yyyy-MM-dd HH:mm:ss,SSS.")
@option("--end-time TIME", "With --format kafka: yyyy-MM-dd HH:mm:ss,SSS.")
def merge(
    frame: Frame,
    options: LogOptions,
    events: tuple[str, ...],
    level: str | None,
    expression: str | None,
    form: str,
    logs_regex: str | None,
    start_time: str | None,
    end_time: str | None,
) -> Outcome:
    """Merge broker logs by time.

    SOURCE is a file, a folder of logs, an evidence folder, or `-` for standard input. Logs may differ in Kafka
    version, rotation, compression and time zone. Lines on standard input that name their containers, as `docker
    compose logs` prints them, are written to a temporary file (TMPDIR) and read once they end: do not follow (`-f`).

    $ kctl state-log merge evidence/                            every broker's logs in one order of time
    $ kctl state-log merge --topic orders --partitions 0,3-5 broker-*/logs/state-change.log*
    $ kctl state-log merge --from 2026-11-21T13:18:00Z --level WARN --output jsonl evidence/
    $ kctl state-log merge --format kafka --topic orders logs/  as Kafka's own tool of 0.8.2 printed it
    """
    from kctl.broker_logs.filters import TopicFilter, all_of, expression_filter, shape_filter

    if form == "kafka":
        lines = like_kafka(frame, options, logs_regex, start_time, end_time)
        return Outcome(encoded=lambda _: lines, is_exact=True)
    if not options.source:
        raise click.UsageError("name at least one log, or - for standard input")
    if logs_regex or start_time or end_time:
        raise click.UsageError("--logs-regex, --start-time and --end-time need --format kafka")
    filters, partitions = options.time_filters(), options.partition_numbers()
    if options.topics:
        filters.append(TopicFilter(options.topics, partitions))
    if expression:
        filters.append(expression_filter(expression))
    if events or level:
        filters.append(shape_filter(events, level))
    merging, keep = options.merge(frame, notes_zones=frame.output != "text"), all_of(filters)
    return Outcome(
        event_rows(frame, merging, keep),
        encoded=lambda output: marked_lines(frame, merging, keep, form) if output == "text" else None,
    )


def event_rows(frame: Frame, merging: Merge, keep: Filter | None) -> Iterator[Row]:
    """Rows of events, then of findings; the count of lines goes to standard error."""
    from kctl.broker_logs.merging import Count
    from kctl.rows.state_log import EVENT

    count = Count()
    for event in merging.events(keep):
        count.note(event)
        time = None if event.time_ms is None else iso(event.time_ms)
        yield EVENT(  # not `EVENT.of`, which takes longer: there are millions
            time=time,
            broker_id=event.broker_id,
            file=event.file,
            line=event.line,
            level=event.level or None,
            logger=event.logger,
            event=event.event,
            fields=event.fields,
            text=event.text,
            evidence=event.source.evidence,
            logged_time=time if event.logged_ms == event.time_ms else event.logged_time,
            broker_by_name=event.broker_by_name,
        )
    for finding in (*merging.sources.findings, *merging.reading.findings):
        yield finding.row()
    frame.note(count.sentence(merging.reading))


def marked_lines(frame: Frame, merging: Merge, keep: Filter | None, form: str) -> Iterator[bytes]:
    """Plain lines, or each with its broker and file before it; in color on a terminal."""
    from kctl.broker_logs.merging import Marks

    is_coloured = frame.color == "always" or (frame.color == "auto" and sys.stdout.isatty())
    merging.tells_brokers = form != "lines"
    marks = Marks(None if form == "lines" else merging.sources, OWN_COLOUR if is_coloured else "")
    yield from marks.written(merging.released(keep))
    for finding in (*merging.sources.findings, *merging.reading.findings):
        if finding.is_wrong:
            frame.raise_status(5)
        place = f"{finding.place.file}: " if finding.place.file else ""
        frame.note(f"{place}{finding.message}")
    frame.note(marks.sentence(merging.reading))


def like_kafka(
    frame: Frame, options: LogOptions, logs_regex: str | None, start_time: str | None, end_time: str | None
) -> Iterator[bytes]:
    """The bytes of Kafka's StateChangeLogMerger."""
    from kctl.broker_logs.filters import parse_partitions
    from kctl.broker_logs.kafka_merger import FIRST, LAST, MergerOptions, files_matching, merge_like_kafka
    from kctl.broker_logs.sources import find_sources

    if len(options.topics) > 1:
        raise click.UsageError("--format kafka takes one --topic")
    sources = find_sources(options.source)
    for failure in sources.failures:
        frame.report(failure)
    paths = files_matching(logs_regex) if logs_regex else []
    paths += sorted({file.path for file in sources.files if file.kind in ("state-change", "other")})
    if not paths:
        raise KctlError(
            "no state-change log found", "name a folder that holds state-change.log, or give --logs-regex"
        )
    merger_options = MergerOptions(
        options.topics[0] if options.topics else None,
        parse_partitions(options.partitions) if options.partitions else frozenset(),
        start_time or FIRST,
        end_time or LAST,
    )
    yield from merge_like_kafka(
        paths,
        merger_options,
        lambda reason: frame.fail(reason, "the rest of the file cannot be read; look for another copy of it"),
    )


@command(
    "timeline",
    paged=True,
    status="0 nothing wrong · 2 wrong usage · 3 a path could not be opened · "
    "5 an unclean election, an ISR below its minimum, a stale leader, or a log that was damaged",
)
@log_options(required=True)
@option("--min-isr N", "Assume this min.insync.replicas.  [default: from the logs]", type=click.IntRange(1))
def timeline(frame: Frame, options: LogOptions, min_isr: int | None) -> Outcome:
    """Show the leadership history of partitions, controllers and brokers.

    SOURCE is a file, a folder of logs, an evidence folder, or `-` for standard input. Each row says how a
    leadership began and which log line proves it; controller terms, broker states and findings follow. In the chart
    `!` is an unclean election, and `·` an epoch or ISR that has no room there. Where the evidence has a copy of
    `__cluster_metadata`, its records decide who led and whether an election was unclean.

    $ kctl state-log timeline evidence/                         every partition, controller and broker
    $ kctl state-log timeline evidence/ --topic ledger --partition 0
    $ kctl state-log timeline logs/ --output jsonl | jq 'select(.kind == "leader" and .how == "unclean")'
    """
    from commands.state_log_chart import chart
    from kctl.judging.judgement import Question, judgement_rows

    filters, partitions = options.time_filters(), options.partition_numbers()
    merging = options.merge(frame, notes_zones=True, or_metadata_log=True, mends_clocks=True)
    decided = options.decided(frame, merging.sources)

    named: set[TopicPartition] = set()

    def is_asked_for(tp: TopicPartition) -> bool:
        named.add(tp)
        return (not options.topics or tp.topic in options.topics) and (
            not partitions or tp.partition in partitions
        )

    items = timeline_rows(merging, filters, is_asked_for, min_isr, decided, options.time_range())
    rows = judgement_rows(_note_missing(frame, items, options.topics, named), [Question.LEADERSHIP])
    return Outcome(rows, text=folding(with_answer(chart)))


def _note_missing(
    frame: Frame, items: Iterator[Row | Judgement], topics: tuple[str, ...], named: set[TopicPartition]
) -> Iterator[Row | Judgement]:
    """The rows; an error for each topic that was asked for and that no line names."""
    from kctl.judging.leadership import judge_silent

    missing = dict.fromkeys(topics)
    for item in items:
        if isinstance(item, Mapping) and item["kind"] == "leader":
            missing.pop(str(item["topic"]), None)
        yield item
    known = {tp.topic for tp in named}
    for topic in missing:
        yield from (judge_silent(tp) for tp in sorted(named) if tp.topic == topic)
        if topic not in known:
            named_ones = ", ".join(sorted(known)[:3]) or "no topic"
            hint = near_names(topic, known, otherwise=f"the logs name {named_ones}")
            frame.report(BadValue(f"no line names a leader of {topic}", hint))


def timeline_rows(
    merging: Merge,
    filters: list[Filter],
    is_asked_for: Callable[[TopicPartition], bool],
    min_isr: int | None,
    decided: Decided | None,
    times: tuple[int | None, int | None],
) -> Iterator[Row | Judgement]:
    """Rows of leaders, controllers, brokers and findings, and a judgement a partition."""
    from kctl.broker_logs.failures import FAILURE_LINES, Failures
    from kctl.broker_logs.filters import all_of
    from kctl.broker_logs.history.decided import settle
    from kctl.broker_logs.history.quorum_terms import METADATA
    from kctl.broker_logs.history.timeline import WANTED, timeline
    from kctl.broker_logs.history.topic_ids import name_topics
    from kctl.copies.newest_epochs import newest_epochs
    from kctl.internal_topics.cluster_image import CLUSTER_METADATA
    from kctl.internal_topics.rows import unreadable_rows
    from kctl.judging.leadership import judge_leadership

    failures = Failures()
    events = merging.events(all_of(filters), WANTED | FAILURE_LINES)
    history = timeline(failures.noted(events, WANTED), is_asked_for, merging.doubtful, ahead=merging.ahead)
    failures.explain(history.brokers)
    if decided is not None:
        history.leaderships = settle(history.leaderships, decided, is_asked_for, *times, ahead=merging.ahead)
    if merging.sources.evidence is not None:
        name_topics(history.leaderships, merging.sources.evidence)
    for leaderships in history.leaderships.values():
        yield from (leadership.row() for leadership in leaderships)
    if history.quorum and is_asked_for(METADATA):
        yield from history.quorum
        yield from sorted(history.members, key=lambda row: str(row["kind"]), reverse=True)
    yield from (term.row() for term in history.controllers)
    yield from (state.row() for state in history.brokers)
    for finding in (
        *history.findings(min_isr), *failures.findings(history.brokers),
        *merging.sources.findings, *merging.reading.findings,
    ):  # fmt: skip
        yield finding.row()
    yield from unreadable_rows(CLUSTER_METADATA, [], decided.trouble if decided else [])
    sources = merging.sources
    is_all_asked = sources.evidence is not None and not sources.brokers and not filters
    newest = newest_epochs(sources.evidence) if is_all_asked and sources.evidence else {}
    for partition, leaderships in history.leaderships.items():
        yield judge_leadership(
            partition, leaderships, is_since_asked=bool(filters), newest=newest.get(partition)
        )


@command(
    "explain",
    paged=True,
    status="0 explained · 2 wrong usage · 3 the file could not be opened · 5 neither the line nor its exception is known",
)
@click.argument("line")
def explain(frame: Frame, line: str) -> Outcome:
    """Explain a line of a broker log, or an exception.

    LINE is the text of a line, with or without its timestamp and level, the text of an exception with or without its
    stack trace, or FILE:NUMBER. An exception in the line's stack trace is explained in a row of its own: where it says
    what failed, such as a full disk, it decides what the line is a sign of.

    $ kctl state-log explain broker-3/logs/state-change.log:214
    $ kctl state-log explain '[2026-11-21 13:18:45,240] TRACE [Controller id=3 epoch=1] ... (state.change.logger)'
    $ kctl state-log explain 'java.io.IOException: No space left on device'
    """
    from commands.state_log_chart import explained
    from kctl.broker_logs.explain import explain_rows

    rows = explain_rows(line)
    if all(row.get("event") is None and row.get("cause") is None for row in rows):
        frame.raise_status(5)
    return Outcome(rows, text=folding(explained))
