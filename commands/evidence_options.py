"""Arguments of commands that read evidence: the folders, whose they are, which moments they show, as of when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from commands.frame import Frame
from commands.path_types import GIVEN

if TYPE_CHECKING:
    from pathlib import Path

    from kctl.evidence.model import Arriving, Evidence
    from kctl.internal_topics.reading import AsOf

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

BROKER = click.option(
    "--broker", "brokers", multiple=True, metavar="ID=FOLDER", help="The broker whose folder this is."
)
MOMENT = click.option(
    "--moment", "moments", multiple=True, metavar="NAME=FOLDER", help="The moment a copy is from."
)
PATHS = click.argument("paths", nargs=-1, required=True, type=GIVEN, metavar="EVIDENCE...")


def evidence_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """EVIDENCE..., `--broker` and `--moment`: `paths`, `brokers`, `moments`."""
    return PATHS(BROKER(MOMENT(function)))


def as_of_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--as-of`: an offset of the internal topic's partition, or a time."""
    return click.option(
        "--as-of", metavar="OFFSET|TIME",
        help="The state before this offset of the internal topic, or at this time (ISO 8601, -2h, epoch ms).",
    )(function)  # fmt: skip


# Digits from here on are milliseconds, not an offset: 2001-09-09.
FIRST_MILLISECONDS = 1_000_000_000_000


def read_as_of(text: str | None) -> AsOf:
    """What `--as-of` says."""
    from kctl.internal_topics.reading import NOW, AsOf
    from kctl.times import parse_time

    if text is None:
        return NOW
    if text.isdigit() and int(text) < FIRST_MILLISECONDS:
        return AsOf(offset=int(text))
    return AsOf(timestamp=parse_time(text))


def find_evidence(
    frame: Frame,
    paths: tuple[str, ...],
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    *,
    may_be_nothing: bool = False,
    reads_once: bool = False,
) -> Evidence:
    """What lies below the paths; those that cannot be opened are reported and the rest goes on.

    `reads_once`: logs are read from front to end by what knows `Replica.arriving`, so that a topic of a running
    cluster need not be copied.
    """
    from kctl.evidence.discover import discover

    arriving: dict[Path, Arriving] = {}
    if frame.given.get("bootstrap_server"):
        from commands.live_paths import with_arriving, with_live

        if reads_once:
            paths, arriving = with_arriving(frame, paths)
        else:
            paths = with_live(frame, paths)
    evidence = discover(paths, brokers=brokers, moments=moments).with_arriving(arriving)
    for failure in evidence.failures:
        frame.report(failure)
    if not may_be_nothing:
        refuse_nothing(evidence)
    return evidence


def read_evidence(frame: Frame, options: Mapping[str, Any]) -> Evidence:
    """What lies below the paths of `evidence_options`, for a command that reads each log once."""
    return find_evidence(frame, options["paths"], options["brokers"], options["moments"], reads_once=True)


def refuse_nothing(evidence: Evidence) -> None:
    """Raise KctlError where folders were opened and hold nothing that kctl knows: silence would read as health."""
    from kctl.errors import KctlError

    known = (evidence.log_dirs, evidence.broker_logs, evidence.tiers, evidence.znode_exports, evidence.files)
    if evidence.roots and not any((*known, evidence.findings)):
        raise KctlError(
            f"{', '.join(root.given for root in evidence.roots)}: no log directory, broker log, znode export or tier "
            "lies here",
            "nothing was examined",
        )


def report_absent(
    frame: Frame, evidence: Evidence, topics: tuple[str, ...] = (), partitions: tuple[int, ...] = ()
) -> None:
    """Report topics and partitions that were asked for and of which there is no copy; the others go on."""
    from difflib import get_close_matches

    from kctl.errors import KctlError

    there: dict[str, set[int]] = {}
    for replica in evidence.replicas:
        there.setdefault(replica.topic, set()).add(replica.partition)
    for topic in topics:
        if topic not in there:
            near = get_close_matches(topic, there, n=3) or sorted(there)[:3]
            hint = f"there are copies of {', '.join(near)}" if near else ""
            frame.report(KctlError(f"no copy of topic {topic} is in the evidence", hint))
    wanted = [there[topic] for topic in topics or there if topic in there]
    for partition in partitions:
        if wanted and not any(partition in numbers for numbers in wanted):
            names = ", ".join(f"{topic}-{partition}" for topic in topics) or f"a partition {partition}"
            frame.report(KctlError(f"no copy of {names} is in the evidence"))
    if not there and not evidence.failures and not topics:
        frame.report(
            KctlError("no copy of any partition is in the evidence", "name brokers' log directories")
        )
