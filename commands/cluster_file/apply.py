"""`kctl apply`: a cluster made as files ask for."""

from __future__ import annotations

from pathlib import Path

import click

from commands.cli.changing import ACCEPT_UNCLEAN, CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import open_for_change
from commands.cli.frame import Frame, command
from commands.cli.options import flag, option
from commands.cli.render import Outcome
from commands.cluster_file.compare import FILES, Given, compared, drift_rows, drift_text, given


@command("apply", status=CHANGE_STATUS)
@changes(timeout=300)
@FILES
@given
@option("--accept-deletes N", "Accept that so many resources are deleted.", type=click.IntRange(0))
@ACCEPT_UNCLEAN
@flag("--deletion-is-enabled", "Confirm that delete.topic.enable is true on all brokers (up to 0.11).")
def apply(
    frame: Frame,
    how: How,
    variables: Given,
    files: tuple[Path, ...],
    accept_deletes: int | None,
    accept_loss: bool,
    deletion_is_enabled: bool,
) -> Outcome:
    """Make a cluster as files ask for.

    Shows all that differs with the file and line that want it, and carries it out as one change, in steps: topics,
    configurations, quotas, rules; what takes something away comes last. `kctl journal resume` goes on with it after an
    interruption, `kctl journal undo` takes all of it back. What is not in the files stays, unless they say
    `manage: {KIND: all}`; then deletions need --accept-deletes with their number.

    $ kctl apply cluster.yaml --dry-run
    $ kctl apply cluster/ --reason 'orders: more partitions'
    $ kctl apply cluster.yaml --accept-deletes 2 --yes
    """
    from kctl.cluster_file.planning import Accepted, plan_files

    wanted = variables.load(files)
    with open_for_change(frame) as cluster:
        found = compared(frame, cluster, how.version, wanted)
        if frame.status:
            return Outcome(drift_rows(found.changed), text=drift_text)
        accepted = Accepted(deletes=accept_deletes, loss=accept_loss, deletion_is_enabled=deletion_is_enabled)
        title = (
            f"apply {', '.join(map(str, files[:3]))}{f' and {len(files) - 3} more' if len(files) > 3 else ''}"
        )
        plan = plan_files(
            cluster, found.state, found.changed, accepted,
            kafka_version=how.version, title=title, keeps_writes=how.dry_run,
        )  # fmt: skip
        rows = [row for row in drift_rows(found.changed) if row["action"] != "none"]
        return carry_out(frame, how, cluster, plan, rows, drift_text, shows_rows=True)
