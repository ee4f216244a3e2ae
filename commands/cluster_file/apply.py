"""`kctl apply`: a cluster made as files ask for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.access.acl import ACCEPT_LOCKOUT, connected_as, effect_of, known_view
from commands.access.sources import Known, known
from commands.access.user import Password, credential_writes
from commands.cli.changing import ACCEPT_UNCLEAN, CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import open_for_change
from commands.cli.frame import Frame, command
from commands.cli.options import WRITTEN, Size, as_one_value, flag, option
from commands.cli.render import Outcome, size
from commands.cluster_file.compare import FILES, Given, checked_first, compared, drift_rows, drift_text, given
from kctl.errors import BadValue, Refused, file_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kctl.changes.kinds.access import SetScram
    from kctl.cluster.intent import Write
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.cluster_file.difference import Changed


class Passwords(NamedTuple):
    """Where the passwords of new users come from, from the options."""

    generate_passwords_to: str | None
    password_command: str | None

    @property
    def are_given(self) -> bool:
        """Whether there are any."""
        return self.generate_passwords_to is not None or self.password_command is not None

    def check(self, users: Sequence[str]) -> None:
        """Raise BadValue where both are given, Refused where a file of a password exists."""
        if self.generate_passwords_to is not None and self.password_command is not None:
            raise BadValue(
                "passwords come from one place",
                "give --generate-passwords-to or --password-command, not both",
            )
        for path in map(self._file, users) if self.generate_passwords_to is not None else ():
            if path.exists():
                raise Refused(f"{path} exists; nothing was written", "name another folder for new passwords")

    def of(self, user: str) -> Password:
        """The source of a user's password."""
        if self.password_command is not None:
            import shlex

            return Password(None, self.password_command.replace("{user}", shlex.quote(user)), None)
        path = self._file(user)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise file_error(path.parent, error) from error
        return Password(None, None, str(path))

    def _file(self, user: str) -> Path:
        from kctl.cluster.names import sanitized

        return Path(self.generate_passwords_to or "") / f"{sanitized(user)}.password"


passwords_options = as_one_value(
    Passwords,
    [
        option(
            "--generate-passwords-to FOLDER",
            "Generate a password for each new user, in a new file FOLDER/USER.password of mode 600.",
            type=WRITTEN,
        ),
        option(
            "--password-command COMMAND",
            "Take the password of a new user from the first line that this command prints; {user} in it is the user.",
        ),
    ],
)


@command("apply", status=CHANGE_STATUS)
@changes(timeout=300)
@FILES
@given
@option(
    "--accept-deletes N",
    "Accept so many deletions: of resources, and of keys, quotas and mechanisms of others.",
    type=click.IntRange(0),
)
@option(
    "--max-bytes SIZE",
    "Most bytes that moves of replicas may copy.",
    type=Size(),
    default="1GiB",
    into="most_bytes",
)
@passwords_options
@known
@ACCEPT_LOCKOUT
@ACCEPT_UNCLEAN
@flag("--deletion-is-enabled", "Confirm that delete.topic.enable is true on all brokers (up to 0.11).")
def apply(
    frame: Frame,
    how: How,
    variables: Given,
    passwords: Passwords,
    told: Known,
    files: tuple[Path, ...],
    accept_deletes: int | None,
    most_bytes: int,
    accept_lockout: bool,
    accept_loss: bool,
    deletion_is_enabled: bool,
) -> Outcome:
    """Make a cluster as files ask for.

    Shows all that differs with the file and line that want it, and carries it out as one change, in steps: users, topics,
    configurations, quotas, rules; what takes something away comes last. `kctl journal resume` goes on with it after an
    interruption, `kctl journal undo` takes all of it back. What is not in the files stays, unless they say
    `manage: {KIND: all}`; then deletions need --accept-deletes with their number. Files hold no passwords: those of new
    users are generated, or come from a command.

    $ kctl apply cluster.yaml --dry-run
    $ kctl apply cluster/ --reason 'orders: more partitions'
    $ kctl apply cluster.yaml --accept-deletes 2 --yes
    $ kctl apply users.yaml --password-command 'vault kv get -field=password kafka/{user}'
    """
    from kctl.cluster_file.planning import Accepted, plan_files

    wanted = variables.load(files)
    with checked_first(wanted), open_for_change(frame) as cluster:
        found = compared(frame, cluster, how.version, wanted)
        if frame.status:
            if not how.dry_run:
                frame.note("nothing was written: what was not read may be what the files are about")
            return Outcome(drift_rows(found.changed), text=drift_text)
        new_users = [
            each.resource.name
            for each in found.changed
            if each.resource.kind == "user" and each.action != "delete"
        ]
        passwords.check(new_users)
        accepted = Accepted(
            deletes=accept_deletes,
            loss=accept_loss,
            lockouts=() if accept_lockout else tuple(locked_out(frame, cluster, told, found.changed)),
            deletion_is_enabled=deletion_is_enabled,
            passwords=passwords.are_given,
            most_bytes=most_bytes,
        )
        shown = ", ".join(map(str, files[:3])) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
        leaving = [
            each.resource.name
            for each in found.changed
            if each.action == "delete" and each.resource.kind == "topic"
        ]
        plan = plan_files(
            cluster, found.state, found.changed, accepted,
            kafka_version=how.version, title=f"apply {shown}", warnings=lost_with(cluster, found.state, leaving),
            keeps_writes=how.dry_run,
        )  # fmt: skip
        rows = [row for row in drift_rows(found.changed) if row["action"] != "none"]

        def credentials(intent: SetScram) -> tuple[Write, ...]:
            return credential_writes(cluster, intent, passwords.of(intent.user))

        return carry_out(
            frame, how, cluster, plan, rows, drift_text, shows_rows=True, credentials=credentials
        )


def locked_out(frame: Frame, cluster: Cluster, told: Known, changed: Sequence[Changed]) -> Iterator[str]:
    """Whom a change of users or rules locks out, in sentences; and what of those in use it takes away, as a note."""
    from kctl.cluster_file.planning import loses_mechanism

    if losing := {each.resource.name for each in changed if loses_mechanism(each)}:
        for principal, who in zip(connected_as(cluster), ("kctl connects", "brokers connect"), strict=True):
            if principal is not None and principal.removeprefix("User:") in losing:
                yield f"{who} as {principal}, whose credentials would be gone"
    rules = [(each.action, each.resource.acl) for each in changed if each.resource.acl is not None]
    added = [acl for action, acl in rules if action == "create" and acl is not None]
    removed = [acl for action, acl in rules if action == "delete" and acl is not None]
    if not rules:
        return
    effect = effect_of(frame, cluster, known_view(frame, cluster, told), added, removed)
    for change in effect.changes:
        if change.used_by:
            frame.note(
                f"warning: {change.principal} loses {change.operation} on {change.resource}, used by "
                f"{', '.join(change.used_by)}"
            )
    yield from effect.lockouts


def lost_with(cluster: Cluster, state: ClusterState, topics: Sequence[str]) -> Iterator[str]:
    """What is lost with topics that are deleted, as far as brokers tell: bytes, and the groups that read them."""
    if not topics:
        return
    from kctl.cluster.state import Problem

    sizes = cluster.replica_sizes(topics)
    readers: dict[str, tuple[str, ...]] = {}
    if cluster.can.ask_brokers:
        from kctl.wire.acls import read_uses
        from kctl.wire.cluster import AdminCluster

        assert isinstance(cluster, AdminCluster)
        problems: list[Problem] = []
        readers = dict(read_uses(cluster.wire, problems).groups_by_topic)
        for problem in problems:
            yield f"{problem.place}: {problem.reason}; who reads is not known"
    for topic in topics:
        if sizes is None:
            yield f"topic {topic} is deleted with all its records; how many and who reads them only brokers tell"
            continue
        stored = sum(each.size_in_bytes for each in sizes if each.partition.topic == topic)
        groups = readers.get(topic, ())
        read_by = f", which groups {', '.join(groups)} read" if groups else ""
        yield f"topic {topic} is deleted with {size(stored)} on disks{read_by}"
