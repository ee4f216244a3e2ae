"""`kctl config`: configurations of topics, brokers and what else has one; and `kctl topic config`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from commands.cli import completing
from commands.cli.changing import ACCEPT_UNCLEAN, CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, answer_timeout, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.leaving import folded
from commands.cli.options import SNAPSHOT, Decorator, Duration, flag, option
from commands.cli.render import Outcome, Page, Row, cell, json_encoder, tab_separated
from commands.topic import note_hidden, note_problems
from kctl.errors import BadValue, KctlError
from kctl.rows.cluster import CONFIG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState

TYPES = ("topics", "brokers", "clients", "users", "ips", "broker-loggers", "client-metrics", "groups")
QUOTAS = ("clients", "users", "ips")


def entity_type(required: bool = True) -> Decorator:
    """The option that says what kind of thing is configured."""
    return option("--entity-type", "Type of the entity.", type=click.Choice(TYPES), required=required)


def entity_name(required: bool = True) -> Decorator:
    """The option that names the entity."""
    return option(
        "--entity-name NAME",
        "Name or id; <default> for the default entity.",
        shell_complete=completing.entities,
        required=required,
    )


def rows_of(
    state: ClusterState, kind: str, name: str | None, keys: Sequence[str], *, show_secrets: bool
) -> Iterator[Row]:
    """A row for each value that is set, sorted by entity and key."""
    from formats.secrets import REDACTED, is_secret_key, redact_text

    for (entity_type, entity), config in sorted(state.configs.items()):
        if entity_type != kind or name not in (None, entity):
            continue
        for key, value in sorted(config.values.items()):
            if not keys or key in keys:
                shown = value if show_secrets else REDACTED if is_secret_key(key) else redact_text(value)
                yield CONFIG(entity_type=kind, entity_name=entity, key=key, value=shown)


def _expected_brokers(cluster: Cluster, state: ClusterState) -> list[int]:
    """Ids of all brokers; below 4.0 the cluster tells of dead ones only as replicas of partitions."""
    from kctl.cluster.versions import V4_0

    known = set(state.brokers)
    if state.kafka_version < V4_0:
        placed = cluster.read_state(partition_states=False, recent=True)
        known.update(
            *(replicas for topic in placed.topics.values() for replicas in topic.partitions.values())
        )
    return sorted(known)


class Effective(NamedTuple):
    """An entity's name, and the rows of its keys without it: one object where entities share them."""

    name: str
    unnamed: list[Row]

    def rows(self) -> Iterator[Row]:
        """The rows of its keys."""
        return ({**row, "entity_name": self.name} for row in self.unnamed)


def _effective(
    frame: Frame,
    at: At,
    kind: str | None,
    name: str | None,
    keys: tuple[str, ...],
    explain: bool,
    show_secrets: bool,
) -> Iterator[Effective]:
    from formats.secrets import REDACTED, is_secret_key, redact_text
    from kctl.operations.configs import entity_path
    from kctl.wire.configs import ConfigInForce, in_force, names_of

    if at.snapshot is not None:
        raise BadValue("only brokers know the effective values", "give --bootstrap-server, not --snapshot")
    if kind is None and name is not None:
        raise BadValue("--entity-name alone names nothing", "give --entity-type too")

    def shown(key: str, value: str | None, is_known: bool) -> str | None:
        if value is None or show_secrets:
            return value
        return REDACTED if is_secret_key(key) and not is_known else redact_text(value)

    def row_of(config: ConfigInForce, each: str) -> Row:
        is_known = config.type is not None or each == "broker-loggers"  # then brokers keep secrets back
        synonyms = [{**s, "value": shown(str(s["key"]), s["value"], is_known)} for s in config.synonyms]
        values = {
            **config._asdict(),
            "value": shown(config.key, config.value, is_known),
            "synonyms": synonyms,
        }
        if not explain:
            del values["documentation"]
        return CONFIG(entity_type=each, entity_name="", **values)

    with at.open(frame) as cluster:
        if not cluster.can.ask_brokers:
            raise KctlError("only brokers know the effective values", "give --bootstrap-server")
        from kctl.cluster.config_keys import KEPT_BY_EACH_BROKER
        from kctl.cluster.state import DEFAULT
        from kctl.wire.cluster import AdminCluster
        from kctl.wire.reading import brokers_behind

        assert isinstance(cluster, AdminCluster)
        state = cluster.read_state(
            (),
            partition_states=False,
            configs=[kind] if kind in QUOTAS else (),
            kafka_version=at.version,
            visibility=kind in (None, "topics") and name is None,
        )
        note_problems(frame, state.problems)
        note_hidden(frame, state, decides=not state.topic_names)
        for each in (kind,) if kind else ("topics", "brokers"):
            path = None if name is None else entity_path(each, name, state.kafka_version)
            if each in QUOTAS:
                for row in rows_of(state, each, path, keys, show_secrets=show_secrets):
                    yield Effective(str(row["entity_name"]), [row])
                continue
            if each in KEPT_BY_EACH_BROKER and name is None:
                names = list(map(str, _expected_brokers(cluster, state)))
            elif name is None:
                names = list(state.topic_names) if each == "topics" else names_of(cluster.wire, each)
            else:
                names = [path or name]
            if each == "brokers":
                broker_ids = [int(broker) for broker in names if broker != DEFAULT]
                note_problems(frame, brokers_behind(cluster.wire, state.quorum, broker_ids))
            made: dict[str, tuple[ConfigInForce, Row]] = {}  # by key, as it was told last
            for entity, configs in in_force(cluster.wire, each, names, keys, explain=explain):
                if isinstance(configs, KctlError):
                    frame.report(configs)
                    continue
                listed = []
                for config in configs:
                    known = made.get(config.key)
                    if known is None or known[0] is not config:
                        known = made[config.key] = config, row_of(config, each)
                    listed.append(known[1])
                yield Effective(entity, listed)


def effective_lines(entities: Sequence[Effective], form: str) -> Iterator[bytes] | None:
    """The rows in an output form, the lines of an entity in a part; None for a form without lines.

    Most keys hold the same in all topics: what stands around the entity's name is encoded once.
    """
    first = next((row for entity in entities for row in entity.rows()), None)
    if form == "json" or first is None:
        return None
    encode = json_encoder()

    def around_name(row: Row) -> list[bytes]:
        row = {**row, "entity_name": PLACE}
        if form == "jsonl":
            return (encode(row) + b"\n").split(b'"%b"' % PLACE.encode(), 1)
        *_, line = tab_separated([row])
        return f"{line}\n".encode().split(PLACE.encode(), 1)

    def lines() -> Iterator[bytes]:
        if form != "jsonl":
            yield ("\t".join(first) + "\n").encode()
        known: dict[int, list[bytes]] = {}  # by the row's identity
        for entity in entities:
            name = encode(entity.name) if form == "jsonl" else cell(entity.name).encode()
            parts = []
            for row in entity.unnamed:
                around = known.get(id(row))
                if around is None:
                    around = known[id(row)] = around_name(row)
                parts.append(name.join(around))
            yield b"".join(parts)

    return lines()


PLACE = "<entity>"
"""Stands for the entity's name, which is the first of a row's values that comes from brokers."""


def effective_text(rows: Iterable[Row], page: Page, *, verbose: bool) -> Iterator[str]:
    """A heading for each entity and its keys in columns; other values that would hold, and documentation, below them."""
    for (kind, name), entity_rows in groupby(
        rows, lambda row: (str(row["entity_type"]), str(row["entity_name"]))
    ):
        listed = list(entity_rows)
        yield page.style(f"{kind.removesuffix('s')} {name}", "bold")
        width = max(len(str(row["key"])) for row in listed)
        for row in listed:
            value = "(not told)" if row["value"] is None else str(row["value"])
            source = page.style(str(row.get("source") or "").replace("_", " "), "dim")
            yield f"  {str(row['key']).ljust(width)}  {value}  {source}".rstrip()
            for synonym in cast("list[Row]", row.get("synonyms") or [])[1:] if verbose else ():
                yield page.style(f"      {synonym['key']}={synonym['value']}  {synonym['source']}", "dim")
            if row.get("documentation"):
                plain = " ".join(re.sub(r"<[^<>]*>", "", str(row["documentation"])).split())
                yield from folded(f"      {plain}", page.width)


NOTHING_SET = "nothing is set; the defaults apply"


@command("get", paged=True, status="0 done · 2 wrong usage · 3 no such topic, no connection")
@reads
@entity_type(required=False)
@entity_name(required=False)
@click.argument("key", nargs=-1)
@flag("--effective", "Show every key with its current value and the source of the value.")
@flag("--explain", "With --effective: show the documentation of each key.")
@flag("--show-secrets", "Show credentials and passwords.")
def get(
    frame: Frame,
    at: At,
    entity_type: str | None,
    entity_name: str | None,
    key: tuple[str, ...],
    effective: bool,
    explain: bool,
    show_secrets: bool,
) -> Outcome:
    """Show the values set for one entity, or for all of a type.

    --effective asks the brokers for every key: dynamic values, values of their files, and defaults. Without
    --entity-type, shows topics and brokers.

    $ kctl config get --entity-type topics --entity-name orders
    $ kctl config get --entity-type brokers
    $ kctl config get --entity-type topics --entity-name orders retention.ms
    $ kctl config get --effective --entity-type topics --entity-name orders --bootstrap-server kafka1:9092
    $ kctl config get --effective --explain --entity-type brokers --entity-name 1 num.io.threads
    """
    from kctl.cluster.config_keys import BROKERS_ONLY, KEPT_BY_EACH_BROKER
    from kctl.cluster.names import absent_topics
    from kctl.cluster.state import DEFAULT
    from kctl.operations.configs import entity_path

    if effective:
        entities = list(_effective(frame, at, entity_type, entity_name, key, explain, show_secrets))
        return Outcome(
            (row for entity in entities for row in entity.rows()),
            encoded=partial(effective_lines, entities),
            text=partial(effective_text, verbose=frame.verbose),
            nothing="there is no such key" if key else NOTHING_SET,
        )
    if entity_type is None:  # as where it is always required
        context = click.get_current_context()
        (option,) = (param for param in context.command.params if param.name == "entity_type")
        raise click.MissingParameter(ctx=context, param=option)
    if explain:
        raise BadValue("--explain goes with --effective", "give --effective too, or leave --explain out")
    topics: list[str] | None = None if entity_type == "topics" and entity_name is None else []
    if entity_type == "topics" and entity_name is not None:
        topics = [entity_name]
    with at.open(frame) as cluster:
        if entity_type in BROKERS_ONLY and not cluster.can.ask_brokers:
            raise KctlError(f"only brokers keep {entity_type}", "give --bootstrap-server")
        state = cluster.read_state(
            topics,
            partition_states=False,
            configs=[entity_type],
            kafka_version=at.version,
            visibility=topics is None,
        )
        asks_all = entity_name is None and entity_type in KEPT_BY_EACH_BROKER
        expected = _expected_brokers(cluster, state) if asks_all and cluster.can.ask_brokers else []
    if entity_type == "topics" and entity_name is not None and entity_name not in state.topic_names:
        raise absent_topics([entity_name], state)
    name = None if entity_name is None else entity_path(entity_type, entity_name, state.kafka_version)
    problems = list(state.problems)
    if not cluster.can.keep_configs_of_dead and entity_type in KEPT_BY_EACH_BROKER:
        place = f"configuration of {entity_type.removesuffix('s')} {{}}".format
        for broker in map(str, expected) if name is None else (name,):
            if broker != DEFAULT and not state.is_alive(int(broker)):
                frame.fail(
                    f"broker {broker} is not alive, and only the broker itself can report its configuration",
                    "start it, or leave it out",
                )
                problems = [problem for problem in problems if problem.place != place(broker)]
        problems = [problem for problem in problems if name is None or problem.place == place(name)]
    note_problems(frame, problems)
    rows = list(rows_of(state, entity_type, name, key, show_secrets=show_secrets))
    note_hidden(frame, state, decides=not rows)
    nothing = "no quota is set; `kctl user list` lists credentials" if entity_type == "users" else NOTHING_SET
    return Outcome(rows, nothing=nothing)


@command("set", status=CHANGE_STATUS)
@changes(timeout=60)
@entity_type()
@entity_name()
@click.argument("value", nargs=-1, required=True, metavar="K=V...")
@option("--for DURATION", "Restore the old values after this time.", into="seconds", type=Duration())
@ACCEPT_UNCLEAN
def set_values(
    frame: Frame,
    how: How,
    entity_type: str,
    entity_name: str,
    value: tuple[str, ...],
    seconds: float | None,
    accept_loss: bool,
) -> Outcome:
    """Set values of one entity and notify the brokers.

    With --for, the command waits and then restores the old values. If it is interrupted, `kctl journal resume` restores
    them.

    $ kctl config set --entity-type topics --entity-name orders retention.ms=86400000
    $ kctl config set --entity-type clients --entity-name billing producer_byte_rate=1048576 --yes
    $ kctl config set --entity-type broker-loggers --entity-name 1 kafka.server.KafkaApis=DEBUG --for 10m
    """
    return change_values(frame, how, entity_type, entity_name, value, (), seconds, accept_loss)


@command("unset", status=CHANGE_STATUS)
@changes(timeout=60)
@entity_type()
@entity_name()
@click.argument("key", nargs=-1, required=True)
@ACCEPT_UNCLEAN
def unset(
    frame: Frame, how: How, entity_type: str, entity_name: str, key: tuple[str, ...], accept_loss: bool
) -> Outcome:
    """Remove values of one entity, so that the defaults apply, and notify the brokers.

    $ kctl config unset --entity-type topics --entity-name orders retention.ms
    """
    return change_values(frame, how, entity_type, entity_name, (), key, accepted=accept_loss)


def change_values(
    frame: Frame,
    how: How,
    kind: str,
    name: str,
    values: tuple[str, ...],
    keys: tuple[str, ...],
    seconds: float | None = None,
    accepted: bool = False,
) -> Outcome:
    """Plan and carry out a change of configuration."""
    from kctl.operations.configs import parse_assignments, plan_configs

    assignments = parse_assignments(values)
    with open_for_change(frame) as cluster:
        try:
            plan = plan_configs(
                cluster, kind, name,
                set=assignments, unset=keys, kafka_version=how.version, seconds=seconds, accepted=accepted,
            )  # fmt: skip
        except KctlError as error:
            if error.exit_code == KctlError.exit_code:  # a refusal says so itself
                error.message = f"{error.message.removesuffix('; nothing was written')}; nothing was written"
            raise
        return carry_out(frame, how, cluster, plan)


@command("config", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("action", type=click.Choice(("get", "set", "unset")))
@click.argument("name")
@click.argument("value", nargs=-1, metavar="[K=V|K]...")
@SNAPSHOT
@ACCEPT_UNCLEAN
def topic_config(
    frame: Frame,
    how: How,
    action: str,
    name: str,
    value: tuple[str, ...],
    snapshot: Path | None,
    accept_loss: bool,
) -> Outcome:
    """Show, set or unset the configuration of a topic.

    Only `get` takes --snapshot.

    $ kctl topic config get orders
    $ kctl topic config get orders --snapshot znodes.jsonl
    $ kctl topic config set orders retention.ms=86400000 cleanup.policy=compact
    $ kctl topic config unset orders retention.ms
    """
    from kctl.cluster.names import absent_topics

    if action == "get":
        at = At(snapshot, allow_stale=False, timeout=answer_timeout(frame), kafka_version=how.kafka_version)
        with at.open(frame) as cluster:
            state = cluster.read_state(
                [name], partition_states=False, configs=["topics"], kafka_version=at.version
            )
        if name not in state.topic_names and (not state.problems or name in state.denied_topics):
            raise absent_topics([name], state)
        note_problems(frame, state.problems)
        return Outcome(rows_of(state, "topics", name, value, show_secrets=False), nothing=NOTHING_SET)
    if snapshot is not None:
        raise BadValue(
            "a snapshot cannot be changed", "name the cluster with --zookeeper or --bootstrap-server"
        )
    if not value:
        raise BadValue(f"nothing to {action}", "give KEY=VALUE" if action == "set" else "give a key")
    values, keys = (value, ()) if action == "set" else ((), value)
    return change_values(frame, how, "topics", name, values, keys, accepted=accept_loss)
