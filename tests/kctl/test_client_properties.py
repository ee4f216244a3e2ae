"""Client properties of Kafka as settings: what is read, what is named, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kctl.client_properties import settings_of
from kctl.errors import BadValue, KctlError
from kctl.settings import Context, read_context

SECURITY = "org.apache.kafka.common.security"
OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
OAUTH_MODULE = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required"
MSK = "software.amazon.msk.auth.iam"


@pytest.mark.parametrize(
    ("properties", "settings", "notes"),
    [
        ({}, {}, []),
        ({"bootstrap.servers": "a:1,b:2", "client.id": "ops", "request.timeout.ms": "1500"},
         {"bootstrap_server": "a:1,b:2", "client_id": "ops", "answer_timeout": "1.5s"}, []),
        ({"security.protocol": "ssl", "ssl.truststore.location": "/ca.jks", "ssl.truststore.password": "p",
          "ssl.truststore.type": "JKS", "ssl.endpoint.identification.algorithm": ""},
         {"tls": True, "tls_ca": "/ca.jks", "tls_ca_password": "p", "tls_check_hostname": False}, []),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/me.p12", "ssl.keystore.password": "s",
          "ssl.key.password": "k", "ssl.endpoint.identification.algorithm": "https"},
         {"tls": True, "tls_certificate": "/me.p12", "tls_certificate_password": "s", "tls_key_password": "k"}, []),
        ({"security.protocol": "SSL", "ssl.keystore.key": "-----BEGIN K", "ssl.keystore.certificate.chain": "-----BEGIN C",
          "ssl.truststore.certificates": "-----BEGIN A"},
         {"tls": True, "tls_key": "-----BEGIN K", "tls_certificate": "-----BEGIN C", "tls_ca": "-----BEGIN A"}, []),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
          "sasl.jaas.config": f'{SECURITY}.scram.ScramLoginModule required username="ann" password="a;b" tokenauth=true;'},
         {"tls": True, "sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "ann", "sasl_password": "a;b"},
         ["kctl does not follow these options of sasl.jaas.config: tokenauth"]),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.kerberos.service.name": "broker",
          "sasl.jaas.config": 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="a@B";'},
         {"sasl_mechanism": "GSSAPI", "sasl_kerberos_service": "broker"},
         ["kctl takes the ticket that kinit got: kinit -kt /k a@B"]),
        ({**OAUTH, "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
          "sasl.login.callback.handler.class": f"{SECURITY}.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
          "sasl.jaas.config": f'{OAUTH_MODULE} clientId="c" clientSecret="s" scope="x" extension_logicalCluster="lkc";'},
         {"tls": True, "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_url": "https://idp/token", "sasl_oauth_client_id": "c",
          "sasl_oauth_client_secret": "s", "sasl_oauth_scope": "x", "sasl_oauth_extensions": "logicalCluster=lkc"}, []),
        ({**OAUTH, "sasl.oauthbearer.token.endpoint.url": "file:///run/to%20ken", "sasl.jaas.config": f"{OAUTH_MODULE};"},
         {"tls": True, "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_url": None, "sasl_token_file": "/run/to ken"}, []),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM",
          "sasl.client.callback.handler.class": f"{MSK}.IAMClientCallbackHandler",
          "sasl.jaas.config": f'{MSK}.IAMLoginModule required awsProfileName="ops";'},
         {"tls": True, "sasl_mechanism": "AWS_MSK_IAM", "sasl_aws_profile": "ops"}, []),
        ({"security.protocol": "PLAINTEXT", "sasl.mechanism": "PLAIN", "ssl.truststore.location": "/ca.pem"}, {},
         ["without effect with security.protocol=PLAINTEXT: ssl.truststore.location",
          "without effect with security.protocol=PLAINTEXT: sasl.mechanism"]),
        ({"acks": "all", "ssl.cipher.suites": "x", "group.id": "g"}, {},
         ["without effect with security.protocol=PLAINTEXT: ssl.cipher.suites", "without effect in kctl: acks, group.id"]),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "x"}, {"tls": True}, ["kctl does not follow ssl.cipher.suites"]),
    ],
)  # fmt: skip
def test_settings(properties: dict[str, str], settings: dict[str, Any], notes: list[str]) -> None:
    sentences: list[str] = []
    assert settings_of(properties, sentences.append) == settings
    assert sentences == notes


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is not one of Kafka's"),
        ({"request.timeout.ms": "30s"}, "request.timeout.ms is not a number of milliseconds"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "http"},
         "ssl.endpoint.identification.algorithm is neither https nor empty"),
        ({"ssl.key.password": "${file:/x:key}"}, "ssl.key.password is read by a config provider, which kctl does not have"),
        ({"security.protocol": "SASL_SSL", "sasl.jaas.config": "secret"}, "sasl.jaas.config: no semicolon at the end"),
        ({**OAUTH, "sasl.login.callback.handler.class": "x.Y"},
         "sasl.login.callback.handler.class: x.Y is a class that kctl does not have"),
        ({**OAUTH, "sasl.jaas.config": f'{OAUTH_MODULE} unsecuredLoginStringClaim_sub="a";'},
         "sasl.jaas.config: kctl makes no unsecured tokens"),
    ],
)  # fmt: skip
def test_refusals(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadValue) as refused:
        settings_of(properties, lambda _: None)
    assert refused.value.message == sentence


def context_of(
    folder: Path, properties: str, context: str = "", environ: dict[str, str] | None = None, **given: str
) -> tuple[Context, list[str]]:
    """The context where a file of properties is given, with what is noted."""
    (folder / "client.properties").write_bytes(properties.encode("latin-1"))
    (folder / "config.toml").write_text(f'default_context = "c"\n[contexts.c]\n{context}\n')
    notes: list[str] = []
    environ = {"KCTL_CONFIG": str(folder / "config.toml"), **(environ or {})}
    return read_context(given, warn=notes.append, environ=environ), notes


def test_a_given_file_replaces_the_security_of_the_context(tmp_path: Path) -> None:
    file = str(tmp_path / "client.properties")
    inside = 'zookeeper = "zk:1"\ntls_ca = "/zk.pem"\nsasl_mechanism = "DIGEST-MD5"\nbootstrap_server = "x:1"'
    context, _ = context_of(tmp_path, "bootstrap.servers=a:1", inside, command_config=file)
    assert (context.bootstrap_server, context.tls_ca, context.sasl_mechanism) == ("a:1", None, None)
    assert context.for_zookeeper is not None
    assert (context.for_zookeeper.tls_ca, context.for_zookeeper.sasl_mechanism) == ("/zk.pem", "DIGEST-MD5")


def test_the_context_stands_above_its_own_file_and_the_environment_above_both(tmp_path: Path) -> None:
    properties = (
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.location=/a.pem\nclient.id=a"
    )
    inside = f'command_config = "{tmp_path}/client.properties"\ntls_ca = "/b.pem"'
    context, _ = context_of(tmp_path, properties, inside, {"KCTL_SASL_PASSWORD": "p"})
    assert (context.sasl_mechanism, context.tls_ca, context.sasl_password) == ("PLAIN", "/b.pem", "p")


def test_bytes_are_latin_1_as_java_reads_them(tmp_path: Path) -> None:
    jaas = 'x.PlainLoginModule required username="ä" password="\\u20ac";'
    text = f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n"
    context, notes = context_of(tmp_path, text, command_config=str(tmp_path / "client.properties"))
    assert (context.sasl_username, context.sasl_password) == ("ä", "€")
    assert notes == [
        f"others can read {tmp_path}/client.properties, and it contains a password; run chmod 600"
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KctlError, match=r"client properties .*none: no such file"):
        context_of(tmp_path, "", command_config=str(tmp_path / "none"))
    with pytest.raises(BadValue, match=r"client properties .*: malformed \\uxxxx encoding at line 1"):
        context_of(tmp_path, "a=\\u12", command_config=str(tmp_path / "client.properties"))
