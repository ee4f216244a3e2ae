"""`kctl transactions`: what coordinators know of transactions, what data logs hold open, and which hang."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import click

from commands.evidence_options import as_of_option, evidence_options, read_as_of, read_evidence
from commands.frame import Frame, command
from commands.render import Outcome, Page, Row, aligned, folding, readable, visible

if TYPE_CHECKING:
    from kctl.evidence.model import Evidence
    from kctl.internal_topics.transactions import Transactions

TOPIC = "__transaction_state"
STATUS = "0 read · 3 no __transaction_state there, or no such transactional id · 5 some of its records cannot be read"


def known(evidence: Evidence, paths: tuple[str, ...], as_of: str | None) -> tuple[Transactions, list[Row]]:
    """The transactions and findings about what could not be read; an error where there is no copy of the topic."""
    from kctl.errors import KctlError
    from kctl.internal_topics.rows import transactions_in, unreadable_rows

    found = transactions_in(evidence, read_as_of(as_of))
    if found is None:
        raise KctlError(f"no copy of {TOPIC} in {' '.join(paths)}", "name a broker's log directory")
    state, trouble = found
    return state, list(unreadable_rows(TOPIC, state.unreadable, trouble))


@command(
    "list",
    examples="kctl transactions list /var/lib/kafka/data\nkctl transactions list evidence/ --state Ongoing",
    status=STATUS,
)
@evidence_options
@as_of_option
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only those in this state, for example Ongoing."
)
def list_transactions(frame: Frame, states: tuple[str, ...], **options: Any) -> Outcome:
    """List the transactional ids that coordinators know."""
    from kctl.internal_topics.rows import transaction_row

    evidence = read_evidence(frame, options)
    state, findings = known(evidence, options["paths"], options["as_of"])
    wanted = [one for _, one in sorted(state.by_id.items()) if not states or one.state in states]
    return Outcome([*map(transaction_row, wanted), *findings], text=folding(known_text))


def known_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line for each transactional id, below it when its transaction began and where it is; then findings."""
    found = list(rows)
    shown = [row for row in found if row["kind"] == "transaction"]
    widths = [
        max((len(str(row[name])) for row in shown), default=0) for name in ("transactional_id", "state")
    ]
    for row in shown:
        id, state = visible(str(row["transactional_id"])), str(row["state"])
        updated = readable("last_update_timestamp", row["last_update_timestamp"])
        yield (
            f"{page.style(id.ljust(min(widths[0], 24)), 'bold')}  {state.ljust(widths[1])}"
            f"  producer {row['producer_id']} epoch {row['producer_epoch']}  {updated}"
        )
        began = row["start_timestamp"]
        since = f"begun {readable('start_timestamp', began)}, " if began is not None else ""
        partitions = cast("list[str]", row["partitions"])
        yield (
            f"    {since}time-out {int(str(row['timeout_ms'])) / 1000:g} s, "
            f"record {row['log_partition']}:{row['log_offset']}"
            + (f", in {', '.join(partitions)}" if partitions else "")
        )
    for row in found:
        if row["kind"] == "finding":
            yield f"{page.style(str(row['severity']), str(row['severity']))} {row['code']}: {row['message']}"


@command("show", examples="kctl transactions show payments-7 evidence/", status=STATUS)
@click.argument("transactional_id")
@evidence_options
@as_of_option
def show(frame: Frame, transactional_id: str, **options: Any) -> Outcome:
    """Show what happened to a transactional id, oldest first."""
    from formats.errors import FormatError
    from kctl.errors import KctlError
    from kctl.internal_topics.reading import copies_to_read, topic_records
    from kctl.internal_topics.rows import transaction_row
    from kctl.internal_topics.transactions import transaction_of

    evidence = read_evidence(frame, options)
    bound, rows = read_as_of(options["as_of"]), []
    for replica in copies_to_read(evidence, TOPIC):
        for record in topic_records(replica, as_of=bound):
            try:
                name, found = transaction_of(record)
            except FormatError:
                continue  # `list` says which records cannot be read
            if name == transactional_id and found:
                rows.append(transaction_row(found))
    if not rows:
        raise KctlError(
            f"no transactional id {transactional_id!r} in {TOPIC}", "see `kctl transactions list`"
        )
    return Outcome(rows, text=folding(known_text))


@command(
    "hanging",
    examples="kctl transactions hanging evidence/\nkctl transactions hanging evidence/ --all",
    status="0 none hangs · 3 a path could not be opened · 5 one hangs, or a log could not be read",
)
@evidence_options
@click.option("--all", "every", is_flag=True, help="Open transactions that their coordinator still has, too.")
def hanging(frame: Frame, every: bool, **options: Any) -> Outcome:
    """Find transactions that data logs hold open and nobody will end."""
    evidence = read_evidence(frame, options)
    from kctl.internal_topics.rows import open_rows

    return Outcome(open_rows(evidence, every=every), text=laid_out)


def laid_out(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Columns, and below each hanging transaction what ends it; then what could not be read."""
    found = list(rows)
    shown = [row for row in found if row["kind"] == "open_transaction"]
    yield from aligned([{**row, "abort_command": None} for row in shown], page)
    for row in shown:
        if row["abort_command"]:
            yield f"to end it: {row['abort_command']}"
    closed = [row for row in found if row["kind"] == "finding" and row["code"] == "internal-log-unreadable"]
    for row in closed:
        yield f"{page.style('error', 'error')} {row['code']}: {row['file']}: {row['message']}"
    if not shown:
        yield "no transaction hangs" + (" in what could be read" if closed else "")
