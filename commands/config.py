"""Configurations of topics, brokers, clients, users and ips; `topic config` is the short form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.changing import CHANGE_STATUS, How, carry_out, changes
from commands.connecting import At, answer_timeout, open_for_change, pinned, reads
from commands.frame import Frame, command
from commands.path_types import GIVEN_PATH
from commands.render import Outcome, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kctl.cluster.state import ClusterState

TYPES = ("topics", "brokers", "clients", "users", "ips")
entity_type = click.option(
    "--entity-type", type=click.Choice(TYPES), required=True, help="What kind of thing is configured."
)


def entity_name(required: bool = True) -> Callable[[Any], Any]:
    """The option that names the entity."""
    return click.option(
        "--entity-name", metavar="NAME", required=required, help="Its name or id; <default> for the default."
    )


def rows_of(
    state: ClusterState, kind: str, name: str | None, keys: Sequence[str], *, show_secrets: bool
) -> Iterator[Row]:
    """A row for each value that is set, by entity and key."""
    from formats.znode_secrets import REDACTED, is_secret_key
    from kctl.rows.cluster import CONFIG

    for (found_type, found_name), entity in sorted(state.configs.items()):
        if found_type != kind or name not in (None, found_name):
            continue
        for key, value in sorted(entity.values.items()):
            if not keys or key in keys:
                shown = REDACTED if is_secret_key(key) and not show_secrets else value
                yield CONFIG(entity_type=kind, entity_name=found_name, key=key, value=shown)


NOTHING_SET = "nothing is set: the defaults hold"


@command(
    "get",
    examples="""
    kctl config get --entity-type topics --entity-name orders
    kctl config get --entity-type brokers
    kctl config get --entity-type topics --entity-name orders retention.ms
    """,
    status="0 done · 2 wrong usage · 3 no such topic, no connection",
)
@reads
@entity_type
@entity_name(required=False)
@click.argument("key", nargs=-1)
@click.option("--show-secrets", is_flag=True, help="Do not redact credentials and passwords.")
def get(
    frame: Frame, at: At, entity_type: str, entity_name: str | None, key: tuple[str, ...], show_secrets: bool
) -> Outcome:
    """Show what is set for one entity, or for all of a type."""
    from kctl.cluster.configs import entity_path
    from kctl.errors import KctlError

    topics = None if entity_type == "topics" and entity_name is None else [entity_name or ""]
    with at.open(frame) as cluster:
        state = cluster.read_state(
            topics, partition_states=False, configs=[entity_type], kafka_version=at.version
        )
    if entity_type == "topics" and entity_name is not None and entity_name not in state.topic_names:
        raise KctlError(f"no topic {entity_name}")
    name = None if entity_name is None else entity_path(entity_type, entity_name, state.kafka_version)
    rows = rows_of(state, entity_type, name, key, show_secrets=show_secrets)
    return Outcome(rows, nothing=NOTHING_SET)


@command(
    "set",
    examples="""
    kctl config set --entity-type topics --entity-name orders retention.ms=86400000
    kctl config set --entity-type clients --entity-name billing producer_byte_rate=1048576 --yes
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=60)
@entity_type
@entity_name()
@click.argument("value", nargs=-1, required=True, metavar="K=V...")
def set_values(frame: Frame, how: How, entity_type: str, entity_name: str, value: tuple[str, ...]) -> Outcome:
    """Set values of one entity, and tell the brokers."""
    return change_values(frame, how, entity_type, entity_name, value, ())


@command(
    "unset",
    examples="""
    kctl config unset --entity-type topics --entity-name orders retention.ms
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=60)
@entity_type
@entity_name()
@click.argument("key", nargs=-1, required=True)
def unset(frame: Frame, how: How, entity_type: str, entity_name: str, key: tuple[str, ...]) -> Outcome:
    """Take values of one entity away, so that the defaults hold again, and tell the brokers."""
    return change_values(frame, how, entity_type, entity_name, (), key)


def change_values(
    frame: Frame, how: How, kind: str, name: str, values: tuple[str, ...], keys: tuple[str, ...]
) -> Outcome:
    """Plan and carry out a change of configuration."""
    from kctl.cluster.configs import parse_assignments, plan_configs

    given = parse_assignments(values)
    with open_for_change(frame) as cluster:
        plan = plan_configs(
            cluster, kind, name, set=given, unset=keys, kafka_version=pinned(how.kafka_version)
        )
        return carry_out(frame, how, cluster, plan)


@command(
    "config",
    examples="""
    kctl topic config get orders
    kctl topic config get orders --snapshot znodes.jsonl
    kctl topic config set orders retention.ms=86400000 cleanup.policy=compact
    kctl topic config unset orders retention.ms
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=60)
@click.argument("action", type=click.Choice(("get", "set", "unset")))
@click.argument("name")
@click.argument("value", nargs=-1, metavar="[K=V|K]...")
@click.option(
    "--snapshot",
    type=GIVEN_PATH,
    metavar="FILE",
    envvar="KCTL_SNAPSHOT",
    help="With get: read this export in place of a live ZooKeeper.",
)
def topic_config(
    frame: Frame, how: How, action: str, name: str, value: tuple[str, ...], snapshot: Path | None
) -> Outcome:
    """Show, set or unset the configuration of a topic."""
    from kctl.errors import BadValue, KctlError

    if action == "get":
        at = At(
            snapshot=snapshot, allow_stale=False, timeout=answer_timeout(), kafka_version=how.kafka_version
        )
        with at.open(frame) as cluster:
            state = cluster.read_state(
                [name], partition_states=False, configs=["topics"], kafka_version=at.version
            )
        if name not in state.topic_names:
            raise KctlError(f"no topic {name}")
        return Outcome(rows_of(state, "topics", name, value, show_secrets=False), nothing=NOTHING_SET)
    if snapshot is not None:
        raise BadValue("a snapshot cannot be changed")
    if not value:
        raise BadValue(f"nothing to {action}", "name KEY=VALUE" if action == "set" else "name a key")
    if action == "set":
        return change_values(frame, how, "topics", name, value, ())
    return change_values(frame, how, "topics", name, (), value)
