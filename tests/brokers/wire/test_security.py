"""TLS and SASL over Kafka's own protocol, each once, and what is said where they do not fit."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.brokers import cluster as rig
from tests.brokers.processes import free_ports
from tests.conftest import Ran, rows

pytestmark = pytest.mark.brokers
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MODULE = "org.apache.kafka.common.security"
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "PLAIN": "SASL_PLAINTEXT",
    "SCRAM": "SASL_SSL",
    "MTLS": "SSL",
    "OAUTH": "SASL_PLAINTEXT",
    "LOST": "PLAINTEXT",  # advertised at a port where nobody listens
}


@dataclass
class Secured:
    """A broker with a listener of each kind."""

    ports: dict[str, int]
    folder: Path

    def __call__(self, listener: str, *args: object, host: str = "127.0.0.1", **env: str) -> Ran:
        return rows(
            *args,
            *("--bootstrap-server", f"{host}:{self.ports[listener]}", "--timeout", "12"),
            env={"KCTL_CONFIG": os.devnull + "/none", **env},
        )

    @property
    def ca(self) -> str:
        return str(self.folder / "ca.pem")


def certificates(folder: Path) -> None:
    """A CA, and a key and certificate of 127.0.0.1 that it has signed, in one file."""

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], check=True, cwd=folder, capture_output=True)

    (folder / "san.cnf").write_text("subjectAltName=IP:127.0.0.1\n")
    new = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test CA")
    openssl("req", *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san.cnf")
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.crt", *signed)
    both = (folder / "server.key").read_text() + (folder / "server.crt").read_text()
    (folder / "server.pem").write_text(both)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    certificates(folder)
    plaintext, quorum, nobody, *others = free_ports(3 + len(LISTENERS) - 1)
    ports = dict(zip(LISTENERS, [plaintext, *others], strict=True))
    where = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    kinds = ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items())
    properties = {
        "listeners": f"{where},CONTROLLER://127.0.0.1:{quorum}",
        "advertised.listeners": where.replace(f":{ports['LOST']}", f":{nobody}"),
        "listener.security.protocol.map": f"{kinds},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "server.pem",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": f'{MODULE}.plain.PlainLoginModule required user_ann="right";',
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": f"{MODULE}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";',
        "listener.name.mtls.ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": folder / "ca.pem",
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.scram.scram-sha-256.sasl.jaas.config": f"{MODULE}.scram.ScramLoginModule required;",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{MODULE}.scram.ScramLoginModule required;",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig, "free_ports", lambda count: [plaintext, quorum][:count])
        with rig.kraft_cluster("4.3", brokers=1, properties=properties) as c:
            for mechanism in SCRAM:
                c.tool(
                    "kafka.admin.ConfigCommand",
                    *("--bootstrap-server", c.bootstrap, "--alter", "--entity-type", "users"),
                    *("--entity-name", "ann", "--add-config", f"{mechanism}=[password=right]"),
                )
            yield Secured({**ports, "CONTROLLER": quorum, "nobody": nobody}, folder)


def test_tls(secured: Secured) -> None:
    ran = secured("TLS", "cluster", "describe", KCTL_TLS_CA=secured.ca)
    assert ran.status == 0 and ran.of("cluster")[0]["brokers"] == 1
    untrusted = secured("TLS", "cluster", "describe", KCTL_TLS="true")
    assert untrusted.status == 3 and "the certificate is not trusted" in untrusted.err
    plain = secured("PLAINTEXT", "cluster", "describe", KCTL_TLS_CA=secured.ca)
    assert plain.status == 3 and len(plain.errors) == 1


def test_certificates_on_both_sides(secured: Secured) -> None:
    own = {
        "KCTL_TLS_CERTIFICATE": str(secured.folder / "server.crt"),
        "KCTL_TLS_KEY": str(secured.folder / "server.key"),
    }
    ran = secured("MTLS", "cluster", "describe", KCTL_TLS_CA=secured.ca, **own)
    assert ran.status == 0 and ran.of("cluster")[0]["brokers"] == 1, ran.err
    without = secured("MTLS", "cluster", "describe", KCTL_TLS_CA=secured.ca)
    assert without.status == 3 and len(without.errors) == 1


@pytest.mark.parametrize(("listener", "mechanism"), [("PLAIN", "PLAIN"), *(("SCRAM", one) for one in SCRAM)])
def test_sasl(secured: Secured, listener: str, mechanism: str) -> None:
    env = {"KCTL_SASL_MECHANISM": mechanism, "KCTL_SASL_USERNAME": "ann", "KCTL_SASL_PASSWORD": "right"}
    env |= {"KCTL_TLS_CA": secured.ca} if listener == "SCRAM" else {}
    ran = secured(listener, "cluster", "describe", **env)
    assert ran.status == 0 and ran.of("cluster")[0]["brokers"] == 1, ran.err
    wrong = secured(listener, "cluster", "describe", **{**env, "KCTL_SASL_PASSWORD": "wrong"})
    assert wrong.status == 3 and "password" in wrong.err and len(wrong.errors) == 1


def test_client_properties_of_kafka(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    module = f"{MODULE}.scram.ScramLoginModule"
    text = (
        f"bootstrap.servers=127.0.0.1:{secured.ports['SCRAM']}\n"
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={module} required \\\n username="ann" password="right";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.ca}\nclient.id=ops\nacks=all\n"
    )
    file.write_text(text)
    file.chmod(0o600)
    env = {"KCTL_CONFIG": os.devnull + "/none"}
    ran = rows("cluster", "describe", "--command-config", file, env=env)
    assert ran.status == 0 and ran.of("cluster")[0]["brokers"] == 1, ran.err
    assert ran.err.splitlines() == [f"kctl: {file}: without effect in kctl: acks"]


def unsecured_token(name: str, lives: int) -> str:
    """A JWT without a signature, as brokers take it whose validator is the default one."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": name, "iat": now - 10, "exp": now + lives})
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return f"{'.'.join(texts)}."


def test_a_token_in_a_file(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(unsecured_token("ann", 600))
    file.chmod(0o600)
    env = {"KCTL_SASL_MECHANISM": "OAUTHBEARER", "KCTL_SASL_TOKEN_FILE": str(file)}
    ran = secured("OAUTH", "cluster", "describe", **env)
    assert ran.status == 0 and ran.of("cluster")[0]["brokers"] == 1, ran.err
    file.write_text(unsecured_token("ann", -5))
    expired = secured("OAUTH", "cluster", "describe", **env)
    assert "can be used: the token is not accepted: it expired 20" in expired.err
    assert expired.status == 3 and len(expired.errors) == 1, expired.err


SASL = {"KCTL_SASL_MECHANISM": "SCRAM-SHA-256", "KCTL_SASL_USERNAME": "ann", "KCTL_SASL_PASSWORD": "right"}


@pytest.mark.parametrize(
    ("listener", "host", "has_tls", "env", "cause"),
    [
        ("SCRAM", "127.0.0.1", False, {}, "it speaks TLS there, and the connection is in clear text"),
        ("PLAINTEXT", "127.0.0.1", True, {}, "it does not speak TLS there: the listener is PLAINTEXT"),
        ("PLAIN", "127.0.0.1", True, {}, "it does not speak TLS there: the listener is SASL_PLAINTEXT"),
        ("PLAINTEXT", "127.0.0.1", False, SASL, "the listener has no SASL, and SCRAM-SHA-256 is set"),
        ("TLS", "127.0.0.1", True, SASL, "the listener has no SASL, and SCRAM-SHA-256 is set"),
        ("PLAIN", "127.0.0.1", False, {}, "the listener requires a login by SASL: PLAIN"),
        ("PLAIN", "127.0.0.1", False, SASL, "the SASL mechanism is not enabled there: SCRAM-SHA-256; there are PLAIN"),
        ("MTLS", "127.0.0.1", True, {}, "it requires a client certificate, and none is set"),
        ("TLS", "localhost", True, {}, "its certificate is not for localhost, but for 127.0.0.1"),
        ("CONTROLLER", "127.0.0.1", False, {}, "that is a controller's listener, not a broker's"),
        ("LOST", "127.0.0.1", False, {}, "broker 1 advertises 127.0.0.1:{nobody}, which refuses connections"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(
    secured: Secured, listener: str, host: str, has_tls: bool, env: dict[str, str], cause: str
) -> None:
    env = env | ({"KCTL_TLS_CA": secured.ca} if has_tls else {})
    ran = secured(listener, "cluster", "describe", host=host, **env)
    where = f"{host}:{secured.ports[listener]}"
    cause = cause.format(nobody=secured.ports["nobody"])
    assert ran.status == 3
    assert ran.err.splitlines()[0] == f"kctl: no broker of {where} can be used: {cause}"
    assert len(ran.errors) == 1
