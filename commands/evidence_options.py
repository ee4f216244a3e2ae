"""Arguments of commands that read evidence: the folders, whose they are, which moments they show, as of when."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from commands.frame import Frame
from commands.path_types import GIVEN

if TYPE_CHECKING:
    from kctl.evidence.model import Evidence
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
    frame: Frame, paths: tuple[str, ...], brokers: tuple[str, ...], moments: tuple[str, ...]
) -> Evidence:
    """What lies below the paths; those that cannot be opened are reported and the rest goes on."""
    from kctl.evidence.discover import discover

    if frame.given.get("bootstrap_server"):
        from commands.live_paths import with_live

        paths = with_live(frame, paths)
    evidence = discover(paths, brokers=brokers, moments=moments)
    for failure in evidence.failures:
        frame.report(failure)
    return evidence
