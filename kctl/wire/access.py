"""Addresses of brokers with the settings of connections, as a context describes them."""

import re
from typing import NamedTuple

from formats.whole_numbers import whole_number
from kctl.errors import BadValue
from kctl.settings import Context, with_secrets

LARGEST_ANSWER = 512 << 20  # bytes
SERVER_ROOM = 5.0  # seconds by which the client waits longer than the broker
LONGEST_WAIT = 2_000_000  # seconds: requests say milliseconds in 32 bits


class Access(NamedTuple):
    """The addresses of brokers and the settings of connections. `timeout` is seconds for each answer."""

    servers: str
    timeout: float = 10.0
    tls: bool = False
    tls_ca: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_key_password: str | None = None
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = None
    sasl_token_file: str | None = None
    client_id: str | None = None
    tls_ca_password: str | None = None
    tls_certificate_password: str | None = None
    tls_check_hostname: bool = True
    sasl_kerberos_service: str | None = None
    sasl_oauth_token_url: str | None = None
    sasl_oauth_client_id: str | None = None
    sasl_oauth_client_secret: str | None = None
    sasl_oauth_scope: str | None = None
    sasl_oauth_extensions: str | None = None
    sasl_aws_profile: str | None = None
    sasl_aws_role: str | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether connections use TLS."""
        return bool(self.tls or self.tls_ca or self.tls_certificate)


def access_from(context: Context, servers: str, timeout: float) -> Access:
    """Servers with the TLS and SASL settings of a context."""
    filled = with_secrets(context)
    shared = {name: getattr(filled, name) for name in Access._fields if name not in ("servers", "timeout")}
    shared["sasl_mechanism"] = filled.sasl_mechanism and filled.sasl_mechanism.upper()
    return Access(servers=servers, timeout=min(timeout, LONGEST_WAIT), **shared)


def server_list(text: str) -> list[str]:
    """`HOST:PORT,HOST:PORT` as a list. Raises BadValue."""
    servers = [part.strip() for part in text.split(",") if part.strip()]
    for part in servers:
        host, colon, port = part.rpartition(":")
        if colon and (not host or not 0 < (whole_number(port) or 0) < 65536):
            raise BadValue(f"{part!r} is not HOST:PORT", "write --bootstrap-server kafka1:9092,kafka2:9092")
    if not servers:
        raise BadValue("no bootstrap server is named", "write --bootstrap-server kafka1:9092,kafka2:9092")
    return [part if re.search(r":\d+$", part) else f"{part}:9092" for part in servers]


def address_of(server: str) -> tuple[str, int]:
    """Host and port of one of a server list."""
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)
