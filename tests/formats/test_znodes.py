"""Znodes of every version, and whatever else stands in one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.znode_catalogue import KINDS, kind_of_znode
from formats.znode_others import (
    parse_acl,
    parse_cluster_id,
    parse_consumer,
    parse_delegation_token,
    parse_feature,
    parse_log_dir_event,
    parse_migration,
    parse_producer_id_block,
)
from formats.znode_requests import (
    ConfigChange,
    Requested,
    format_election,
    format_reassignment,
    parse_config_change,
    parse_election,
    parse_reassignment,
)
from formats.znode_secrets import is_secret_key, redact
from formats.znodes import (
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


OTHERS = [
    (parse_cluster_id, {"version": "1", "id": "abc"}),
    (parse_feature, {"version": 2, "status": 1, "features": {"f": 1}}),
    (parse_producer_id_block, {"version": 1, "broker": 1, "block_start": "0", "block_end": "999"}),
    (parse_log_dir_event, {"version": 1, "broker": 2, "event": 1}),
    (
        parse_acl,
        {
            "version": 1,
            "acls": [{"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}],
        },
    ),
    (parse_consumer, {"version": 1, "subscription": {"t": 2}, "pattern": "static", "timestamp": "5"}),
    (
        parse_migration,
        {
            "version": 0,
            "kraft_controller_id": 3000,
            "kraft_controller_epoch": 1,
            "kraft_metadata_offset": 5,
            "kraft_metadata_epoch": 1,
        },
    ),
]


@pytest.mark.parametrize(("parse", "values"), OTHERS, ids=lambda x: getattr(x, "__name__", ""))
def test_the_others_survive(parse: object, values: dict[str, object]) -> None:
    found = parse(json.dumps(values).encode())  # type: ignore[operator]
    assert json.loads(found.encode()) == values
    if hasattr(found, "other"):
        more = json.dumps({**values, "unheard": 1}).encode()
        assert json.loads(parse(more).encode())["unheard"] == 1  # type: ignore[operator]


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
    assert parse_delegation_token(json.dumps(values).encode()).expiry_timestamp == 3
    assert redact("/delegation_token/tokens/t", b"{}") == b"(redacted)"


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
