"""`kctl migration`: status, check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commands.cli.connecting import At, reads, wire
from commands.cli.frame import Frame, command
from commands.cli.options import METADATA, as_one_value, option
from commands.cli.render import Outcome, Page, Row, cell, finding_line, table
from commands.znode import reader_of
from kctl.errors import KctlError
from kctl.rows.migration import COMPARISON, DIFFERENCE, MIGRATION
from kctl.temporary_folder import temporary_folder

if TYPE_CHECKING:
    from kctl.migration.comparison import Comparison, Difference
    from kctl.migration.kraft_side import KraftSide
    from kctl.migration.phase import MigrationStatus
    from kctl.migration.preflight import MigrationFacts, Settings
    from kctl.migration.zookeeper_side import ZookeeperSide


class Kraft(NamedTuple):
    """Where the metadata of the KRaft controllers is, from the options."""

    folders: tuple[str, ...]
    controllers: str | None

    def read(self, frame: Frame, at: At) -> KraftSide | None:
        """The metadata; None where nothing is named. Raises KctlError where there is none, or no leader."""
        from kctl.migration.kraft_side import read_kraft_side

        if self.folders:
            return read_kraft_side([log for folder in self.folders for log in metadata_logs(Path(folder))])
        if self.controllers is None:
            return None
        from kctl.wire.adapter import Controllers, access_from
        from kctl.wire.metadata_log import copy_metadata_log

        with (
            temporary_folder("metadata") as folder,
            Controllers(access_from(frame.context, self.controllers, at.timeout), frame.note) as controllers,
        ):
            copy_metadata_log(controllers, folder)
            return read_kraft_side([folder])


with_kraft = as_one_value(
    Kraft,
    [
        METADATA,
        option(
            "--controllers HOSTS",
            "Read the metadata from these KRaft controllers.",
            envvar="KCTL_CONTROLLERS",
        ),
    ],
)
SHOWN = 3  # differences of one reason that are named without --verbose
AT_OFFSET = re.compile(r" at offset \d+")


@command("status", status="0 shown · 2 wrong usage · 3 nothing to read, no connection")
@reads
@with_kraft
def status(frame: Frame, at: At, metadata: Kraft) -> Outcome:
    """Show the phase of a migration from ZooKeeper to KRaft.

    Znodes alone do not distinguish a finalized migration from dual write; the metadata of a controller does.

    $ kctl migration status --zookeeper zk1:2181/kafka
    $ kctl migration status --snapshot znodes.jsonl --metadata /var/lib/kafka/__cluster_metadata-0
    """
    from kctl.migration.phase import status_of

    kraft = metadata.read(frame, at)
    if kraft is not None and at.snapshot is None and not frame.context.zookeeper:
        return Outcome([row_of(status_of(None, kraft))], text=status_text)
    with at.open(frame) as cluster:
        znodes = zookeeper_side(frame, cluster)
        return Outcome([row_of(status_of(znodes, kraft))], text=status_text)


@command(
    "check",
    status="0 nothing is lost or in the way · 2 wrong usage · 3 nothing to compare, no connection · "
    "5 lost, wrong, or in the way",
)
@reads
@with_kraft
def check(frame: Frame, at: At, metadata: Kraft) -> Outcome:
    """Compare the metadata in ZooKeeper with that of a KRaft controller.

    Before a migration, reports what would stop or spoil it; with --bootstrap-server, checks the brokers' settings too.
    During and after it, reports metadata that is missing or different on one side, and whether the difference is
    expected. An export from before and the metadata from after prove that nothing was lost.

    $ kctl migration check --zookeeper zk1:2181/kafka --bootstrap-server kafka1:9092
    $ kctl migration check --zookeeper zk1:2181/kafka --controllers controller1:9093,controller2:9093
    $ kctl migration check --snapshot znodes.jsonl --metadata /var/lib/kafka/__cluster_metadata-0
    """
    from kctl.migration.phase import status_of
    from kctl.migration.preflight import MigrationFacts

    kraft = metadata.read(frame, at)
    with at.open(frame) as cluster:
        znodes = zookeeper_side(frame, cluster)
        status = status_of(znodes, kraft)
        is_asked = at.snapshot is None and status.phase.is_before_copy
        settings = settings_of_brokers(frame, at) if is_asked else None
        rows = list(check_rows(frame, MigrationFacts(znodes, kraft, status, settings)))
    if kraft is None and rows[0]["phase"] not in ("none", "preparing"):
        frame.fail(
            "there is no metadata to compare the znodes with",
            "name a copy of a controller's metadata with --metadata",
        )
    return Outcome(rows, text=lambda rows, page: check_text(rows, page, is_verbose=frame.verbose))


def metadata_logs(folder: Path) -> list[Path]:
    """The copies of the metadata log at and below a folder. Raises KctlError where there is none."""
    from kctl.evidence.discover import discover
    from kctl.internal_topics.cluster_image import CLUSTER_METADATA
    from kctl.internal_topics.metadata_rows import metadata_folders

    inside = folder / f"{CLUSTER_METADATA}-0"
    if inside.is_dir():
        return [inside]
    if folder.is_dir() and (any(folder.glob("*.log")) or any(folder.glob("*.checkpoint"))):
        return [folder]
    evidence = discover((str(folder),))
    for failure in evidence.failures:
        raise failure
    folders = metadata_folders(evidence)
    if not folders:
        raise KctlError(f"no {CLUSTER_METADATA}-0 in {folder}", "name a controller's log directory")
    return folders


def zookeeper_side(frame: Frame, cluster: object) -> ZookeeperSide:
    """The znodes of a cluster. Raises KctlError for a cluster without ZooKeeper."""
    from kctl.migration.zookeeper_side import read_zookeeper_side

    return read_zookeeper_side(reader_of(frame, cluster))


def row_of(status: MigrationStatus) -> Row:
    """The row of kind `migration`."""
    return MIGRATION.of(status, phase=str(status.phase))


def settings_of_brokers(frame: Frame, at: At) -> Settings | None:
    """What the brokers run with, over Kafka's protocol; None where it is not known how to reach them."""
    from kctl.migration.preflight import SETTINGS
    from kctl.wire.reading import read_broker_settings

    if not frame.context.bootstrap_server:
        return None
    with wire(frame, timeout=at.timeout) as connected:
        settings = read_broker_settings(connected, SETTINGS)
    for id, broker_settings in settings.items():
        if isinstance(broker_settings, KctlError):
            frame.fail(
                f"settings of broker {id} were not examined: {broker_settings.message}", broker_settings.hint
            )
    return {
        id: broker_settings
        for id, broker_settings in settings.items()
        if not isinstance(broker_settings, KctlError)
    }


def check_rows(frame: Frame, facts: MigrationFacts) -> Iterator[Row]:
    """The phase, findings, differences, and how much was compared."""
    from kctl.internal_topics.cluster_image import CLUSTER_METADATA
    from kctl.internal_topics.rows import unreadable_rows
    from kctl.migration.comparison import Comparison
    from kctl.migration.preflight import examine

    znodes, kraft, status, _ = facts
    yield row_of(status)
    yield from (finding.row() for finding in examine(facts))
    if kraft is None:
        return
    yield from unreadable_rows(CLUSTER_METADATA, [], kraft.trouble)
    if kraft.is_copied:
        comparison = Comparison(znodes, kraft, status)
        for difference in comparison.differences():
            if difference.is_open:
                frame.raise_status(3)
            yield difference_row(difference)
        yield from comparison_rows(comparison)


def difference_row(difference: Difference) -> Row:
    """The row of kind `difference`."""
    from kctl.migration.entities import shown

    return DIFFERENCE(
        entity_type=difference.entity.type,
        entity=difference.entity.name,
        field=difference.field,
        zookeeper=shown(difference.zookeeper),
        kraft=shown(difference.kraft),
        severity=difference.severity,
        reason=difference.reason,
    )


def comparison_rows(comparison: Comparison) -> Iterator[Row]:
    """A row a type of entity."""
    for compared in comparison.compared.values():
        errors, infos = (compared.by_severity[severity] for severity in ("error", "info"))
        yield COMPARISON.of(compared, errors=errors, infos=infos)


def status_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The phase, and who runs in which mode."""
    for row in rows:
        yield f"{page.style(str(row['phase']), 'bold')}: {row['message']}"
        for name, key in (("ZooKeeper", "zookeeper_brokers"), ("KRaft", "kraft_brokers")):
            ids = row[key]
            if isinstance(ids, list):
                yield f"in {name} mode: {', '.join(map(str, ids)) or 'no broker'}"


def check_text(rows: Iterable[Row], page: Page, *, is_verbose: bool) -> Iterator[str]:
    """Errors one by one, what is meant to differ by its reason; then how much was compared."""
    listed = list(rows)
    by_kind = {kind: [row for row in listed if row["kind"] == kind] for kind in ("difference", "comparison")}
    expected: dict[tuple[str, str], list[str]] = {}
    yield from status_text(listed[:1], page)
    for row in listed:
        if row["kind"] == "finding":
            yield finding_line(row, page)
        elif row["kind"] == "difference" and (row["severity"] == "error" or is_verbose):
            name = f"{row['entity_type']} {_name(row)}"
            sides = f"ZooKeeper {_side(row['zookeeper'])}, KRaft {_side(row['kraft'])}"
            yield f"{page.style(str(row['severity']), str(row['severity']))} {name}: {sides}: {row['reason']}"
        elif row["kind"] == "difference":
            key = str(row["entity_type"]), AT_OFFSET.sub("", str(row["reason"]))
            expected.setdefault(key, []).append(_name(row))
    for (kind, reason), names in expected.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        yield f"{page.style('info', 'info')} {kind} {', '.join(names[:SHOWN])}{more}: {reason}"
    if by_kind["comparison"]:
        yield from table(by_kind["comparison"], page)
        errors = sum(row["severity"] == "error" for row in by_kind["difference"])
        rest = sum(int(str(row["not_compared"])) for row in by_kind["comparison"])
        summary = (
            f"{errors} differences are lost or wrong"
            if errors
            else "nothing that was compared is lost or wrong"
        )
        yield page.style(summary + (f"; {rest} not compared" if rest else ""), "error" if errors else "good")


def _name(row: Row) -> str:
    return f"{row['entity']} {row['field']}" if row["field"] else str(row["entity"])


def _side(value: object) -> str:
    return "has none" if value is None else cell(value)
