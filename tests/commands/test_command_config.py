"""`--command-config` and `config-file import`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from commands.cli.connecting import answer_timeout
from commands.cli.frame import Frame
from tests.conftest import kctl

PROPERTIES = """\
bootstrap.servers=127.0.0.1:1
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="a\\\\"\u00fc;";
ssl.truststore.location=ca.pem
ssl.endpoint.identification.algorithm=
request.timeout.ms=2500
acks=all
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_bytes(PROPERTIES.encode("latin-1"))
    path.chmod(0o600)
    return path


def test_a_context_is_written_from_the_file(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "kctl" / "config.toml"
    env = {"KCTL_CONFIG": str(settings)}
    for name in ("prod", "eu west"):
        ran = kctl("config-file", "import", file, "--name", name, env=env)
        assert (ran.status, ran.out) == (0, f"{settings}\n".encode())
        assert ran.err == f"kctl: {file}: without effect in kctl: acks\n"
    assert settings.stat().st_mode & 0o777 == 0o600
    contexts = tomllib.loads(settings.read_text("utf-8"))["contexts"]
    assert contexts["eu west"] == contexts["prod"] == {
        "bootstrap_server": "127.0.0.1:1",
        "tls": True,
        "tls_ca": str(tmp_path / "ca.pem"),
        "tls_check_hostname": False,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "ann",
        "sasl_password": 'a"\u00fc;',
        "answer_timeout": "2.5s",
    }  # fmt: skip
    again = kctl("config-file", "import", file, "--name", "prod", env=env)
    assert again.status == 4 and "has a context 'prod' already" in again.err


def test_the_brokers_of_a_file_that_names_none(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    settings = tmp_path / "config.toml"
    env = {"KCTL_CONFIG": str(settings)}
    ran = kctl("config-file", "import", file, "--name", "without", env=env)
    assert ran.status == 0 and "has no bootstrap.servers" in ran.err
    ran = kctl("config-file", "import", file, "--name", "with", "--bootstrap-server", "kafka1:9093", env=env)
    assert (ran.status, ran.err) == (0, "")
    contexts = tomllib.loads(settings.read_text("utf-8"))["contexts"]
    assert contexts == {"without": {"tls": True}, "with": {"tls": True, "bootstrap_server": "kafka1:9093"}}


def test_a_command_connects_with_the_file_alone(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env = {"KCTL_CONFIG": str(tmp_path / "none")}
    ran = kctl("topic", "list", "--command-config", file, env=env)
    assert ran.status == 3
    assert ran.err.splitlines()[-2] == "kctl: tls_ca ca.pem: no such file or directory"
    other = kctl("topic", "list", "--command-config", tmp_path / "no.properties", env=env)
    assert other.status == 3 and "client properties" in other.err


def test_the_context_says_how_long_an_answer_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "config.toml"
    settings.write_text('default_context = "x"\n[contexts.x]\nanswer_timeout = "2.5s"\n')
    monkeypatch.setenv("KCTL_CONFIG", str(settings))
    monkeypatch.delenv("KCTL_ANSWER_TIMEOUT", raising=False)
    assert answer_timeout(Frame({})) == answer_timeout(Frame({}), 10.0) == 2.5
    monkeypatch.setenv("KCTL_ANSWER_TIMEOUT", "7")
    assert answer_timeout(Frame({})) == 7
