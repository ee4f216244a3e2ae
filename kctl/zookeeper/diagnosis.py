"""Why an ensemble does not answer, found out after it did not; and which version a server is.

kazoo knows only that it is not connected. Each server is therefore asked once more, by a plain connection.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kctl.zookeeper.access import Access

VERSION = re.compile(rb"version: (\d+)\.(\d+)\.(\d+)")
PROBE_TIMEOUT = 2.0  # seconds


class Remembered(logging.Handler):
    """A logger for kazoo that prints nothing and remembers the last warning."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self.logger = logging.Logger("kctl.zookeeper", logging.WARNING)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text; a traceback that comes with it says nothing to an operator."""
        text = record.getMessage().split("\n", 1)[0]
        self.last = text[:1].lower() + text[1:]


def why_not(access: Access, remembered: Remembered) -> str:
    """One line: what kept the connection from coming about, and what to do."""
    hosts = access.hosts.split("/", 1)[0]
    within = f"within {access.timeout:g} s"
    if "auth" in remembered.last and "fail" in remembered.last:
        return f"ZooKeeper {hosts} refused the credentials"
    addresses = list(dict.fromkeys(hosts.split(",")))
    with ThreadPoolExecutor(len(addresses)) as pool:  # those that say nothing take their time at once
        said = pool.map(lambda address: _answer(*_split(address), access), addresses)
        answers = dict(zip(addresses, said, strict=True))
    reasons = set(answers.values())
    if reasons == {"answers"}:
        if "certificate" in remembered.last.lower() or "ssl" in remembered.last.lower():
            return f"ZooKeeper {hosts} did not accept the TLS connection; {remembered.last}"
        return (
            f"ZooKeeper {hosts} listens but gave no session {within}; "
            "it may have no quorum, want TLS or credentials, or be another service"
        )
    if len(reasons) == 1:
        return f"ZooKeeper {hosts} could not be reached {within}; {reasons.pop()}"
    told = ", ".join(f"{address}: {reason}" for address, reason in answers.items())
    return f"ZooKeeper could not be reached {within}; {told}"


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.strip().rpartition(":")
    if not host or not port.isdigit():
        return address.strip().strip("[]"), 2181
    return host.strip("[]"), int(port)


def _answer(host: str, port: int, access: Access) -> str:
    try:
        with socket.create_connection((host, port), timeout=PROBE_TIMEOUT) as plain:
            if not access.tls:
                plain.sendall(b"srvr")
                said = plain.recv(200)
                if b"not currently serving" in said:
                    return "it has no quorum (or is starting): it does not serve requests"
                return "answers"
            context = ssl.create_default_context(cafile=access.tls_ca)
            if access.tls_certificate:
                context.load_cert_chain(access.tls_certificate, access.tls_key, access.tls_key_password)
            with context.wrap_socket(plain, server_hostname=host):
                return "answers"
    except socket.gaierror:
        return f"no such host {host!r}"
    except ConnectionRefusedError:
        return "connection refused: is it the right port?"
    except TimeoutError:
        return "no answer: is a firewall in between?"
    except ssl.SSLError as error:
        return f"TLS failed ({error.reason or error})"
    except (OSError, ValueError) as error:
        return str(error)


def server_version(client: Any, access: Access) -> tuple[int, ...] | None:
    """The version of the server that a client is connected to; None where it does not say."""
    try:
        peer = client._connection._socket.getpeername()[:2]
    except (AttributeError, OSError):
        return None
    if access.tls:
        return _version_by_reading(access)
    try:
        with socket.create_connection(peer, timeout=PROBE_TIMEOUT) as plain:
            plain.sendall(b"srvr")
            found = VERSION.search(plain.recv(4096))
    except OSError:
        return _version_by_reading(access)
    return tuple(map(int, found.groups())) if found else _version_by_reading(access)


def _version_by_reading(access: Access) -> tuple[int, ...] | None:
    """Whether a server has multiRead, tried on a session of its own, because an old one closes it."""
    from kazoo.exceptions import KazooException

    from kctl.zookeeper.access import open_client
    from kctl.zookeeper.bulk import GET_DATA, multi_read

    remembered = Remembered()
    probe = open_client(access, remembered)
    try:
        probe.start_async().wait(PROBE_TIMEOUT)
        multi_read(probe._call, GET_DATA, ["/zookeeper"], PROBE_TIMEOUT)
    except (KazooException, TimeoutError, OSError):
        return None
    finally:
        probe.stop()
        probe.close()
    return (3, 6, 0)
