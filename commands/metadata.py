"""`kctl metadata`: the state of a KRaft cluster, read from its metadata log as of an offset or a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.render import Outcome
from kctl.errors import KctlError, near_names


@command(
    "show",
    paged=True,
    status="0 read · 3 no metadata log or topic found, or the log does not reach back that far · 5 some of its records cannot be read",
)
@evidence("broker", "moment", "as-of", "topic")
def show(frame: Frame, options: EvidenceOptions) -> Outcome:
    """Show topics, partitions, brokers, features and configurations of a KRaft cluster.

    $ kctl metadata show /var/lib/kafka/data
    $ kctl metadata show evidence/ --as-of 1042 --topic orders
    """
    from kctl.internal_topics.cluster_image import CLUSTER_METADATA
    from kctl.internal_topics.metadata_rows import furthest_image, metadata_folders, metadata_rows
    from kctl.internal_topics.rows import unreadable_rows

    folders = metadata_folders(options.find(frame))
    named = [Path(path) for path in options.paths if Path(path).name == f"{CLUSTER_METADATA}-0"]
    if not (folders or named):
        raise KctlError(
            f"no {CLUSTER_METADATA}-0 in {' '.join(options.paths)}", "name a controller's log directory"
        )
    image, trouble = furthest_image(dict.fromkeys((*folders, *named)), options.bound)
    _report_unknown(frame, options.topics, image.names.values())
    return Outcome([*metadata_rows(image, options.topics), *unreadable_rows(CLUSTER_METADATA, [], trouble)])


def _report_unknown(frame: Frame, topics: Iterable[str], known: Iterable[str]) -> None:
    """Report topics that were asked for and do not exist; the others go on."""
    names = sorted(known)
    for topic in dict.fromkeys(topics):
        if topic not in names:
            hint = near_names(topic, names, otherwise="`kctl metadata show` without --topic shows all")
            frame.fail(f"no topic {topic} in the metadata log", hint)
