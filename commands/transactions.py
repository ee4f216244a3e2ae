"""`kctl transactions`: what coordinators know of transactions, which hang in data logs, and how to end those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import click

from commands.cli.answer import with_answer
from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import open_for_change
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.leaving import visible
from commands.cli.options import flag, option
from commands.cli.render import Outcome, Page, Row, aligned, finding_line, folding, readable
from kctl.errors import BadValue, KctlError, Refused

if TYPE_CHECKING:
    from kctl.internal_topics.transactions import Transactions


TOPIC = "__transaction_state"
STATUS = "0 read · 3 no __transaction_state found, or no such transactional id · 5 some of its records cannot be read"


def known(frame: Frame, options: EvidenceOptions) -> tuple[Transactions, list[Row]]:
    """The transactions and findings about what could not be read; an error where there is no copy of the topic."""
    from kctl.internal_topics.rows import transactions_in, unreadable_rows

    evidence = options.find(frame, reads_once=True)
    read = transactions_in(evidence, options.bound)
    if read is None:
        raise options.no_copy(TOPIC)
    options.note_lacking(frame, evidence, TOPIC, "transactional ids")
    state, trouble = read
    return state, list(unreadable_rows(TOPIC, state.unreadable, trouble))


@command("list", paged=True, status=STATUS)
@evidence("broker", "moment", "as-of")
@option("--state STATE...", "Only transactions in this state, such as Ongoing; repeatable.", into="states")
def list_transactions(frame: Frame, options: EvidenceOptions, states: tuple[str, ...]) -> Outcome:
    """List the transactional ids that coordinators know.

    $ kctl transactions list /var/lib/kafka/data
    $ kctl transactions list evidence/ --state Ongoing
    """
    from kctl.internal_topics.rows import transaction_row

    state, findings = known(frame, options)
    transactions = [t for _, t in sorted(state.by_id.items()) if not states or t.state in states]
    return Outcome([*map(transaction_row, transactions), *findings], text=folding(known_text))


def known_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line for each transactional id, below it since when and where its transaction is; then findings."""
    listed = list(rows)
    shown = [row for row in listed if row["kind"] == "transaction"]
    names = ("transactional_id", "state")
    widths = [max((len(str(row[name])) for row in shown), default=0) for name in names]
    for row in shown:
        id, state = visible(str(row["transactional_id"])), str(row["state"])
        updated = readable("last_update_timestamp", row["last_update_timestamp"])
        yield (
            f"{page.style(id.ljust(min(widths[0], 24)), 'bold')}  {state.ljust(widths[1])}"
            f"  producer {row['producer_id']} epoch {row['producer_epoch']}  {updated}"
        )
        began = row["start_timestamp"]
        since = f"began {readable('start_timestamp', began)}, " if began is not None else ""
        partitions = cast("list[str]", row["partitions"])
        yield (
            f"    {since}timeout {int(str(row['timeout_ms'])) / 1000:g} s, "
            f"record {row['log_partition']}:{row['log_offset']}"
            + (f", in {', '.join(partitions)}" if partitions else "")
        )
    yield from (finding_line(row, page) for row in listed if row["kind"] == "finding")


@command("show", status=STATUS)
@click.argument("transactional_id")
@evidence("broker", "moment", "as-of")
def show(frame: Frame, options: EvidenceOptions, transactional_id: str) -> Outcome:
    """Show the history of a transactional id, oldest first.

    $ kctl transactions show payments-7 evidence/
    """
    from formats.errors import FormatError
    from kctl.internal_topics.reading import Unreadable, topic_records, whole_copies
    from kctl.internal_topics.rows import transaction_row, unreadable_rows
    from kctl.internal_topics.transactions import transaction_of

    evidence, rows = options.find(frame, reads_once=True), []
    trouble: list[Unreadable] = []
    unreadable: list[tuple[int, int, str]] = []
    for replica in whole_copies(evidence, TOPIC):
        for record in topic_records(replica, as_of=options.bound, trouble=trouble):
            try:
                name, transaction = transaction_of(record)
            except FormatError as error:
                unreadable.append((record.partition, record.offset, str(error)))
                continue
            if name == transactional_id and transaction:
                rows.append(transaction_row(transaction))
    options.note_lacking(frame, evidence, TOPIC, "transactional ids")
    findings = list(unreadable_rows(TOPIC, unreadable, trouble))
    if not rows:
        source = "what can be read of " if findings else ""
        raise KctlError(
            f"no transactional id {transactional_id!r} in {source}{TOPIC}", "see `kctl transactions list`"
        )
    return Outcome([*rows, *findings], text=folding(known_text))


@command(
    "hanging",
    paged=True,
    status="0 none hangs · 3 a path could not be opened, or a partition not judged · 5 one hangs, or a log could not be read",
)
@evidence("broker", "moment", metavar="[EVIDENCE]...", required=False)
@flag("--all", "Also show open transactions that their coordinator still manages.", into="known_too")
def hanging(frame: Frame, options: EvidenceOptions, known_too: bool) -> Outcome:
    """Find transactions that are open in data logs and that no coordinator will end.

    Without EVIDENCE, or with names of topics only, leaders and coordinators of the running cluster are asked (Kafka 3.0
    and later). With __transaction_state among the names, or of older brokers, the logs that are named are read instead.

    $ kctl transactions hanging evidence/
    $ kctl transactions hanging evidence/ --all
    $ kctl transactions hanging --bootstrap-server kafka1:9092
    $ kctl transactions hanging orders __transaction_state --bootstrap-server kafka1:9092
    """
    from kctl.judging.judgement import Question, judgement_rows
    from kctl.judging.open_transactions import open_rows

    if not options.paths and not frame.names_brokers:
        raise BadValue("name EVIDENCE, or the running cluster", "give folders, or --bootstrap-server HOSTS")
    live = None
    if frame.names_brokers:
        from commands.cli.live_paths import live_partitions
        from kctl.wire.transactions import asked_rows, lacking_request

        live = live_partitions(frame, options.paths, unless=TOPIC)
        if live is not None and options.paths and lacking_request(live[0]):
            live = None  # the logs of these topics can be read
    if live is not None:
        connected, state, partitions = live
        asked = asked_rows(connected, state, partitions, every=known_too)
        rows = judgement_rows(asked, [Question.TRANSACTIONS])
    else:
        evidence = options.find(frame, reads_once=True)
        rows = judgement_rows(
            open_rows(evidence, every=known_too), [Question.TRANSACTIONS], options.fit(frame, evidence)
        )
    return Outcome(rows, text=with_answer(hanging_text))


def hanging_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Transactions in columns, the commands that end them, then what could not be read."""
    listed = list(rows)
    shown = [row for row in listed if row["kind"] == "open_transaction"]
    yield from aligned([{**row, "abort_command": None} for row in shown], page)
    for row in shown:
        if row["abort_command"]:
            yield f"to end it: {row['abort_command']}"
    unreadable = [
        row for row in listed if row["kind"] == "finding" and row["code"] == "internal-log-unreadable"
    ]
    for row in unreadable:
        yield f"{page.style('error', 'error')} {row['code']}: {row['file']}: {row['message']}"


@command("abort", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("partition", metavar="TOPIC-PARTITION")
@option("--start-offset OFFSET", "First offset of the transaction, if several are open.", type=int)
@flag("--force", "Abort it even if its coordinator still has the transaction.")
def abort(frame: Frame, how: How, partition: str, start_offset: int | None, force: bool) -> Outcome:
    """Abort a hanging transaction of a partition.

    Writes an abort marker to the leader of the partition, so that read_committed consumers continue. Refused while
    a coordinator still has the transaction, because the coordinator will end it.

    $ kctl transactions abort orders-0 --bootstrap-server kafka1:9092 --dry-run
    $ kctl transactions abort orders-0 --start-offset 752 --reason OPS-812
    """
    from kctl.model import TopicPartition

    topic, dash, number = partition.rpartition("-")
    if not dash or not number.isdecimal():
        raise BadValue(f"{partition!r} is not TOPIC-PARTITION", "write it as orders-3")
    with open_for_change(frame) as cluster:
        if not cluster.can.ask_brokers:
            raise Refused("only brokers write markers; nothing was written", "give --bootstrap-server")
        from kctl.wire.cluster import AdminCluster
        from kctl.wire.transactions import plan_abort

        assert isinstance(cluster, AdminCluster)
        plan = plan_abort(
            cluster, cluster.wire, TopicPartition(topic, int(number)), start_offset, force=force
        )
        return carry_out(frame, how, cluster, plan)
