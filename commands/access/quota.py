"""`kctl quota`: quotas of users, clients and addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.cli import completing
from commands.cli.changing import CHANGE_STATUS, How, changes
from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.options import as_one_value, option
from commands.cli.render import Outcome, Page, Row
from commands.config import change_values
from commands.topic import note_problems
from kctl.rows.access import QUOTA

if TYPE_CHECKING:
    from kctl.cluster.state import ClusterState


class Entity(NamedTuple):
    """Whom a quota is for, from the options."""

    user: str | None
    client_id: str | None
    ip: str | None

    @property
    def of_config(self) -> tuple[str, str]:
        """Type and name of the configuration that holds it. Raises BadValue."""
        from kctl.access.quotas import entity_of

        return entity_of(*self)


entity = as_one_value(
    Entity,
    [
        option(
            "--user USER",
            "The user; <default>: users without their own.",
            shell_complete=completing.users,
        ),
        option("--client-id ID", "The client id; <default>: ids without their own."),
        option("--ip ADDRESS", "The address of connections; <default>: addresses without their own."),
    ],
)


def read_quotas(frame: Frame, at: At) -> ClusterState:
    """A state with every quota that is set; reports what could not be read (status 3). Raises KctlError."""
    from kctl.access.quotas import TYPES
    from kctl.cluster.config_keys import ENTITY_TYPES

    with at.open(frame) as cluster:
        version = cluster.read_state((), partition_states=False, kafka_version=at.version).kafka_version
        kinds = [kind for kind in TYPES if ENTITY_TYPES[kind][0] <= version]
        state = cluster.read_state((), partition_states=False, configs=kinds, kafka_version=at.version)
    note_problems(frame, state.problems)
    return state


@command("list", paged=True, status="0 listed · 2 wrong usage · 3 no connection, something could not be read")
@reads
@entity
def list_quotas(frame: Frame, at: At, wanted: Entity) -> Outcome:
    """List quotas that are set.

    $ kctl quota list --bootstrap-server kafka1:9092
    $ kctl quota list --user app
    """
    from kctl.access.quotas import quotas_in

    state = read_quotas(frame, at)
    rows = (
        QUOTA(**quota._asdict())
        for quota in quotas_in(state)
        if all(given in (None, value) for given, value in zip(wanted, quota[:3], strict=True))
    )
    return Outcome(rows, nothing="" if state.problems else "no such quota is set")


@command("check", status="0 shown · 2 wrong usage · 3 no connection, something could not be read")
@reads
@click.argument("user", shell_complete=completing.users)
@click.argument("client_id", metavar="CLIENT")
@option("--ip ADDRESS", "Show the quota of connections of this address too.")
def check(frame: Frame, at: At, user: str, client_id: str, ip: str | None) -> Outcome:
    """Show the quotas in force for a user and a client id, and the level that sets each.

    Kafka looks at eight levels: user and client id; user and default client id; user; default user and client id; default
    user and default client id; default user; client id; default client id. The first that sets the key decides.
    User `ANONYMOUS` is who connects without a login.

    $ kctl quota check app billing-1
    $ kctl quota check ANONYMOUS console-producer --ip 10.0.0.7
    """
    from functools import partial

    from kctl.access.quotas import in_force, quotas_in, why_unknown

    state = read_quotas(frame, at)
    why = partial(why_unknown, state)
    quotas = in_force(quotas_in(state), user=user, client_id=client_id, ip=ip, why_unknown=why)
    rows = (QUOTA(**quota._asdict()) for quota in quotas)
    return Outcome(rows, text=in_force_text)


def in_force_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a key: the value and its level."""
    for row in rows:
        if row["why"] is not None:
            yield f"{row['key']}  {page.style('unknown', 'warning')}"
        elif row["source"] is None:
            yield f"{row['key']}  {page.style('unlimited', 'dim')}"
        else:
            yield f"{row['key']}  {row['value']}  {page.style(str(row['source']), 'dim')}"


@command("set", status=CHANGE_STATUS)
@changes(timeout=60)
@entity
@click.argument("value", nargs=-1, required=True, metavar="K=V...")
def set_quota(frame: Frame, how: How, wanted: Entity, value: tuple[str, ...]) -> Outcome:
    """Set quotas of a user, a client id, both together, or an address.

    $ kctl quota set --user app producer_byte_rate=1048576
    $ kctl quota set --user app --client-id '<default>' request_percentage=50
    $ kctl quota set --ip '<default>' connection_creation_rate=20
    """
    return change_values(frame, how, *wanted.of_config, value, ())


@command("unset", status=CHANGE_STATUS)
@changes(timeout=60)
@entity
@click.argument("key", nargs=-1, required=True)
def unset(frame: Frame, how: How, wanted: Entity, key: tuple[str, ...]) -> Outcome:
    """Remove quotas, so that the next level decides.

    $ kctl quota unset --user app producer_byte_rate
    """
    return change_values(frame, how, *wanted.of_config, (), key)
