"""Tokens of an endpoint, and what a refused login means."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest

from kctl.errors import BadValue, KctlError
from kctl.wire.adapter import Access
from kctl.wire.logins import expiry_of, exposed_secrets, principal_of, refusal_of, tokens_of


class Endpoint(HTTPServer):
    """A token endpoint that answers one thing, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.answer = 200, b'{"access_token": "a.b.c", "expires_in": 3600}'
        self.requests: list[tuple[str | None, dict[str, list[str]]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/token"


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.requests.append((self.headers["Authorization"], form))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("no_proxy", "*")
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def access(url: str, **others: str) -> Access:
    return Access(
        "h:1",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_url=url,
        sasl_oauth_client_id="me",
        sasl_oauth_client_secret="s:ecret",
        **others,  # type: ignore[arg-type]
    )


def test_a_token_for_client_credentials_is_requested_once(endpoint: Endpoint) -> None:
    tokens = tokens_of(access(endpoint.url, sasl_oauth_scope="kafka admin"), ["h"])
    assert tokens is not None and (tokens(), tokens()) == ("a.b.c", "a.b.c")
    login = "Basic " + base64.b64encode(b"me:s:ecret").decode()
    assert endpoint.requests == [(login, {"grant_type": ["client_credentials"], "scope": ["kafka admin"]})]


def test_another_token_is_requested_before_the_first_expires(endpoint: Endpoint) -> None:
    endpoint.answer = b'{"access_token": "a", "expires_in": 0}'
    tokens = tokens_of(access(endpoint.url), ["h"])
    assert tokens is not None and tokens() == "a"
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    ("status", "answer", "sentence"),
    [
        (401, b'{"error": "invalid_client"}', "refuses the client: 401 invalid_client"),
        (403, b"<html>", "refuses the client: 403"),
        (302, b"", "refuses the client: 302"),
        (200, b"{}", "answers without an access_token"),
        (200, b'["a"]', "answers without an access_token"),
    ],
)
def test_refusals_of_an_endpoint(endpoint: Endpoint, status: int, answer: bytes, sentence: str) -> None:
    endpoint.status, endpoint.answer = status, answer
    with pytest.raises(KctlError) as refused:
        tokens_of(access(endpoint.url), ["h"])
    assert refused.value.message == f"token endpoint {endpoint.url} {sentence}"


def test_mistakes_in_the_settings_of_an_endpoint() -> None:
    with pytest.raises(
        KctlError, match=r"^token endpoint http://127.0.0.1:1/ cannot be used: connection refused; "
    ):
        tokens_of(access("http://127.0.0.1:1/"), ["h"])
    with pytest.raises(BadValue, match=r"^'ftp://x' is not the URL of a token endpoint; "):
        tokens_of(access("ftp://x"), ["h"])
    with pytest.raises(BadValue, match=r"^a token endpoint needs sasl_oauth_client_secret; "):
        tokens_of(access("http://127.0.0.1:1/")._replace(sasl_oauth_client_secret=None), ["h"])
    assert list(exposed_secrets(access("http://idp/token"), ["h"])) == [
        "the client's secret is sent to idp in clear text: the token endpoint is without TLS"
    ]


def jwt(**claims: object) -> str:
    return f"x.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.x"


def test_when_a_token_expires() -> None:
    assert expiry_of(jwt(exp=12)) == 12 and expiry_of(jwt(exp=1.5)) == 1.5
    for token in ("opaque", jwt(), jwt(exp="12"), "a.b.c", "a.é.c", "a.W10.c"):
        assert expiry_of(token) is None


@pytest.mark.parametrize(
    ("mechanism", "message", "token", "clause"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password", None, "user or password is wrong"),
        ("SCRAM-SHA-512", "Authentication failed during authentication due to invalid credentials with SASL mechanism "
         "SCRAM-SHA-512 (backoff 0.10 secs)", None, "user or password is wrong"),
        ("PLAIN", "the account is locked", None, "the login is refused: the account is locked"),
        ("GSSAPI", "no such principal", None, "the Kerberos ticket is not accepted: no such principal"),
        ("OAUTHBEARER", '{"status":"invalid_token"}', "opaque", 'the token is not accepted: {"status":"invalid_token"}'),
        ("OAUTHBEARER", '{"status":"invalid_token"}', jwt(exp=1_700_000_000),
         "the token is not accepted: it expired 2023-11-14 22:13:20 UTC"),
        ("OAUTHBEARER", '{"status":"invalid_token"}', jwt(exp=253_402_300_799),
         'the token is not accepted: {"status":"invalid_token"}'),
    ],
)  # fmt: skip
def test_refused_logins(mechanism: str, message: str, token: str | None, clause: str) -> None:
    assert refusal_of(mechanism, message, None if token is None else lambda: token) == clause


def test_the_signer_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Access("b-1.x.kafka.eu-west-1.amazonaws.com:9098", sasl_mechanism="AWS_MSK_IAM", tls=True)

    hosts = ["b-1.x.kafka.eu-west-1.amazonaws.com"]
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(BadValue, match=r"^SASL mechanism AWS_MSK_IAM needs the extra `msk`; "):
        tokens_of(settings, hosts)
    signer = SimpleNamespace(
        generate_auth_token=lambda region: (f"for {region}", 1),
        generate_auth_token_from_profile=lambda region, profile: (f"for {profile} in {region}", 1),
    )
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", SimpleNamespace(MSKAuthTokenProvider=signer))
    tokens = tokens_of(settings, hosts)
    assert tokens is not None and tokens() == "for eu-west-1"
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    of_profile = tokens_of(settings._replace(sasl_aws_profile="ops"), ["kafka1"])
    assert of_profile is not None and of_profile() == "for ops in us-east-1"


@pytest.mark.parametrize(
    ("settings", "principal"),
    [
        ({}, "User:ANONYMOUS"),
        ({"tls": True}, "User:ANONYMOUS"),
        ({"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "ann"}, "User:ann"),
        ({"sasl_mechanism": "PLAIN", "sasl_username": "ann", "tls_certificate": "own.pem"}, "User:ann"),
        # What brokers make of a certificate, a ticket or a role is a matter of their settings.
        ({"tls_certificate": "own.pem"}, "this connection's principal"),
        ({"sasl_mechanism": "GSSAPI", "sasl_username": "ann"}, "this connection's principal"),
    ],
)
def test_the_principal_of_a_login(settings: dict[str, Any], principal: str) -> None:
    assert principal_of(Access("b:9092", **settings)) == principal


def test_the_principal_of_a_token_is_its_subject() -> None:
    access = Access("b:9092", sasl_mechanism="OAUTHBEARER")
    assert principal_of(access, lambda: jwt(sub="ann")) == "User:ann"
    for token in (jwt(iss="nobody"), "no.token", "a.b.c"):
        assert principal_of(access, lambda token=token: token) == "this connection's principal"  # type: ignore[misc]
