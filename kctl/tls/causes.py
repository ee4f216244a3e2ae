"""Why TLS is refused: by the certificate of the server, or by an alert that it sends.

Source: RFC 8446 section 6.2; OpenSSL's names of alerts and of verification errors
"""

import re
import socket
import ssl
import time
from typing import Any

from kctl.model import Diagnosis
from kctl.times import utc_text
from kctl.tls.files import without_checks

NO_TIME_CHECK = 0x200000  # X509_V_FLAG_NO_CHECK_TIME of OpenSSL
ALERT_TIME = 0.5  # seconds
SET_TLS = "set tls = true or tls_ca in the context, or security.protocol in the client properties"
SET_CERTIFICATE = "set tls_certificate and tls_key, or ssl.keystore.location in the client properties"
ALERT = re.compile(r"ALERT_(\w+)")


def connected(host: str, port: int, end: float) -> socket.socket:
    """A connection; no wait on it is longer than until `end`, a moment of time.monotonic()."""
    left = max(0.1, end - time.monotonic())
    sock = socket.create_connection((host, port), timeout=left)
    sock.settimeout(left)
    return sock


def certificate_refused(
    host: str, port: int, context: ssl.SSLContext, refused: ssl.SSLCertVerificationError, seconds: float
) -> Diagnosis:
    """What is wrong with the certificate of a server: its names, its dates, or who signed it."""
    text = refused.verify_message
    certificate = _certificate(host, port, context, seconds)
    if "expired" in text or "not yet valid" in text:
        which = "notAfter" if "expired" in text else "notBefore"
        verb = "expired" if which == "notAfter" else "is valid only from"
        date = f" {_moment(str(certificate[which]))}" if which in certificate else ""
        return Diagnosis(
            f"its certificate {verb}{date}" if date else f"its certificate is not accepted: {text}",
            "renew the certificate of the server, and check the clock of this machine",
        )
    if "mismatch" in text or "not valid for" in text:
        names = [name for _, name in certificate.get("subjectAltName", ())]
        listed = f", but for {', '.join(names[:8])}" if names else ""
        return Diagnosis(
            f"its certificate is not for {host}{listed}",
            "connect by a name of the certificate, or add the name to the certificate of the server",
        )
    return Diagnosis(
        f"the certificate is not trusted: {text}",
        "set tls_ca (ssl.truststore.location) to the authority that signed it",
    )


def _certificate(host: str, port: int, context: ssl.SSLContext, seconds: float) -> dict[str, Any]:
    """The server's certificate, looked at without checking names and dates; empty where its chain is not trusted."""
    relaxed = without_checks()
    relaxed.load_default_certs()
    for der in context.get_ca_certs(binary_form=True):
        relaxed.load_verify_locations(cadata=der)
    relaxed.verify_mode = ssl.CERT_REQUIRED
    relaxed.verify_flags |= NO_TIME_CHECK
    try:
        with (
            connected(host, port, time.monotonic() + seconds) as sock,
            relaxed.wrap_socket(sock, server_hostname=host) as encrypted,
        ):
            return dict(encrypted.getpeercert() or {})
    except (OSError, ValueError):
        return {}


def _moment(text: str) -> str:
    return utc_text(ssl.cert_time_to_seconds(text) * 1000)


def alert_of(failure: ssl.SSLError, *, has_certificate: bool) -> Diagnosis | None:
    """What an alert of the server says about the client's certificate; None for other failures."""
    match = ALERT.search(failure.reason or "")
    if match is None:
        return None
    alert = match[1]
    if alert in ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE") and not has_certificate:
        return Diagnosis("it requires a client certificate, and none is set", SET_CERTIFICATE)
    if alert == "CERTIFICATE_EXPIRED":
        return Diagnosis("it refuses the client certificate: expired", "renew the client certificate")
    if has_certificate and alert in ("UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "BAD_CERTIFICATE", "ACCESS_DENIED"):
        words = alert.lower().replace("_", " ")
        return Diagnosis(
            f"it refuses the client certificate: {words}",
            "present one that an authority in the server's truststore has signed",
        )
    return Diagnosis(
        f"it refuses the TLS connection: {alert.lower().replace('_', ' ')}",
        "check which TLS versions and ciphers the server allows",
    )


def speaks_tls(host: str, port: int, end: float) -> bool:
    """Whether a listener speaks TLS, whatever its certificate is."""
    try:
        with connected(host, port, end) as sock, without_checks().wrap_socket(sock, server_hostname=host):
            return True
    except ssl.SSLError as failure:
        return ALERT.search(failure.reason or "") is not None
    except OSError:
        return False


IN_CLEAR_TEXT = Diagnosis("it speaks TLS there, and the connection is in clear text", SET_TLS)


def alert_after_handshake(
    host: str, port: int, context: ssl.SSLContext, end: float, *, has_certificate: bool
) -> Diagnosis | None:
    """The alert that a server sends once it has the client's certificate, if it does.

    Nothing is sent: what the server answers to that would overtake its alert.
    """
    try:
        with (
            connected(host, port, end) as sock,
            context.wrap_socket(sock, server_hostname=host.rstrip(".")) as encrypted,
        ):
            encrypted.settimeout(ALERT_TIME)
            encrypted.recv(1)
    except ssl.SSLError as failure:
        return alert_of(failure, has_certificate=has_certificate)
    except OSError:
        pass
    return None
