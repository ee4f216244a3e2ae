"""`kctl user`: SCRAM users of a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.access.sources import Recorded, recorded
from commands.cli import completing
from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, WRITTEN, as_one_value, flag, option
from commands.cli.render import Outcome, Row
from commands.topic import note_problems
from kctl.access_sources.live import view_of
from kctl.cluster.interface import Users
from kctl.errors import BadValue, KctlError, Refused, file_error
from kctl.model import command_line
from kctl.rows.access import USER

if TYPE_CHECKING:
    from kctl.access.users import Salted
    from kctl.changes.kinds.access import SetScram
    from kctl.changes.plan import Plan
    from kctl.cluster.intent import Write
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import Problem

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS = 4096
LONGEST_PASSWORD = 4096  # bytes


@command("list", paged=True, status="0 listed · 2 wrong usage · 3 no connection, something could not be read")
@reads
@recorded
@click.argument("name", nargs=-1, shell_complete=completing.users)
def list_users(frame: Frame, at: At, source: Recorded, name: tuple[str, ...]) -> Outcome:
    """List users with SCRAM credentials.

    $ kctl user list --bootstrap-server kafka1:9092
    $ kctl user list app --zookeeper zk1:2181/kafka
    $ kctl user list --metadata /var/lib/kafka/__cluster_metadata-0
    """
    view = source.read()
    problems: list[Problem] = []
    if view is not None:
        users: Users = view.credentials
        problems += view.problems
    else:
        with at.open(frame) as cluster:
            users = cluster.scram_users(problems)
    note_problems(frame, problems)
    for missing in sorted(set(name) - users.keys()):
        frame.fail(f"no user {missing}", "`kctl user list` shows all")
    return Outcome(user_rows(users, name), nothing="no user has SCRAM credentials")


def user_rows(users: Users, names: Iterable[str] = ()) -> Iterator[Row]:
    """A row for each mechanism of the users, of all without names."""
    wanted = set(names)
    for user, mechanisms in sorted(users.items()):
        if not wanted or user in wanted:
            for mechanism, iterations in sorted(mechanisms.items()):
                yield USER(name=user, mechanism=mechanism, iterations=iterations)


class SecretFile(NamedTuple):
    """A new file for a secret, open for writing."""

    path: Path
    number: int


class Password(NamedTuple):
    """Where a password comes from, from the options."""

    password_file: Path | None
    password_command: str | None
    generate_to: str | None

    def check(self) -> None:
        """Raise BadValue where several are given."""
        if sum(value is not None for value in self) > 1:
            raise BadValue(
                "a password comes from one place",
                "give one of --password-file, --password-command and --generate-to",
            )

    def read(self, user: str) -> bytes:
        """The password, which is asked for without an option. Raises KctlError, Refused without a terminal."""
        if self.password_file is not None:
            return _of_file(self.password_file)
        if self.password_command is not None:
            from kctl.settings import printed_by

            return printed_by(self.password_command, "--password-command").encode("utf-8", "surrogateescape")
        if self.generate_to is not None:
            return _generated(Path(self.generate_to))
        if not sys.stdin.isatty():
            raise Refused(
                "there is no terminal to ask for the password; nothing was written",
                "give --password-file, --password-command or --generate-to",
            )
        answer = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
        return str(answer).encode("utf-8", "surrogateescape")


class NoPassword(Password):
    """Stands for the password of a dry run, whose writes are shown without it: nothing is asked for or generated."""

    def read(self, user: str) -> bytes:
        return os.urandom(16).hex().encode()


def _of_file(path: Path) -> bytes:
    from kctl.files import read_whole

    try:
        line = read_whole(path, LONGEST_PASSWORD).split(b"\n", 1)[0].rstrip(b"\r")
    except OSError as error:
        raise file_error(path, error) from error
    if not line:
        raise KctlError(f"{path}: its first line is empty", "write the password there")
    return line


def _generated(path: Path) -> bytes:
    """A new password, in a new file that the user alone can read: it is on disk before anything is changed."""
    from kctl.access.users import generated_password

    password = generated_password()
    write_secret(new_secret_file(path), password)
    return password.encode()


def new_secret_file(path: Path) -> SecretFile:
    """A new file that the user alone can read. Raises KctlError."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.fchmod(number, 0o600)
    except OSError as error:
        raise file_error(path, error, hint="name a new file") from error
    return SecretFile(path, number)


def write_secret(file: SecretFile, secret: str) -> None:
    """Write a secret to the new file, and to disk; closes it. Raises KctlError."""
    try:
        with os.fdopen(file.number, "w", encoding="ascii") as opened:
            opened.write(f"{secret}\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise file_error(file.path, error) from error


password_options = as_one_value(
    Password,
    [
        option(
            "--password-file FILE", "Take the password from the first line of this file.", type=GIVEN_PATH
        ),
        option(
            "--password-command COMMAND", "Take the password from the first line that this command prints."
        ),
        option(
            "--generate-to FILE",
            "Generate a password and write it to this new file, of mode 600.",
            type=WRITTEN,
        ),
    ],
)
MECHANISM = option(
    "--mechanism MECHANISM...",
    "Only this mechanism; repeatable.",
    into="mechanisms",
    type=click.Choice(MECHANISMS, case_sensitive=False),
)
ITERATION_COUNT = option(
    "--iterations N",
    "Iterations of the hash, 4096 to 16384.",
    type=click.IntRange(ITERATIONS, 16384),
    default=ITERATIONS,
)


@command("create", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("name")
@MECHANISM
@ITERATION_COUNT
@password_options
def create(
    frame: Frame, how: How, password: Password, name: str, mechanisms: tuple[str, ...], iterations: int
) -> Outcome:
    """Create a user with SCRAM credentials.

    Without --mechanism, both SCRAM-SHA-256 and SCRAM-SHA-512. The password is asked for, or comes from a file or a
    command, or is generated; it is not in the journal, and no option takes it. `journal undo` deletes the credentials.

    $ kctl user create app
    $ kctl user create app --generate-to app.password --mechanism SCRAM-SHA-512
    $ kctl user create app --password-command 'vault kv get -field=password kafka/app'
    """
    return set_credentials(frame, how, name, mechanisms, iterations, password, is_new=True)


@command("set-password", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("name", shell_complete=completing.users)
@MECHANISM
@ITERATION_COUNT
@password_options
def set_password(
    frame: Frame, how: How, password: Password, name: str, mechanisms: tuple[str, ...], iterations: int
) -> Outcome:
    """Set the password of a user.

    Without --mechanism, of all mechanisms that the user has. The former password is not kept, so that nothing takes this
    back. Connections that are open stay; clients need the new password when they connect again.

    $ kctl user set-password app
    $ kctl user set-password app --password-file app.password
    """
    return set_credentials(frame, how, name, mechanisms, iterations, password, is_new=False)


def set_credentials(
    frame: Frame,
    how: How,
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: Password,
    *,
    is_new: bool,
) -> Outcome:
    """Plan and carry out that a user gets a password."""
    from kctl.access.users import check_user
    from kctl.changes.kinds.access import SetScram

    check_user(name)
    password.check()
    with open_for_change(frame) as cluster:
        present = _present(cluster, name)
        chosen = mechanisms or (MECHANISMS if is_new else tuple(present))
        if is_new and (there := sorted(set(chosen) & present.keys())):
            raise Refused(
                f"user {name} has {' and '.join(there)} already; nothing was written",
                f"`{command_line('kctl user set-password', [name])}` sets another password",
            )
        if not is_new and (lacking := sorted(set(chosen or MECHANISMS) - present.keys())):
            raise KctlError(
                f"user {name} has no {' and '.join(lacking)}; nothing was written",
                f"`{command_line('kctl user create', [name])}`",
            )
        intent = SetScram(
            user=name,
            mechanisms=dict.fromkeys(sorted(chosen), iterations),
            previous_mechanisms={key: value for key, value in present.items() if key in chosen},
        )
        rows = list(user_rows({name: intent.mechanisms}))
        source = NoPassword(None, None, None) if how.dry_run else password
        return carry_out(frame, how, cluster, _plan(cluster, intent, source), rows)


def _present(cluster: Cluster, name: str) -> dict[str, int]:
    problems: list[Problem] = []
    users = cluster.scram_users(problems)
    for problem in problems:
        raise KctlError(
            f"{problem.place}: {problem.reason}; nothing was written", problem.hint or "repair it first"
        )
    return {mechanism: iterations or 0 for mechanism, iterations in users.get(name, {}).items()}


def _plan(cluster: Cluster, intent: SetScram, password: Password) -> Plan:
    """The plan with the one stage whose writes hold what follows from the password."""
    from kctl.changes.plan import Plan, Stage

    return Plan(
        title=str(intent), stages=(Stage(intent=intent, writes=credential_writes(cluster, intent, password)),)
    )


def credential_writes(cluster: Cluster, intent: SetScram, password: Password) -> tuple[Write, ...]:
    """The writes that give a user the password. Raises KctlError."""
    from kctl.access.users import salted

    entered = password.read(intent.user)
    passwords = {
        mechanism: salted(mechanism, entered, count) for mechanism, count in intent.mechanisms.items()
    }
    if cluster.can.ask_brokers:
        from kctl.wire.users import scram_writes

        return scram_writes(intent, passwords)
    return _znode_writes(cluster, intent, passwords)


def _znode_writes(cluster: Cluster, intent: SetScram, passwords: Mapping[str, Salted]) -> tuple[Write, ...]:
    from formats.znodes.security import format_scram
    from kctl.access.users import credential_of
    from kctl.zookeeper.cluster import ZookeeperCluster
    from kctl.zookeeper.writes import scram_writes

    assert isinstance(cluster, ZookeeperCluster)
    state = cluster.read_state((), partition_states=False, recent=True)
    credentials = {
        mechanism: format_scram(credential_of(mechanism, password))
        for mechanism, password in passwords.items()
    }
    return scram_writes(cluster.store, intent, credentials, state)


@command("delete", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("name", shell_complete=completing.users)
@MECHANISM
@flag("--accept-lockout", "Accept that kctl itself connects as this user.")
def delete(frame: Frame, how: How, name: str, mechanisms: tuple[str, ...], accept_lockout: bool) -> Outcome:
    """Delete the SCRAM credentials of a user; its rules stay.

    The password is not kept, so that nothing takes this back. Connections that are open stay until they end.

    $ kctl user delete app
    $ kctl user delete app --mechanism SCRAM-SHA-256
    """
    from kctl.changes.kinds.access import DeleteScram
    from kctl.changes.plan import plan_of

    with open_for_change(frame) as cluster:
        present = _present(cluster, name)
        chosen = {key: count for key, count in present.items() if not mechanisms or key in mechanisms}
        if not chosen:
            raise KctlError(
                f"user {name} has no {' or '.join(mechanisms) or 'SCRAM credentials'}; nothing was written",
                "`kctl user list` shows all",
            )
        warnings = list(_warnings(frame, cluster, name, is_all=chosen == present))
        is_own = any("kctl connects" in text for text in warnings)
        plan = plan_of(
            [DeleteScram(user=name, mechanisms=chosen)],
            cluster,
            cluster.read_state((), partition_states=False, recent=True),
            warnings=warnings,
            needs="--accept-lockout" if is_own and not accept_lockout else "",
        )
        return carry_out(frame, how, cluster, plan, list(user_rows({name: chosen})))


def _warnings(frame: Frame, cluster: Cluster, name: str, *, is_all: bool) -> Iterator[str]:
    """What the user is needed for: kctl's own connection, and rules."""
    if cluster.can.ask_brokers:
        from kctl.wire.acls import own_principal
        from kctl.wire.cluster import AdminCluster

        assert isinstance(cluster, AdminCluster)
        if own_principal(cluster.wire.access) == f"User:{name}":
            yield f"kctl connects as user {name}, which would be gone"
    try:
        rules = (
            [acl for acl in view_of(cluster, rules_only=True).acls if acl.principal == f"User:{name}"]
            if is_all
            else []
        )
    except KctlError as error:
        frame.note(f"rules were not read: {error.message}")
        return
    if rules:
        yield (
            f"{len(rules)} rule{'s' if len(rules) > 1 else ''} of User:{name} stay: "
            f"`{command_line('kctl acl delete', (), ['--principal', f'User:{name}'])}` deletes them"
        )
