"""`kctl checkpoint show`: the entries of checkpoint files."""

from __future__ import annotations

import click

from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN
from commands.cli.render import Outcome
from commands.segment.dump_text import dump_text


@command(
    "show",
    paged=True,
    status="0 all were read · 3 a path could not be opened, or Kafka would refuse a checkpoint · "
    "5 Kafka would refuse a checkpoint below a folder",
)
@click.argument("paths", nargs=-1, required=True, type=GIVEN, metavar="PATH...")
def show(frame: Frame, paths: tuple[str, ...]) -> Outcome:
    """Print the entries of checkpoint files.

    PATH is an offset checkpoint, a leader-epoch-checkpoint, or a folder, which is searched for checkpoint files at any
    depth. For a checkpoint that Kafka would refuse, the output shows the line and Kafka's reaction.

    $ kctl checkpoint show /var/lib/kafka/data
    $ kctl checkpoint show data/replication-offset-checkpoint data/orders-0/leader-epoch-checkpoint
    $ kctl checkpoint show broker-1/ --output jsonl | jq 'select(.topic == "orders")'
    """
    from kctl.dump.checkpoints import checkpoint_rows

    return Outcome(checkpoint_rows(paths, frame.report), text=dump_text)
