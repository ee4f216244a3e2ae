"""Causes of failed connections are told from what attempts said."""

from __future__ import annotations

import pytest

from kctl.wire.causes import cause_among, cause_of
from kctl.wire.protocol.sasl import SaslAuthenticationFailed

REFUSED = "SaslAuthenticationFailed: Authentication failed: Invalid username or password"
CUT_OFF = "TimeoutError: timed out"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OSError(111, "ECONNREFUSED"), "connection refused"),
        (OSError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED]"), "the certificate is not trusted"),
        (OSError("[SSL: WRONG_VERSION_NUMBER] wrong version number"), "it does not speak TLS there"),
        (TimeoutError("Timed out after 5 ms"), "no answer in time"),
        (
            SaslAuthenticationFailed("could not resolve the tenant: Connection refused"),
            "user or password is wrong",
        ),
        (
            OSError("Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] not valid for 'dns1'"),
            "the certificate is not trusted",
        ),
        (UnicodeError("encoding with 'idna' codec failed"), "the host name is not known"),
        (ValueError("something else\nand more"), "ValueError: something else"),
    ],
)
def test_causes_are_a_clause(error: Exception, cause: str) -> None:
    assert cause_of(error) == cause


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["TimeoutError: no answer in time", REFUSED, CUT_OFF], "user or password is wrong"),
        (["TimeoutError: no answer in time", CUT_OFF], "no answer in time"),
        (
            ["KafkaTimeoutError: x", "ECONNRESET"],
            "it ends the connection (are user, password and mechanism right?)",
        ),
        (["ValueError: what nobody knows"], "ValueError: what nobody knows"),
        (["Error: first", "what nobody knows"], "what nobody knows"),
    ],
)
def test_a_time_out_is_the_cause_where_nothing_else_is_said(words: list[str], cause: str) -> None:
    assert cause_among(words, with_sasl=True) == cause
