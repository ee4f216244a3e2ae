"""Logins by SASL: what each mechanism needs, where tokens come from, and what a refusal means.

Source: KIP-768 and clients/src/main/java/org/apache/kafka/common/security/oauthbearer/DefaultJwtRetriever.java @ 4.1.0;
RFC 6749 sections 4.4 and 5 (client credentials), RFC 7519 section 4.1.4 (`exp`)
"""

from __future__ import annotations

import os
import re
import time
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any
from urllib.parse import urlencode, urlsplit

from formats import bounded_json
from formats.secrets import redact_text
from kctl.cluster.rights import UNKNOWN_PRINCIPAL
from kctl.errors import BadValue, KctlError, file_error, reason_of
from kctl.files import read_text
from kctl.settings import is_open_to_others
from kctl.times import utc_text
from kctl.wire.access import Access
from kctl.wire.causes import NOT_LET_IN

LOOPBACK = re.compile(r"localhost|127\.\d+\.\d+\.\d+|::1", re.IGNORECASE)
# The settings that each mechanism needs; of several in one text, one.
MECHANISMS = {
    "PLAIN": ("sasl_username", "sasl_password"),
    "SCRAM-SHA-256": ("sasl_username", "sasl_password"),
    "SCRAM-SHA-512": ("sasl_username", "sasl_password"),
    "OAUTHBEARER": ("sasl_token_file or sasl_oauth_token_url",),
    "GSSAPI": (),
    "AWS_MSK_IAM": (),
}
LARGEST_ANSWER = 1 << 20  # bytes of a token endpoint
SHARE = 0.8  # of the life of a token, after which another is requested
AWS_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$", re.IGNORECASE)


def check_login(access: Access, hosts: Sequence[str]) -> None:
    """Raise BadValue for a login that cannot work, before it is tried."""
    mechanism = access.sasl_mechanism
    if mechanism is None:
        return
    if mechanism not in MECHANISMS:
        raise BadValue(
            f"SASL mechanism {mechanism} is not supported with brokers", f"there are {', '.join(MECHANISMS)}"
        )
    for names in MECHANISMS[mechanism]:
        first = names.split(" or ")[0]
        if not any(getattr(access, name) for name in names.split(" or ")):
            raise BadValue(
                f"SASL mechanism {mechanism} needs {names}", f"set KCTL_{first.upper()} or the context's"
            )
    if mechanism == "GSSAPI":
        _check_ticket(access.sasl_kerberos_service or "kafka", hosts)


def exposed_secrets(access: Access, hosts: Sequence[str]) -> Iterator[str]:
    """A sentence for each secret that others can read: on the wire, or in a file."""
    if access.sasl_mechanism == "PLAIN" and not access.is_encrypted:
        distant = [host for host in hosts if not LOOPBACK.fullmatch(host)]
        if distant:
            yield f"the password is sent to {', '.join(distant)} in clear text: PLAIN without TLS; set tls or tls_ca"
    if access.sasl_mechanism == "OAUTHBEARER" and access.sasl_token_file:
        if is_open_to_others(access.sasl_token_file):
            yield f"others can read {access.sasl_token_file}, and it contains a token; run chmod 600"
    elif access.sasl_mechanism == "OAUTHBEARER" and access.sasl_oauth_token_url:
        url = urlsplit(access.sasl_oauth_token_url)
        if url.scheme == "http" and not LOOPBACK.fullmatch(url.hostname or ""):
            yield f"the client's secret is sent to {url.hostname} in clear text: the token endpoint is without TLS"
    if access.is_encrypted and not access.tls_check_hostname:
        yield "the host names of brokers are not checked: any certificate of the same authority is taken"


def _check_ticket(service_name: str, hosts: Sequence[str]) -> None:
    """Raise if Kerberos gives no ticket for any of the hosts, or gssapi is not installed."""
    try:
        import gssapi
        from gssapi.exceptions import GSSError
    except (ImportError, OSError) as error:
        raise BadValue("SASL mechanism GSSAPI needs the package gssapi", "pip install gssapi") from error
    for host in hosts:
        service = gssapi.Name(f"{service_name}@{host}", gssapi.NameType.hostbased_service)
        try:
            gssapi.SecurityContext(name=service, usage="initiate").step()
            return
        except GSSError as error:
            refused = KctlError(
                f"no Kerberos ticket for {service_name}/{host}: {error}", "get one with kinit"
            )
    raise refused


# --- tokens ---


def tokens_of(access: Access, hosts: Sequence[str]) -> Callable[[], str] | None:
    """What gives a token for each connection; None for a mechanism without one. Raises KctlError where it gives none."""
    source: Callable[[], str]
    if access.sasl_mechanism == "AWS_MSK_IAM":
        source = _aws_tokens(access, hosts)
    elif access.sasl_mechanism != "OAUTHBEARER":
        return None
    elif access.sasl_token_file:
        source = _file_tokens(access.sasl_token_file)
    else:
        source = ClientCredentials(access)
    source()
    return source


def _file_tokens(path: str) -> Callable[[], str]:
    """Tokens of a file that is read each time, since others may replace it."""

    def read() -> str:
        try:
            token = read_text(path, follow=True).strip()
        except OSError as error:
            raise file_error(path, error) from error
        except UnicodeDecodeError:
            raise BadValue(
                f"{path} is not a token: it is not text", "write the token alone into it"
            ) from None
        if not token:
            raise BadValue(f"{path} is empty, and should hold a token", "write the token into it")
        return token

    return read


class ClientCredentials:
    """Tokens of an endpoint for a client's name and secret; one is used for most of its life."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.url = access.sasl_oauth_token_url or ""
        self._lock, self._token, self._until = Lock(), "", 0.0
        for name in ("sasl_oauth_client_id", "sasl_oauth_client_secret"):
            if not getattr(access, name):
                raise BadValue(f"a token endpoint needs {name}", f"set KCTL_{name.upper()} or the context's")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadValue(
                f"{redact_text(self.url)!r} is not the URL of a token endpoint", "write https://HOST/PATH"
            )

    def __call__(self) -> str:
        """A token; requested where there is none that lives long enough. Raises KctlError."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._token, seconds = self._requested()
                self._until = time.monotonic() + seconds * SHARE
            return self._token

    def _requested(self) -> tuple[str, float]:
        import urllib.error
        import urllib.request

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_: Any) -> None:
                """The secret goes to no other host."""

        named = f"token endpoint {redact_text(self.url)}"
        form = {"grant_type": "client_credentials"}
        if self.access.sasl_oauth_scope:
            form["scope"] = self.access.sasl_oauth_scope
        login = f"{self.access.sasl_oauth_client_id}:{self.access.sasl_oauth_client_secret}"
        headers = {
            "Authorization": f"Basic {b64encode(login.encode()).decode()}",
            "Accept": "application/json",
        }
        request = urllib.request.Request(self.url, urlencode(form).encode(), headers)  # noqa: S310  # checked above
        try:
            opener = urllib.request.build_opener(Stay, urllib.request.HTTPSHandler(context=self._tls()))
            with opener.open(request, timeout=self.access.timeout) as answer:
                values = _values(answer.read(LARGEST_ANSWER))
        except urllib.error.HTTPError as error:
            refusal = _values(error.read(LARGEST_ANSWER)).get("error")
            words = f" {refusal}" if isinstance(refusal, str) and refusal.isprintable() else ""
            raise KctlError(
                f"{named} refuses the client: {error.code}{words[:100]}",
                "check sasl_oauth_client_id, sasl_oauth_client_secret and sasl_oauth_scope",
            ) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            text = reason_of(reason) if isinstance(reason, Exception) else str(reason)
            raise KctlError(
                f"{named} cannot be used: {text}", "check the URL, and whether it can be reached"
            ) from None
        token = values.get("access_token")
        if not isinstance(token, str) or not token.strip():
            raise KctlError(f"{named} answers without an access_token", "check the URL")
        lives = values.get("expires_in")
        return token.strip(), float(lives) if isinstance(lives, int | float) else 60.0

    def _tls(self) -> Any:
        """The system's authorities, and those of the context."""
        import ssl

        from kctl.tls.files import client_context

        context = client_context(
            self.access._replace(tls_certificate=None, tls_key=None, tls_check_hostname=True)
        )
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context


def _values(answer: bytes) -> dict[str, Any]:
    """A JSON object; an empty one for anything else."""
    try:
        values = bounded_json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _aws_tokens(access: Access, hosts: Sequence[str]) -> Callable[[], str]:
    """Tokens that are signed with credentials of AWS, as MSK's IAM takes them in OAUTHBEARER."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer
    except ImportError as error:
        raise BadValue(
            "SASL mechanism AWS_MSK_IAM needs the extra `msk`", "pip install 'kctl[msk]'"
        ) from error
    regions = [match[1] for host in hosts if (match := AWS_HOST.search(host))]
    region = next(iter(regions), os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"))
    if not region:
        raise BadValue("the region of the MSK cluster is not known", "set AWS_REGION")

    def signed() -> str:
        try:
            if access.sasl_aws_role:
                token, _ = Signer.generate_auth_token_from_role_arn(region, access.sasl_aws_role)
            elif access.sasl_aws_profile:
                token, _ = Signer.generate_auth_token_from_profile(region, access.sasl_aws_profile)
            else:
                token, _ = Signer.generate_auth_token(region)
        except Exception as error:
            text = redact_text(str(error).splitlines()[0] if str(error) else type(error).__name__)
            raise KctlError(
                f"no token for MSK in {region}: {text}", "check the credentials of AWS here"
            ) from None
        return str(token)

    return signed


def expiry_of(token: str) -> float | None:
    """When a JWT expires, in seconds since 1970; None for other tokens, and without the claim `exp`."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        expiry = _values(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))).get("exp")
    except ValueError:
        return None
    return float(expiry) if isinstance(expiry, int | float) and abs(expiry) < 1e11 else None


# --- principals ---


def principal_of(access: Access, tokens: Callable[[], str] | None = None) -> str:
    """The principal that brokers make of this login by default, `User:ann`; in words where it is not known.

    Source: clients/src/main/java/org/apache/kafka/common/security/authenticator/DefaultKafkaPrincipalBuilder.java @ 4.1.0
    """
    if access.sasl_mechanism == "OAUTHBEARER":
        return f"User:{subject}" if (subject := _subject(tokens)) else UNKNOWN_PRINCIPAL
    if access.sasl_mechanism:
        is_named = access.sasl_username and access.sasl_mechanism not in ("GSSAPI", "AWS_MSK_IAM")
        return f"User:{access.sasl_username}" if is_named else UNKNOWN_PRINCIPAL
    return UNKNOWN_PRINCIPAL if access.tls_certificate else "User:ANONYMOUS"


def _subject(tokens: Callable[[], str] | None) -> str | None:
    """The subject of the claims in a token; None if it has none that can be read."""
    try:
        parts = tokens().split(".") if tokens is not None else []
        subject = _values(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))).get("sub")
    except (ValueError, IndexError, KctlError):
        return None
    return subject if isinstance(subject, str) else None


# --- refusals ---


def refusal_of(mechanism: str | None, text: str, tokens: Callable[[], str] | None) -> str:
    """What a failed login means, as a clause, from the broker's message."""
    message = " ".join(text.split())[:200]
    if tokens is not None:
        expiry = _expiry_in(tokens)
        if expiry is not None and expiry < time.time():
            return f"the token is not accepted: it expired {utc_text(round(expiry * 1000))}"
        return f"the token is not accepted: {message}" if message else "the token is not accepted"
    if mechanism == "GSSAPI":
        return (
            f"the Kerberos ticket is not accepted: {message}"
            if message
            else "the Kerberos ticket is not accepted"
        )
    if not message or re.search(
        r"credential|user ?name|password|Failed to authenticate", message, re.IGNORECASE
    ):
        return NOT_LET_IN
    return f"the login is refused: {message}"


def _expiry_in(tokens: Callable[[], str]) -> float | None:
    try:
        return expiry_of(tokens())
    except KctlError:
        return None
