"""What is said where brokers lack something: which Kafka has it."""

from __future__ import annotations

from pathlib import Path

from kctl.cluster.requests import REQUESTS, SINCE, needs
from kctl.cluster.versions import KafkaVersion, parse_version
from kctl.wire.protocol.messages import names
from kctl.wire.rights import right_for

SOURCES = Path(__file__).parents[3]


def sources() -> str:
    paths = [path for folder in ("kctl", "commands") for path in sorted((SOURCES / folder).rglob("*.py"))]
    return "\n".join(path.read_text() for path in paths if path.name != "requests.py")


def test_every_request_that_is_sent_is_in_the_table() -> None:
    answered = {name.removesuffix("Request") for name in names() if name.endswith("Request")}
    assert answered - REQUESTS.keys() == {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}
    assert REQUESTS.keys() <= answered


def test_nothing_is_listed_that_is_never_said() -> None:
    text = sources()
    for what in SINCE:
        kind = what.rpartition(" of ")
        assert f"'{what}'" in text or f'"{what}"' in text or f"{kind[0]} of {{kind}}" in text, what


def test_another_right_on_a_resource() -> None:
    assert str(right_for("OffsetDelete", 30, "g")) == "Delete on Group g"
    assert str(right_for("OffsetDelete", 29, "t")) == "Read on Topic t"
    assert str(right_for("Fetch", 29, "t")) == "Read on Topic t"
    assert right_for("DescribeCluster", 31) is None


def test_the_sentence() -> None:
    assert needs("DescribeShareGroupOffsets") == "DescribeShareGroupOffsets needs Kafka 4.1 (KIP-932)"
    assert needs("Metadata") == "Metadata needs Kafka 2.4"
    assert all(
        parse_version(version) >= KafkaVersion(2, 3)
        for version, _ in [*SINCE.values(), *((one.since, 0) for one in REQUESTS.values())]
    )
