"""A connection to a live ZooKeeper ensemble: every wait has an end, and every failure its cause in one line.

Session loss is no failure of its own: kctl keeps nothing in a session, so reads are sent again until the time
is over. A write that was sent is never sent again (`OutcomeUnknown`). kazoo knows only that it is not connected, so
each server is probed once more over a plain connection to find out why it does not answer.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.retry import KazooRetry
from kazoo.security import ACL, Id

from formats.values import Struct
from formats.whole_numbers import whole_number
from kctl.cluster.intent import Write
from kctl.cluster.interface import Conflict
from kctl.cluster.rights import CREDENTIALS
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import Diagnosis
from kctl.settings import Context, with_secrets
from kctl.tls.causes import (
    IN_CLEAR_TEXT,
    alert_after_handshake,
    alert_of,
    certificate_refused,
    connected,
    speaks_tls,
)
from kctl.tls.files import client_context
from kctl.zookeeper.bulk import GET_ACL, GET_CHILDREN, GET_DATA, multi_read, pipelined
from kctl.zookeeper.store import (
    LARGEST_REQUEST,
    Acl,
    HiddenZnodes,
    OutcomeUnknown,
    Znode,
    parent_of,
    request_size,
)

SESSION_TIMEOUT = 10.0  # seconds; a server bounds it further


class EnsembleAccess(Struct, frozen=True, kw_only=True):
    """How to reach an ensemble: connect string with chroot, and credentials."""

    hosts: str
    timeout: float = 10.0  # seconds for a connection, and for each answer
    read_only: bool = False  # also accept a server without a quorum
    tls: bool = False
    tls_ca: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_key_password: str | None = None
    tls_ca_password: str | None = None
    tls_certificate_password: str | None = None
    tls_check_hostname: bool = True
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = None
    acl: str | None = None  # None: as the parent has it; `secure`: as brokers with zookeeper.set.acl; `open`


def access_from(context: Context, *, timeout: float = 10.0, read_only: bool = False) -> EnsembleAccess:
    """The access that a context describes."""
    if not context.zookeeper:
        raise KctlError("no cluster given", "give --zookeeper HOSTS/chroot, or --context NAME")
    if os.path.isfile(context.zookeeper):
        raise BadValue(
            f"--zookeeper {context.zookeeper} is a file", "an export of znodes is read with --snapshot FILE"
        )
    names = [name for name in EnsembleAccess.__struct_fields__ if name.startswith(("tls_", "sasl_", "acl"))]
    known = with_secrets(context.for_zookeeper or context)
    encrypted = known.tls or bool(known.tls_ca or known.tls_certificate)
    shared = {name: getattr(known, name) for name in names}
    return EnsembleAccess(
        hosts=context.zookeeper, timeout=timeout, read_only=read_only, tls=encrypted, **shared
    )


class QuietThreads(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads; an exception that ends one is kept instead of printed as a traceback.

    A server has `share` seconds to accept a connection.
    """

    def __init__(self, remembered: Remembered, share: float, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self.remembered = remembered
        self.share = share
        self.tls = tls

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **how: Any) -> Any:
        """A connection, with TLS by the context that was built before."""
        connection = super().create_connection(address, timeout=min(timeout, self.share))
        if self.tls is None:
            return connection
        try:
            return self.tls.wrap_socket(connection, server_hostname=hostname)
        except BaseException:
            connection.close()
            raise

    def spawn(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function in a thread."""

        def run() -> None:
            try:
                func(*args, **kwargs)
            except Exception as error:
                self.remembered.last = self.remembered.last or f"{type(error).__name__}: {error}"

        return super().spawn(run)


def tls_of(access: EnsembleAccess) -> ssl.SSLContext | None:
    """The context of connections with TLS. Raises KctlError where a file of it cannot be used."""
    return client_context(access) if access.tls else None


def open_client(access: EnsembleAccess, remembered: Remembered) -> KazooClient:
    auth, sasl = None, None
    mechanism = (access.sasl_mechanism or "").upper()
    if mechanism == "DIGEST":
        auth = [("digest", f"{access.sasl_username}:{access.sasl_password}")]
    elif mechanism:
        _require_sasl(mechanism)
        sasl = {"mechanism": mechanism, "username": access.sasl_username, "password": access.sasl_password}
    # One that accepts connections and does not answer must leave the others time.
    count = access.hosts.count(",") + 1
    share = access.timeout / (count + 1) if count > 1 else min(access.timeout, SESSION_TIMEOUT)
    try:
        client = KazooClient(
            access.hosts,
            timeout=SESSION_TIMEOUT,
            logger=remembered.logger,
            handler=QuietThreads(remembered, share, tls_of(access)),
            read_only=access.read_only,
            auth_data=auth,
            sasl_options=sasl,
            # Without a bound on its pauses kazoo may sleep a minute after the server has come back.
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5, max_jitter=0.2),
        )
    except (exceptions.KazooException, ValueError, ImportError) as error:
        raise KctlError(
            f"{access.hosts!r} is not a ZooKeeper connect string: {error}", "write HOST:PORT,HOST:PORT/chroot"
        ) from error
    connection = client._connection
    invoke = connection._invoke  # requests a session only
    connection._invoke = lambda timeout, request, xid=None: invoke(min(timeout, share), request, xid)
    return client


def _require_sasl(mechanism: str) -> None:
    from importlib.util import find_spec

    if find_spec("puresasl") is None:
        raise KctlError(f"SASL mechanism {mechanism} needs the extra `sasl`", "pip install 'kctl[sasl]'")


VERSION = re.compile(rb"version: (\d+)\.(\d+)\.(\d+)")
PROBE_TIMEOUT = 2.0  # seconds
STEP = 0.05  # seconds between two looks whether every server has failed once
CHECK_SERVERS = "check that the servers run and that the connect string names their client ports"
SILENT = "a connection is accepted, but no answer comes: is the server stuck?"
ALERT_RECORD = b"\x15"  # the first byte of an alert of TLS


class Remembered(logging.Handler):
    """A logger for kazoo that prints nothing, counts warnings and remembers the last one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self.count = 0
        self.logger = logging.Logger("kctl.zookeeper", logging.WARNING)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text; a traceback does not help an operator."""
        self.count += 1
        text = record.getMessage().split("\n", 1)[0]
        self.last = text[:1].lower() + text[1:]


def why_not(access: EnsembleAccess, remembered: Remembered) -> str:
    """The reason for the missing connection, in one line."""
    hosts = access.hosts.split("/", 1)[0]
    within = f"within {access.timeout:g} s"
    if "auth" in remembered.last and "fail" in remembered.last:
        return f"ZooKeeper {hosts} refused the credentials"
    answers = {
        address: (answer.clause if answer else "answers") for address, answer in _probed(access).items()
    }
    reasons = set(answers.values())
    if reasons == {"answers"}:
        return (
            f"ZooKeeper {hosts} listens but gave no session {within}; "
            "it may have no quorum, want TLS or credentials, or be another service"
        )
    if len(reasons) == 1:
        return f"ZooKeeper {hosts} could not be reached {within}; {reasons.pop()}"
    details = ", ".join(f"{address}: {reason}" for address, reason in answers.items())
    return f"ZooKeeper could not be reached {within}; {details}"


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.strip().rpartition(":")
    number = whole_number(port)
    if not host or number is None:
        return address.strip().strip("[]"), 2181
    return host.strip("[]"), number


def _probed(access: EnsembleAccess) -> dict[str, Diagnosis | None]:
    """Why each server cannot be used; None for one that answers."""
    addresses = list(dict.fromkeys(access.hosts.split("/", 1)[0].split(",")))
    context = tls_of(access)
    with ThreadPoolExecutor(len(addresses)) as pool:  # silent ones time out in parallel
        replies = pool.map(lambda address: _probe(*_split(address), access, context), addresses)
        return dict(zip(addresses, replies, strict=True))


def _probe(host: str, port: int, access: EnsembleAccess, context: ssl.SSLContext | None) -> Diagnosis | None:
    """Why a server cannot be used; None for one that answers."""
    end = time.monotonic() + PROBE_TIMEOUT
    try:
        with connected(host, port, end) as plain:
            if context is None:
                return _probe_in_clear_text(plain, host, port, end)
            with context.wrap_socket(plain, server_hostname=host):
                pass
        return alert_after_handshake(host, port, context, end, has_certificate=bool(access.tls_certificate))
    except socket.gaierror:
        return _unreachable(f"no such host {host!r}")
    except ConnectionRefusedError:
        return _unreachable("connection refused: is it the right port?")
    except TimeoutError:
        return _unreachable("no answer: is a firewall in between?")
    except ssl.SSLCertVerificationError as refused:
        assert context is not None
        return certificate_refused(host, port, context, refused, max(0.1, end - time.monotonic()))
    except ssl.SSLError as failure:
        alert = alert_of(failure, has_certificate=bool(access.tls_certificate))
        return (
            alert
            or _in_clear_text(host, port, end)
            or _unreachable(f"TLS failed ({failure.reason or failure})")
        )
    except (OSError, ValueError) as failure:
        return (context and _in_clear_text(host, port, end)) or _unreachable(str(failure))


def _probe_in_clear_text(plain: socket.socket, host: str, port: int, end: float) -> Diagnosis | None:
    """Why a server that takes a connection cannot be used without TLS; None for one that answers."""
    plain.settimeout(PROBE_TIMEOUT / 2)
    try:
        reply = _srvr(plain)
    except TimeoutError:  # with TLS it may wait for the rest of a record
        return IN_CLEAR_TEXT if speaks_tls(host, port, end) else _unreachable(SILENT)
    if b"not currently serving" in reply:
        return _unreachable("it has no quorum (or is starting): it does not serve requests")
    is_odd = reply[:1] in (b"", ALERT_RECORD)  # as from a server that is starting
    return IN_CLEAR_TEXT if is_odd and speaks_tls(host, port, end) else None


def _unreachable(clause: str) -> Diagnosis:
    return Diagnosis(clause, CHECK_SERVERS, is_sure=False)


def _srvr(plain: socket.socket) -> bytes:
    plain.sendall(b"srvr")
    return plain.recv(200)


def _in_clear_text(host: str, port: int, end: float) -> Diagnosis | None:
    """Whether the server answers without TLS."""
    try:
        with connected(host, port, end) as plain:
            reply = _srvr(plain)
    except OSError:
        return None
    if reply[:1] in (b"", ALERT_RECORD):
        return None
    return Diagnosis(
        "it does not speak TLS there", "name the port with TLS (secureClientPort), or leave TLS out"
    )


ASK_AGAIN = "run the command again; where it stays so, the log of that server says why"


def server_version(client: Any, access: EnsembleAccess) -> tuple[int, ...] | None:
    """The version of the server that a client is connected to; None if unknown."""
    try:
        peer = client._connection._socket.getpeername()[:2]
    except (AttributeError, OSError):
        return None
    if access.tls:
        return _version_by_reading(access)
    try:
        with socket.create_connection(peer, timeout=PROBE_TIMEOUT) as plain:
            plain.sendall(b"srvr")
            match = VERSION.search(plain.recv(4096))
    except OSError:
        return _version_by_reading(access)
    return tuple(map(int, match.groups())) if match else _version_by_reading(access)


def _version_by_reading(access: EnsembleAccess) -> tuple[int, ...] | None:
    """Try multiRead on a session of its own, because an old server closes it; (3, 6) if it works."""
    from kctl.zookeeper.bulk import GET_DATA, multi_read

    remembered = Remembered()
    probe = open_client(access, remembered)
    try:
        probe.start_async().wait(PROBE_TIMEOUT)
        multi_read(probe._call, GET_DATA, ["/zookeeper"], PROBE_TIMEOUT)
    except (exceptions.KazooException, TimeoutError, OSError):
        return None
    finally:
        probe.stop()
        probe.close()
    return (3, 6, 0)


LOST = (
    exceptions.ConnectionLoss,
    exceptions.ConnectionClosedError,
    exceptions.SessionExpiredError,
    exceptions.OperationTimeoutError,
    KazooTimeoutError,
    TimeoutError,
)
FIRST_MULTI_READ = (3, 6)
FEW = 8  # for so few reads the server's version is not worth a request


class Ensemble:
    """A `ZnodeStore` over a live ensemble, by kazoo. Close it."""

    def __init__(self, access: EnsembleAccess) -> None:
        self.access = access
        self.location = access.hosts
        self.timeout = access.timeout
        self._remembered = Remembered()
        self._client = open_client(access, self._remembered)
        self._has_multi_read: bool | None = None
        self._connect()

    # --- connection ---

    def _connect(self) -> None:
        end = time.monotonic() + self.timeout
        live = self._client.start_async()
        servers = self.access.hosts.count(",") + 1
        while not live.wait(min(STEP, max(0.0, end - time.monotonic()))) and time.monotonic() < end:
            if self._remembered.count >= servers:
                self._refuse_mismatch()
                live.wait(max(0.0, end - time.monotonic()))
        if not self._client.connected:
            reason = why_not(self.access, self._remembered)
            self.close()
            raise KctlError(reason, CHECK_SERVERS)

    def _refuse_mismatch(self) -> None:
        """Raise KctlError where TLS does not fit with any of the servers: that stays so."""
        found = list(_probed(self.access).items())
        if not all(answer is not None and answer.is_sure for _, answer in found):
            return
        clauses = dict[str, list[str]]()
        for address, answer in found:
            assert answer is not None
            clauses.setdefault(answer.clause, []).append(address)
        hint = next(answer.hint for _, answer in found if answer is not None)
        self.close()
        reasons = [
            f"ZooKeeper {','.join(addresses)} cannot be used: {clause}"
            for clause, addresses in clauses.items()
        ]
        raise KctlError("; ".join(reasons), hint)

    @property
    def is_read_only(self) -> bool:
        """Whether the server is cut off from its quorum, so its answers may be old."""
        return bool(self._client.client_state == "CONNECTED_RO")

    @property
    def is_authenticated(self) -> bool:
        """Whether this session has authenticated in any way."""
        return bool(self.access.sasl_mechanism or self.access.tls_certificate)

    def close(self) -> None:
        """End the session; a connection that hangs is left to the kernel."""
        if not self._client.connected:
            self._give_up()
        with contextlib.suppress(Exception):
            self._client.stop()
        with contextlib.suppress(Exception):
            self._client.close()

    def _give_up(self) -> None:
        """End a session that has not begun, without the wait for an answer in which kazoo's thread is."""
        stopping = threading.Thread(target=self._client.stop, daemon=True)
        stopping.start()
        end = time.monotonic() + PROBE_TIMEOUT
        while stopping.is_alive() and time.monotonic() < end:
            with contextlib.suppress(AttributeError, OSError):
                self._client._connection._socket.shutdown(socket.SHUT_RDWR)
            stopping.join(STEP)

    # --- reading ---

    def get(self, path: str) -> Znode | None:
        """A znode."""
        return self._bulk(GET_DATA, [path])[0]  # type: ignore[no-any-return]  # what the operation gives

    def children(self, path: str) -> list[str] | None:
        """The names below it, sorted."""
        return self._bulk(GET_CHILDREN, [path])[0]  # type: ignore[no-any-return]

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Many znodes, in the order of `paths`."""
        return self._bulk(GET_DATA, paths)

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """The names below many znodes."""
        return self._bulk(GET_CHILDREN, paths)

    def _bulk(self, operation: int, paths: Sequence[str]) -> list[Any]:
        full = self._below_chroot(paths)
        results: list[Any] = self._again(
            lambda: self._read(operation, full), paths[0] if len(paths) == 1 else ""
        )
        hidden = [path for path, value in zip(paths, results, strict=True) if isinstance(value, Exception)]
        if hidden:
            raise HiddenZnodes(hidden, [None if isinstance(value, Exception) else value for value in results])
        return results

    def _below_chroot(self, paths: Sequence[str]) -> list[str]:
        """Paths with the chroot. kazoo's own function normalizes each, which costs as much as reading it."""
        root = self._client.chroot.rstrip("/")
        if not root:
            return list(paths)
        return [root if path == "/" else root + path for path in paths]

    def _read(self, operation: int, paths: list[str]) -> list[Any]:
        if len(paths) > FEW and self._can_multi_read():
            try:
                return multi_read(self._client._call, operation, paths, self.timeout)
            except exceptions.ConnectionLoss:
                # A server that does not know the operation closes the connection; another one may answer now.
                self._has_multi_read = None
                raise
        return pipelined(self._client._call, operation, paths, self.timeout)

    def _can_multi_read(self) -> bool:
        if self._has_multi_read is None:
            version = server_version(self._client, self.access)
            self._has_multi_read = version is not None and version >= FIRST_MULTI_READ
        return self._has_multi_read

    def sync(self) -> None:
        """Make later reads at least as new as this moment."""
        self._again(lambda: self._client.sync_async("/").get(timeout=self.timeout), "/")

    def acl(self, path: str) -> list[Acl]:
        """The access list of a znode; empty where there is none."""
        return self.acl_many([path])[0]

    def acl_many(self, paths: Sequence[str]) -> list[list[Acl]]:
        """The access lists of many znodes; empty where there is none."""
        full = self._below_chroot(paths)
        lists = self._again(lambda: pipelined(self._client._call, GET_ACL, full, self.timeout), "")
        if hidden := [path for path, value in zip(paths, lists, strict=True) if isinstance(value, Exception)]:
            raise HiddenZnodes(hidden, ())
        return [access_list or [] for access_list in lists]

    def _again(self, read: Callable[[], Any], path: str) -> Any:
        """Read, once more after each lost connection, until the time is over."""
        end = time.monotonic() + self.timeout
        while True:
            try:
                return read()
            except exceptions.AuthFailedError:
                raise KctlError(
                    f"ZooKeeper {self.location} refused the credentials",
                    "check sasl_username and sasl_password of the context",
                ) from None
            except LOST:
                remaining = end - time.monotonic()
                if remaining <= 0 or not self._wait_connected(remaining):
                    why = self._remembered.last or "the connection was lost"
                    raise KctlError(
                        f"ZooKeeper {self.location} did not answer within {self.timeout:g} s",
                        f"{why}; KCTL_ANSWER_TIMEOUT=60 waits longer",
                    ) from None
            except exceptions.ZookeeperError as error:
                raise KctlError(
                    f"{path or self.location}: ZooKeeper answered {_words(error)}", ASK_AGAIN
                ) from error

    def _wait_connected(self, timeout: float) -> bool:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self._client.connected:
                return True
            time.sleep(0.02)
        return False

    # --- writing ---

    def transact(self, writes: Sequence[Write]) -> list[str]:
        """Write all or nothing; see `ZnodeStore.transact`."""
        self._refuse_what_cannot_work(writes)
        transaction = self._client.transaction()
        for write in writes:
            if write.action == "create":
                acl = self._acl_for(write.target)
                transaction.create(write.target, write.after or b"", acl=acl, sequence=write.sequence)
            elif write.action == "set":
                assert write.version is not None
                transaction.set_data(write.target, write.after or b"", version=write.version)
            elif write.action == "delete":
                assert write.version is not None
                transaction.delete(write.target, version=write.version)
            else:
                transaction.check(write.target, -1 if write.version is None else write.version)
        try:
            results = transaction.commit_async().get(timeout=self.timeout)
        except LOST:
            raise OutcomeUnknown(
                f"the connection to ZooKeeper {self.location} was lost while a write was on its way"
            ) from None
        except exceptions.KazooException as error:
            raise KctlError(
                f"ZooKeeper {self.location} answered {_words(error)}; nothing was written", ASK_AGAIN
            ) from error
        self._raise_first(writes, results)
        return [
            result if isinstance(result, str) else w.target for w, result in zip(writes, results, strict=True)
        ]

    def _refuse_what_cannot_work(self, writes: Sequence[Write]) -> None:
        size = request_size(writes)
        if size > LARGEST_REQUEST:
            largest = max(writes, key=lambda write: write.size_in_bytes)
            raise Refused(
                f"the request would be {size:,} bytes, {largest.target} alone {largest.size_in_bytes:,}, "
                f"and ZooKeeper drops the connection above {LARGEST_REQUEST:,}",
                "use smaller batches",
            )
        if self.is_read_only:
            raise Refused(
                f"ZooKeeper {self.location} is read-only: the server is cut off from its quorum",
                "wait until its quorum is back, or name a server that has one",
            )

    def _acl_for(self, path: str) -> list[ACL] | None:
        access_list = acl_for(self, path)
        return (
            None
            if access_list is None
            else [ACL(entry.permissions, Id(entry.scheme, entry.id)) for entry in access_list]
        )

    def _raise_first(self, writes: Sequence[Write], results: Sequence[Any]) -> None:
        """Raise the first error of a failed transaction that is not a consequence of another."""
        for write, result in zip(writes, results, strict=False):
            if not isinstance(result, Exception) or isinstance(
                result, (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
            ):
                continue
            if isinstance(result, exceptions.NodeExistsError):
                raise Conflict(f"{write.target} already exists; nothing was written")
            if isinstance(result, exceptions.NoNodeError):
                gone = write.target if write.action != "create" else parent_of(write.target)
                raise Conflict(f"{gone} no longer exists; nothing was written")
            if isinstance(result, exceptions.BadVersionError):
                raise Conflict(f"{write.target} was changed by somebody else; nothing was written")
            if isinstance(result, exceptions.NoAuthError):
                raise KctlError(
                    f"{write.target}: ZooKeeper does not allow this session to write it; nothing was written",
                    CREDENTIALS,
                )
            raise KctlError(
                f"{write.target}: ZooKeeper answered {_words(result)}; nothing was written", ASK_AGAIN
            )
        if any(isinstance(result, Exception) for result in results) or len(results) < len(writes):
            raise KctlError(
                "ZooKeeper rolled the transaction back without a reason; nothing was written", ASK_AGAIN
            )


# Paths not readable by the world when zookeeper.set.acl is true (1.1 and later; 0.10.2: users only).
SENSITIVE = ("/config/users", "/config/brokers", "/delegation_token/tokens")
READ, ALL = 1, 31


def acl_for(store: Ensemble, path: str) -> list[Acl] | None:
    """The access list of a new znode: as brokers would set it. None: open to the world.

    Without a setting it is the parent's. Raises Refused if that list has no identity that this session could
    have: a broker could then not change or delete the node.
    """
    setting = store.access.acl
    if setting == "open":
        return None
    if setting == "secure":
        if not store.is_authenticated:
            raise Refused(
                'acl = "secure" needs a session with credentials; nothing was written',
                "set sasl_username and sasl_password, or a client certificate, in the context",
            )
        own = [Acl(ALL, "auth", "")]
        return own if path.startswith(SENSITIVE) else [*own, Acl(READ, "world", "anyone")]
    parent = store.acl(parent_of(path))
    if not parent or any(entry.scheme == "world" and entry.permissions == ALL for entry in parent):
        return None
    if not store.is_authenticated:
        raise Refused(
            f"{parent_of(path)} is protected by an access list and this session has no credentials; nothing was written",
            "set sasl_username and sasl_password, or a client certificate, in the context",
        )
    return parent


def _words(error: BaseException) -> str:
    """A kazoo exception as ZooKeeper's word for it."""
    names = {
        exceptions.NotEmptyError: "not empty",
        exceptions.InvalidACLError: "invalid access list",
        exceptions.NotReadOnlyCallError: "read-only",
    }
    return names.get(type(error), type(error).__name__.removesuffix("Error"))
