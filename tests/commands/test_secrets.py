"""Distinct secrets planted in everything that kctl reads; no command prints or writes one of them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from formats.log.record_batch import Record, write_batch
from formats.messages.cluster_metadata import MetadataRecord, write_metadata_record
from kctl.stores import file_systems
from tests.conftest import kctl

PLANT = "planted-secret"
CLUSTER = "W1mYKYRPRZqt8XjSxCjVnQ"


def plant(place: str) -> str:
    """A secret that tells where it was planted."""
    return f"{PLANT}-{place}"


def config(values: object) -> bytes:
    return json.dumps({"version": 1, "config": values}).encode()


def scram(place: str) -> str:
    return f"salt={plant(place + '-salt')},stored_key={plant(place + '-stored')},server_key=x,iterations=4096"


ZNODES: dict[str, bytes] = {
    "/cluster/id": json.dumps({"version": "1", "id": CLUSTER}).encode(),
    "/controller": b'{"version":1,"brokerid":1,"timestamp":"1"}',
    "/controller_epoch": b"1",
    "/brokers/ids/1": json.dumps(
        {"version": 4, "host": "a", "port": 9092, "jmx_port": -1, "timestamp": "1", "endpoints": ["PLAINTEXT://a:9092"],
         "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}}
    ).encode(),
    "/brokers/topics/orders": b'{"version":1,"partitions":{"0":[1]}}',
    "/brokers/topics/orders/partitions/0/state":
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
    "/config/brokers/1": config({
        "ssl.key.password": plant("broker"), "listener.name.internal.sasl.jaas.config": plant("jaas"),
        "ssl.keystore.key": plant("keystore-key"), "log.cleaner.threads": "1",
    }),
    "/config/brokers/2": config({"ssl.key.password": plant("torn")})[:-2],
    "/config/brokers/3": config({"a": {"ssl.key.password": plant("nested")}}),
    "/config/brokers/4": b'{"version":1,"config":{"x":"' + plant("duplicate").encode() + b'","x":"y"}}',
    "/config/users/alice": config({"SCRAM-SHA-512": scram("scram")}),
    "/config/users/bob": config({"SCRAM-SHA-256": scram("utf16")}).decode().encode("utf-16"),
    "/config/clients/app": config({"sasl.oauthbearer.client.credentials.client.secret": plant("oauth")}),
    "/config/topics/orders": config({"retention.ms": "1", "remote.x": f"s3://me:{plant('uri')}@bucket/x"}),
    "/delegation_token/tokens/t": json.dumps({"version": 1, "owner": "User:a", "hmac": plant("hmac")}).encode(),
    "/kafka/config/users/carol": config({"SCRAM-SHA-512": scram("chroot")}),
    "/connect/x": json.dumps({"a": [{"database.password": plant("connect")}]}).encode(),
}  # fmt: skip


def metadata_records() -> Iterator[MetadataRecord]:
    for type_, values in (
        ("CONFIG_RECORD", {"resource_type": 4, "resource_name": "1", "name": "ssl.key.password", "value": plant("config-record")}),
        ("CONFIG_RECORD", {"resource_type": 2, "resource_name": "orders", "name": "x", "value": f"s3://me:{plant('record-uri')}@b/x"}),
        ("USER_SCRAM_CREDENTIAL_RECORD", {"name": "dora", "mechanism": 2, "salt": plant("record-salt").encode(),
              "stored_key": plant("record-stored").encode(), "server_key": plant("record-server").encode(),
              "iterations": 4096}),
    ):  # fmt: skip
        yield MetadataRecord(type_, 0, values)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Evidence in which every value that ought to be kept is one of the plants."""
    folder = tmp_path / "evidence" / "broker-1"
    log = folder / "data" / "__cluster_metadata-0"
    log.mkdir(parents=True)
    (folder / "data" / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=" + CLUSTER + "\n")
    records = [
        Record(offset, 1_700_000_000_000, None, write_metadata_record(record))
        for offset, record in enumerate(metadata_records())
    ]
    (log / f"{0:020d}.log").write_bytes(write_batch(records))
    orders = folder / "data" / "orders-0"
    orders.mkdir()
    (orders / f"{0:020d}.log").write_bytes(write_batch([Record(0, 1_700_000_000_000, b"k", b"v")]))
    rows = [
        {"path": path, "data": base64.b64encode(data).decode(), "version": 1, "cversion": 0, "czxid": 2, "mzxid": 2,
         "pzxid": 2, "ctime": 1, "mtime": 1, "ephemeralOwner": 0, "numChildren": 0, "dataLength": len(data), "acl": []}
        for path, data in ZNODES.items()
    ]  # fmt: skip
    (tmp_path / "evidence" / "znodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "evidence"


def plants_in(data: bytes) -> set[str]:
    """The plants in printed or written bytes, in clear, in base64 of any alignment, or in UTF-16."""
    texts = [data, data.replace(b"\0", b"")]
    for run in re.findall(rb"[A-Za-z0-9+/]{16,}={0,2}", data):
        for shift in range(4):
            piece = run[shift:]
            texts.append(base64.b64decode(piece[: len(piece) // 4 * 4] or b"", validate=False))
    return {found.decode() for text in texts for found in re.findall(rb"planted-secret-[\w-]+", text)}


COMMANDS = (
    "znode tree --snapshot {z}",
    *(f"znode show --snapshot {{z}} {path}" for path in ZNODES),
    "config get --snapshot {z} --entity-type brokers",
    "config get --snapshot {z} --entity-type users",
    "config get --snapshot {z} --entity-type clients",
    "config get --snapshot {z} --entity-type topics",
    "topic list --snapshot {z}",
    "topic describe --snapshot {z}",
    "topic config --snapshot {z} orders",
    "cluster describe --snapshot {z}",
    "cluster brokers --snapshot {z}",
    "cluster health --snapshot {z}",
    "cluster predict --snapshot {z} 1",
    "reassign status --snapshot {z}",
    "reassign throttle list --snapshot {z}",
    "segment dump --records {m}",
    "segment dump --records --values base64 {m}",
    "segment dump --records --values hex {m}",
    "segment dump --records --values json {m}",
    "segment verify {e}",
    "metadata show {e}",
    "replica compare {e}",
    "replica loss {e}",
    "epoch show {e}",
    "transactions list {e}",
    "offsets list {e}",
)
KAFKA_FORMAT = (
    "segment dump --format kafka --records {m}",
    "segment dump --format kafka --cluster-metadata-decoder {m}",
)


@pytest.mark.parametrize("line", [*COMMANDS, *KAFKA_FORMAT])
def test_no_command_prints_a_secret_of_the_evidence(planted: Path, line: str) -> None:
    metadata = planted / "broker-1/data/__cluster_metadata-0" / f"{0:020d}.log"
    words = line.format(z=planted / "znodes.jsonl", e=planted, m=metadata).split()
    for form in ("text",) if line in KAFKA_FORMAT else ("text", "jsonl", "json"):
        ran = kctl(*words, "--output", form)
        assert ran.status != 1, ran.err
        assert not plants_in(ran.out) | plants_in(ran.err.encode("utf-8", "surrogateescape")), form


def test_secrets_are_shown_where_they_are_asked_for(planted: Path) -> None:
    metadata = planted / "broker-1/data/__cluster_metadata-0" / f"{0:020d}.log"
    shown = kctl("segment", "dump", "--records", "--show-secrets", metadata, "--output", "jsonl")
    assert plant("config-record") in plants_in(shown.out)
    shown = kctl(
        "znode",
        "show",
        "--show-secrets",
        "--snapshot",
        planted / "znodes.jsonl",
        "/config/brokers/1",
        "--output",
        "jsonl",
    )
    assert plant("broker") in plants_in(shown.out)


def test_an_audit_writes_no_secret(planted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = kctl("audit", "run", planted, "--out", out, "--output", "jsonl")
    assert ran.status in (0, 3, 5), ran.err
    assert not plants_in(ran.out) | plants_in(ran.err.encode())
    import pyarrow.parquet as pq

    for path in out.rglob("*"):
        if path.suffix == ".parquet":
            assert not plants_in(json.dumps(pq.ParquetFile(path).read().to_pylist(), default=str).encode()), (
                path
            )
        elif path.is_file():
            assert not plants_in(path.read_bytes()), path


@pytest.mark.parametrize(
    "text",
    [
        f"[contexts.x]\nsasl_password = {plant('toml-bare')}\n",
        f'[contexts.x]\nsasl_password = "{plant("toml-torn")}\n',
        f'[contexts.x]\nsasl_password = ["{plant("toml-list")}"]\n',
        f"[contexts.x]\n{plant('toml-key')} == 1\n",
        f'[contexts.x]\nzookeeper = "me:{plant("toml-zookeeper")}@zk1:2181"\n',
        f'[contexts.x]\nsasl_password = "{plant("toml-password")}"\nread_only = "{plant("toml-type")}"\n',
    ],
)
def test_settings_are_not_echoed(tmp_path: Path, text: str) -> None:
    settings = tmp_path / "config.toml"
    settings.write_text(text)
    for words in (["doctor"], ["topic", "list"]):
        ran = kctl(
            "--context", "x", *words, env={"KCTL_CONFIG": str(settings), "KCTL_ANSWER_TIMEOUT": "0.2s"}
        )
        assert ran.status != 1
        assert not plants_in(ran.out) | plants_in(ran.err.encode())


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://user:{plant('s3')}@127.0.0.1:1/x", f"s3://bucket/x?secret_key={plant('query')}&access_key=a",
        f"abfss://c@a.dfs.core.windows.net/x?sv=1&sig={plant('sas')}", f"gs://bucket/x?token={plant('token')}",
        f"hdfs://{plant('hdfs')}@127.0.0.1:1/x", f"nosuch://user:{plant('scheme')}@host/x",
    ],
)  # fmt: skip
def test_the_secret_in_a_uri_is_not_in_an_error(
    planted: Path, tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_systems, "ATTEMPTS", 1)  # further ones only take time
    for words in (
        ["remote", "audit", planted, "--tier", uri],
        ["segment", "verify", uri],
        ["audit", "run", uri, "--out", tmp_path / "out"],
        ["audit", "run", planted, "--out", uri],
    ):
        ran = kctl(
            *words, env={"AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}
        )
        assert ran.status not in (0, 1), ran.err
        assert not plants_in(ran.out) | plants_in(ran.err.encode()), words


def test_the_environment_that_doctor_shows_has_no_secret() -> None:
    env = {
        "KCTL_ZOOKEEPER": f"me:{plant('doctor')}@zk1:2181/kafka",
        "KCTL_SASL_PASSWORD": plant("doctor-sasl"),
    }
    for form in ("text", "jsonl"):
        ran = kctl("doctor", "--output", form, env=env)
        assert not plants_in(ran.out) | plants_in(ran.err.encode())


MODULE = "x.ScramLoginModule required"


@pytest.mark.parametrize(
    "text",
    [
        f'security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={MODULE} username="a" password="{plant("jaas-option")}";',
        f"security.protocol=SASL_PLAINTEXT\nsasl.jaas.config={MODULE} password={plant('jaas-torn')}",
        f"security.protocol=SASL_PLAINTEXT\nsasl.jaas.config={MODULE} password {plant('jaas-word')};",
        f"security.protocol=SSL\nssl.key.password={plant('key')}\nssl.keystore.location=/none\nssl.truststore.password={plant('store')}",
        f"security.protocol=SSL\nssl.keystore.key=-----BEGIN PRIVATE KEY----- {plant('pem')} -----END PRIVATE KEY-----\n"
        f"ssl.keystore.certificate.chain=-----BEGIN CERTIFICATE----- {plant('chain')} -----END CERTIFICATE-----",
        f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.key={plant('bare')}",
        f"security.protocol=SSL\nssl.keystore.key={plant('long') * 40}",
        f"security.protocol=SSL\nssl.keystore.key=Bag Attributes {plant('bag')} -----BEGIN PRIVATE KEY----- {plant('pem')}",
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=http://me:{plant('url')}@127.0.0.1:1/\n"
        f'sasl.jaas.config={MODULE} clientId="a" clientSecret="{plant("oauth-option")}";',
        f"ssl.key.password=${{{plant('provider')}}}\nx={plant('other')}",
        f"request.timeout.ms={plant('number')}\nsecurity.protocol={plant('protocol')}",
    ],
)  # fmt: skip
def test_client_properties_are_not_echoed(tmp_path: Path, text: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)
    settings = tmp_path / "config.toml"
    env = {"KCTL_CONFIG": str(settings), "KCTL_ANSWER_TIMEOUT": "0.2s"}
    at = ["--bootstrap-server", "127.0.0.1:1", "--command-config", file]
    for words in (
        ["topic", "list", *at],
        ["doctor", *at],
        ["config-file", "import", file],
        ["config-file", "show"],
        ["config-file", "check", "--output", "jsonl"],
        ["doctor", "--context", "client", "--output", "jsonl"],
    ):
        ran = kctl(*words, env=env)
        assert ran.status != 1, ran.err
        assert not plants_in(ran.out) | plants_in(ran.err.encode()), words
