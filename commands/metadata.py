"""`kctl metadata`: the state of a KRaft cluster, read from its metadata log as of an offset or a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from commands.evidence_options import as_of_option, evidence_options, find_evidence, read_as_of
from commands.frame import Frame, command
from commands.render import Outcome


@command(
    "show",
    examples="kctl metadata show /var/lib/kafka/data\nkctl metadata show evidence/ --as-of 1042 --topic orders",
    status="0 read · 3 no metadata log or topic there, or the log does not reach back that far · 5 some of its records cannot be read",
)
@evidence_options
@as_of_option
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only this topic.")
def show(frame: Frame, topics: tuple[str, ...], **options: Any) -> Outcome:
    """Show topics, partitions, brokers, features and configurations of a KRaft cluster."""
    from kctl.errors import KctlError
    from kctl.internal_topics.metadata_log import TOPIC
    from kctl.internal_topics.metadata_rows import furthest_image, metadata_folders, metadata_rows
    from kctl.internal_topics.rows import unreadable_rows

    evidence = find_evidence(frame, options["paths"], options["brokers"], options["moments"])
    folders = metadata_folders(evidence)
    named = [Path(path) for path in options["paths"] if Path(path).name == f"{TOPIC}-0"]
    if not (folders or named):
        raise KctlError(f"no {TOPIC}-0 in {' '.join(options['paths'])}", "name a controller's log directory")
    image, trouble = furthest_image(dict.fromkeys((*folders, *named)), read_as_of(options["as_of"]))
    _report_unknown(frame, topics, image.names.values())
    return Outcome([*metadata_rows(image, topics), *unreadable_rows(TOPIC, [], trouble)])


def _report_unknown(frame: Frame, topics: Iterable[str], known: Iterable[str]) -> None:
    """Report topics that were asked for and are not there; the others go on."""
    from difflib import get_close_matches

    from kctl.errors import KctlError

    there = sorted(known)
    for topic in dict.fromkeys(topics):
        if topic not in there:
            near = get_close_matches(topic, there, n=3)
            frame.report(KctlError(f"no topic {topic}", f"near: {', '.join(near)}" if near else ""))
