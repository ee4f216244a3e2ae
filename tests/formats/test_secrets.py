"""What is secret is not shown, whatever holds it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.secrets import REDACTED, is_secret_key, redact, redact_text, redact_values, withheld

SECRET = "hunter2-plant"

SECRET_KEYS = """
ssl.key.password ssl.keystore.password ssl.truststore.password ssl.keystore.key ssl.keystore.certificate.chain
ssl.truststore.certificates sasl.jaas.config listener.name.internal.scram-sha-512.sasl.jaas.config
listener.name.external.ssl.key.password SCRAM-SHA-256 SCRAM-SHA-512 delegation.token.master.key
delegation.token.secret.key password.encoder.secret password.encoder.old.secret zookeeper.ssl.keystore.password
sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.assertion.private.key.passphrase basic.auth.user.info
rsm.config.storage.aws.secret.access.key rsm.config.azure.account.key azure.sas.token azure.storage.connection.string
confluent.basic.auth.credentials database.password connection.passwd hmac stored_key server_key salt
fs.azure.account.key.me.dfs.core.windows.net
"""
PLAIN_KEYS = """
retention.ms cleanup.policy ssl.keystore.location ssl.keystore.type ssl.truststore.location sasl.enabled.mechanisms
sasl.oauthbearer.token.endpoint.url delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
password.encoder.iterations.x min.insync.replicas ssl.client.auth sasl.kerberos.service.name key value
log.message.timestamp.type producer_byte_rate leader.replication.throttled.replicas
"""


@pytest.mark.parametrize("key", SECRET_KEYS.split())
def test_a_key_of_type_password_is_secret(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", [key for key in PLAIN_KEYS.split() if "password" not in key])
def test_an_ordinary_key_is_not(key: str) -> None:
    assert not is_secret_key(key)


def config(values: object) -> bytes:
    return json.dumps({"version": 1, "config": values}).encode()


TORN = config({"ssl.key.password": SECRET})
ZNODES = {
    "a scram credential": ("/config/users/alice", config({"SCRAM-SHA-512": f"salt={SECRET},stored_key=x"})),
    "a broker password": ("/config/brokers/1", config({"listener.name.a.ssl.key.password": SECRET})),
    "below a chroot": ("/a/b/c/config/brokers/1", config({"ssl.key.password": SECRET})),
    "a token": ("/delegation_token/tokens/x", SECRET.encode()),
    "a token below a chroot": ("/a/b/delegation_token/tokens/x", SECRET.encode()),
    "torn": ("/config/users/alice", TORN[:-3]),
    "torn without a telling word": (
        "/config/users/alice",
        f'{{"version":1,"config":{{"x":"{SECRET}'.encode(),
    ),
    "duplicate": ("/config/users/alice", b'{"version":1,"config":{"x":"' + SECRET.encode() + b'","x":"y"}}'),
    "two configs": ("/config/users/alice", b'{"config":{"a":"' + SECRET.encode() + b'"},"config":{}}'),
    "nested": ("/config/brokers/1", config({"a": {"b": {"ssl.key.password": SECRET}}})),
    "a list": ("/config/brokers/1", json.dumps([{"ssl.key.password": SECRET}]).encode()),
    "utf-16": ("/config/brokers/1", TORN.decode().encode("utf-16")),
    "utf-16 elsewhere": ("/somewhere", TORN.decode().encode("utf-16-le")),
    "deep": ("/config/brokers/1", b"[" * 100_000 + SECRET.encode()),
    "elsewhere": ("/connect/tasks/1", json.dumps({"a": [{"database.password": SECRET}]}).encode()),
    "in a value": ("/config/topics/t", config({"x": f"s3://me:{SECRET}@bucket/y"})),
}


@pytest.mark.parametrize(("path", "data"), ZNODES.values(), ids=ZNODES)
def test_a_secret_in_a_znode_is_not_shown(path: str, data: bytes) -> None:
    shown = redact(path, data)
    assert SECRET.encode() not in shown.replace(b"\0", b"")
    assert REDACTED[:-1].encode() in shown


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/config/topics/t", config({"retention.ms": "1", "cleanup.policy": "compact"})),
        ("/brokers/ids/1", b'{"host":"a","port":9092,"endpoints":["PLAINTEXT://a:9092"]}'),
        ("/brokers/topics/t", b'{"version":2,"partitions":{"0":[1,2]}}'),
        ("/controller", b"\xff\xfe not JSON"),
        ("/config/topics/t", b""),
    ],
)
def test_what_holds_no_secret_stays_byte_for_byte(path: str, data: bytes) -> None:
    assert redact(path, data) is data


TEXTS = [
    f"s3a://user:{SECRET}@bucket/prefix", f"https://user:{SECRET}@host/x?a=1", f"hdfs://{SECRET}@nn:8020/x",
    f"abfss://c@a.dfs.core.windows.net/x?sv=2024&sig={SECRET}&se=1", f"https://h/x?X-Amz-Signature={SECRET}",
    f"https://h/x?AWSAccessKeyId={SECRET}&Expires=1", f"https://h/?token={SECRET}", f"s3://b?secret_key={SECRET}&region=x",
    f"gcs://b?key={SECRET}", f"az://c?connection_string={SECRET}&x=1", f"s3://b?x=1&secret%5Fkey={SECRET}",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET};EndpointSuffix=x",
    f"SharedAccessSignature={SECRET}", f'PlainLoginModule required username="u" password="{SECRET} x";',
    f"user:{SECRET}@zk1:2181,zk2:2181/kafka", f"ssl.key.password = {SECRET}", f"client_secret: {SECRET}",
        f"credentials: {SECRET}", f"AlterUserScramCredentials={SECRET}",
    f"s3a://AKIA:a/{SECRET}@bucket/x", f"s3a://AKIA:{SECRET}/b@bucket", f"s3://me:{SECRET}#b@bucket", f"s3://me:{SECRET}?b@bucket",
    f"mongodb://me:a@{SECRET}@host/x", f"sc://host:15002/;token={SECRET};user_id=me", f"secret_key%3D{SECRET}%26region%3Dx",
    f'{{"password": "{SECRET} x"}}', f"{{'api_key'= '{SECRET} x'}}", f"Authorization: Bearer {SECRET}", f"authorization=Basic {SECRET}",
    f"fs.azure.account.key.me.dfs.core.windows.net={SECRET}", f"jdbc:oracle:thin:scott/{SECRET}@//host:1521/x",
    f"got Basic {SECRET}0==", f"sent Bearer 0.{SECRET}",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_in_a_text_is_not_shown(text: str) -> None:
    shown = redact_text(f"cannot open {text}: denied")
    assert SECRET not in shown
    assert shown.startswith("cannot open ")
    assert redact_text(shown) == shown


@pytest.mark.parametrize(
    "text",
    ["zk1:2181,zk2:2181/kafka", "orders-0/00000000000000000000.log", "s3://bucket/prefix?region=eu-west-1", "a@b.c",
     "broker 1 at kafka1:9092: connection refused", "/data/kafka@home/x", "the password is wrong", "http://host:8020/x@y",
     "zookeeper://zk1:2181,zk2:2181/a@b", "PLAINTEXT://a:9092",
     "topic secret: not authorized", "group old-passwords: not there",
     "broker 2 does not answer DescribeUserScramCredentials: no answer in time", "AlterUserScramCredentials: refused", "the basic information of a bearer token", "Basic authentication is on"],
)  # fmt: skip
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact_text(text) == text


def test_fields_of_records_that_name_a_secret() -> None:
    scram = {
        "name": "alice",
        "mechanism": 1,
        "salt": SECRET,
        "stored_key": SECRET,
        "server_key": SECRET,
        "iterations": 4096,
    }
    assert SECRET not in json.dumps(redact_values(scram))
    pair = {"resource_type": 4, "name": "ssl.key.password", "value": SECRET}
    assert redact_values(pair) == {**pair, "value": REDACTED}
    plain = {"name": "retention.ms", "value": "1"}
    assert redact_values(plain) is plain


@given(st.binary(max_size=200), st.sampled_from(["/config/users/x", "/a/config/brokers/1", "/x"]))
def test_any_bytes_are_redacted_without_a_failure(data: bytes, path: str) -> None:
    shown = redact(path, data)
    assert shown == data or REDACTED[:-1].encode() in shown


def test_what_is_withheld_can_be_told_again() -> None:
    assert withheld(b"x") != withheld(b"y")


@pytest.mark.parametrize(
    "text",
    [
        "conf/passwords.yaml:12: partitions is '0'",
        "first at secrets.yml:3",
        "credentials.json:7",
        "client-secret.properties:4: not a number",
        "run `export DB_PASSWORD=...`",
        "give `--set secret=VALUE`, or write `variables: {secret: VALUE}`",
    ],
)
def test_a_line_of_a_file_and_what_stands_for_a_secret_are_none(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "text", ["ssl.key.password:12345", "password=VALUE-1", "secret: ...x", "a.password.json:5x"]
)
def test_what_looks_alike_is_one(text: str) -> None:
    assert redact_text(text).endswith(REDACTED)
