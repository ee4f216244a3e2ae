"""Znodes of every version, and whatever else stands in one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.secrets import is_secret_key, redact
from formats.znodes.catalogue import KINDS, ZnodeKind, kind_of_znode
from formats.znodes.cluster import (
    edit_topic,
    format_config,
    format_topic,
    parse_broker,
    parse_config,
    parse_controller,
    parse_number,
    parse_partition_state,
    parse_topic,
)
from formats.znodes.requests import (
    ConfigChange,
    Requested,
    format_election,
    format_reassignment,
    parse_config_change,
    parse_election,
    parse_reassignment,
)
from tests.conftest import recording, recordings

BROKERS = {
    1: '{"jmx_port":-1,"timestamp":"1","host":"h","version":1,"port":9092}',
    2: '{"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:9092"],"host":"h","version":2,"port":9092}',
    3: '{"timestamp":"1","endpoints":["SSL://[::1]:9093"],"host":null,"version":3,"port":-1,"rack":"r","jmx_port":-1}',
    4: '{"listener_security_protocol_map":{"IN":"SASL_SSL"},"endpoints":["IN://:9094"],"host":null,"version":4,'
    '"port":-1,"timestamp":"1","jmx_port":-1}',
    5: '{"features":{"f":{"min_version":1,"max_version":2}},"endpoints":["PLAINTEXT://h:9092"],"host":"h",'
    '"version":5,"port":9092,"timestamp":"1","jmx_port":-1,"new":[1]}',
}


@pytest.mark.parametrize("version", BROKERS)
def test_brokers_of_every_version(version: int) -> None:
    found = parse_broker(BROKERS[version].encode())
    assert found.version == version and found.timestamp == 1
    if version == 3:
        assert found.rack == "r" and found.endpoints[0][:3] == ("SSL", "::1", 9093)
    if version == 4:
        assert found.endpoints[0] == ("IN", "", 9094, "SASL_SSL")
    if version == 5:
        assert found.features and found.other == {"new": [1]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'{"version":0}',
        b'{"version":2,"host":"h","port":1}',
        b'{"endpoints":["x"],"version":2}',
    ],
)
def test_registrations_that_brokers_refuse(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_broker(data)


TOPICS = [
    '{"version":1,"partitions":{"0":[1,2],"10":[2,3]}}',
    '{"version":2,"partitions":{"0":[4,1]},"adding_replicas":{"0":[4]},"removing_replicas":{"0":[1]}}',
    '{"version":3,"partitions":{},"adding_replicas":{},"removing_replicas":{},"topic_id":"dORjDjfESdeIhDtV432STQ"}',
]


@pytest.mark.parametrize("text", TOPICS)
def test_topics_of_every_version_survive(text: str) -> None:
    assert json.loads(format_topic(parse_topic(text.encode()))) == json.loads(text)


@pytest.mark.parametrize(
    "data",
    [
        b'{"partitions":{"0":["1"]}}',
        b'{"partitions":{"x":[1]}}',
        b'{"partitions":{"0":[true]}}',
        b'{"partitions":[]}',
        b'{"topic_id":"short","partitions":{}}',
        b'{"version":"1","partitions":{}}',
    ],
)
def test_topics_that_stop_a_controller(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_topic(data)


def test_what_follows_the_json_is_ignored_as_kafka_does() -> None:
    assert parse_topic(b'{"partitions":{"0":[1]}} and more').partitions == {0: (1,)}


def test_editing_a_topic_loses_nothing() -> None:
    data = b'{"topic_id":"dORjDjfESdeIhDtV432STQ","partitions":{"0":[1]},"x":{"y":[null]},"version":3}'
    assert json.loads(edit_topic(data, {1: (2,)})) == {**json.loads(data), "partitions": {"0": [1], "1": [2]}}


def test_states() -> None:
    text = (
        b'{"controller_epoch":3,"leader":-1,"version":1,"leader_epoch":9,"isr":[2],"leader_recovery_state":1}'
    )
    assert parse_partition_state(text) == (-1, 9, (2,), 3, 1, 1)
    with pytest.raises(FormatError, match="leader_epoch"):
        parse_partition_state(b'{"leader":1,"isr":[],"controller_epoch":1}')


def test_controllers() -> None:
    assert parse_controller(b"3").broker_id == 3
    found = parse_controller(b'{"version":2,"brokerid":3000,"timestamp":"5","kraftControllerEpoch":7}')
    assert (found.broker_id, found.kraft_controller_epoch) == (3000, 7)
    assert parse_number(b"12") == 12
    with pytest.raises(FormatError):
        parse_number(b"twelve")


def test_requests() -> None:
    moved = [Requested("t", 0, (1, 2))]
    assert (
        format_reassignment(moved)
        == b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
    )
    assert parse_reassignment(format_reassignment(moved)).partitions == tuple(moved)
    poisoned = (
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any"]}],"why":1}'
    )
    assert parse_reassignment(poisoned).unknown_keys == ("log_dirs", "why")
    asked = [Requested("t", 0)]
    assert parse_election(format_election(asked)).partitions == tuple(asked)


@pytest.mark.parametrize("form", [0, 1, 2])
def test_notifications_of_every_form(form: int) -> None:
    change = ConfigChange(form, "topics/t")
    assert parse_config_change(change.encode()) == change


def test_configurations() -> None:
    assert parse_config(format_config({"b": "2", "a": "1"})).config == {"a": "1", "b": "2"}
    assert parse_config(b'{"version":1}').config == {}
    with pytest.raises(FormatError, match=r"config\.a"):
        parse_config(b'{"config":{"a":5}}')


OTHERS: dict[str, tuple[dict[str, object], list[str]]] = {
    "/cluster/id": ({"version": "1", "id": "abc"}, ["the cluster's id is abc"]),
    "/feature": (
        {"version": 2, "status": 1, "features": {"f": 1}},
        ["features are enabled (form 2)", "f: 1"],
    ),
    "/latest_producer_id_block": (
        {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"},
        ["broker 1 has taken the producer ids 0 to 999"],
    ),
    "/log_dir_event_notification/log_dir_event_0000000000": (
        {"version": 1, "broker": 2, "event": 1},
        ["broker 2 has lost a log directory"],
    ),
    "/kafka-acl/Topic/a": (
        {
            "version": 1,
            "acls": [{"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}],
        },
        ["Allow User:a from *: Read"],
    ),
    "/consumers/g/ids/c": (
        {"version": 1, "subscription": {"t": 2}, "pattern": "static", "timestamp": "5"},
        ["consumer c of group g, static: t with 2 streams"],
    ),
    "/migration": (
        {
            "version": 0,
            "kraft_controller_id": 3000,
            "kraft_controller_epoch": 1,
            "kraft_metadata_offset": 5,
            "kraft_metadata_epoch": 2,
        },
        [
            "KRaft controller 3000, epoch 1, has claimed the cluster",
            "the first copy is complete (metadata offset 5, epoch 2)",
        ],
    ),
}


def described(path: str, data: bytes) -> list[str]:
    found = kind_of_znode(path)
    assert found is not None
    kind, names = found
    return kind.words(names, data)


@pytest.mark.parametrize("path", OTHERS)
def test_the_others_are_described(path: str) -> None:
    values, lines = OTHERS[path]
    assert described(path, json.dumps(values).encode()) == lines
    if path in ("/cluster/id", "/feature", "/latest_producer_id_block", "/migration"):
        more = json.dumps({**values, "unheard": 1}).encode()
        assert described(path, more) == [*lines, "keys that Kafka does not know: unheard"]
    for key in values:  # what Kafka needs must be there
        if key not in ("version", "timestamp", "pattern", "features"):
            with pytest.raises(FormatError, match=key):
                described(path, json.dumps({k: v for k, v in values.items() if k != key}).encode())


def test_a_token_has_no_secret_in_it() -> None:
    values = {
        "version": 1,
        "owner": "User:a",
        "renewers": [],
        "issueTimestamp": "1",
        "maxTimestamp": "2",
        "expiryTimestamp": "3",
        "tokenId": "t",
    }
    words = ["a token of User:a, valid until 1970-01-01 00:00:00 UTC, at most 1970-01-01 00:00:00 UTC"]
    assert described("/delegation_token/tokens/t", json.dumps(values).encode()) == words
    for key in values.keys() - {"version", "renewers"}:
        with pytest.raises(FormatError, match=key):
            described(
                "/delegation_token/tokens/t",
                json.dumps({k: v for k, v in values.items() if k != key}).encode(),
            )
    assert redact("/delegation_token/tokens/t", b"{}").startswith(b"(redacted: 2 bytes, sha256 ")


def test_secrets_are_redacted_and_nothing_else() -> None:
    data = b'{"version":1,"config":{"SCRAM-SHA-256":"salt=x","listener.name.in.ssl.keystore.password":"y","z":"1"}}'
    shown = json.loads(redact("/config/users/u", data))
    assert shown["config"] == {
        "SCRAM-SHA-256": "(redacted)",
        "listener.name.in.ssl.keystore.password": "(redacted)",
        "z": "1",
    }
    plain = b'{"version":1,"config":{"retention.ms":"1"}} '
    assert redact("/config/topics/t", plain) is plain
    assert not is_secret_key("retention.ms") and is_secret_key("sasl.jaas.config")


@given(
    st.sampled_from(KINDS),
    st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["version", "partitions", "topic", "isr", "0", "config", "status"]),
                inner,
                max_size=4,
            )
        ),
    ).map(lambda value: json.dumps(value).encode()),
)
def test_arbitrary_content_is_words_or_a_format_error(kind: object, data: bytes) -> None:
    names = dict.fromkeys(kind.pattern.groupindex, "x")  # type: ignore[attr-defined]
    try:
        lines = kind.words(names, data)  # type: ignore[attr-defined]
    except FormatError:
        return
    assert all(isinstance(line, str) for line in lines)


EXPORTS = [
    (name, path)
    for name in recordings("incidents")
    for path in sorted((recording(name)).rglob("znodes*.jsonl"))[:1]
]


@pytest.mark.parametrize(("name", "path"), EXPORTS, ids=[name for name, _ in EXPORTS])
def test_every_recorded_znode_with_content_is_known(name: str, path: object) -> None:
    from kctl.evidence.znodes import read_znodes

    known = 0
    for znode, exported in read_znodes(path).items():  # type: ignore[arg-type]
        found = kind_of_znode(znode)
        if exported.data and not znode.startswith("/zookeeper"):
            assert found, znode
            assert found[0].words(found[1], exported.data), znode
            known += 1
    assert known > 5


def paths_of(kind: ZnodeKind) -> Iterator[str]:
    """A path that the row is for, with names that no other row spells out; with and without what is optional."""
    named = re.sub(r"\(\?P<(\w+)>\[\^/\]\+\)", r"any-\1", kind.pattern.pattern)
    for optional in ("", r"\1"):
        yield re.sub(r"\(\?:([^)]*)\)\?", optional, named)


def shadowed(kinds: Iterable[ZnodeKind]) -> list[tuple[str, str]]:
    """Pairs of a path and the earlier row that takes it from the row that it belongs to."""
    seen: list[ZnodeKind] = []
    found = []
    for kind in kinds:
        for path in paths_of(kind):
            assert kind.pattern.fullmatch(path), path
            found += [(path, earlier.name) for earlier in seen if earlier.pattern.fullmatch(path)]
        seen.append(kind)
    return found


def test_no_row_of_the_catalogue_is_shadowed_by_one_before_it() -> None:
    """A row that matches more comes behind those that it would take paths from."""
    assert shadowed(KINDS) == []
    general = next(kind for kind in KINDS if kind.name == "configuration")
    assert (
        shadowed([general, *(kind for kind in KINDS if kind is not general)])
        == [("/config/changes/config_change_any-number", "configuration")] * 2
    )
    assert shadowed([*KINDS, KINDS[0]._replace(name="again")]) == [("/brokers/ids/any-id", "broker")] * 2
