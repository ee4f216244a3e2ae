"""A live ZooKeeper ensemble: every wait has an end, and every failure says in one line what it was.

Session loss is no failure of its own: kctl keeps nothing in a session, so reads are simply sent again until
the time given is over. A write that was sent is never sent again (`OutcomeUnknown`).
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    NotReadOnlyCallError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import ACL, Id

from kctl.changes.plan import Write
from kctl.cluster.interface import Conflict
from kctl.errors import KctlError, Refused
from kctl.zookeeper.access import Access, open_client
from kctl.zookeeper.bulk import GET_ACL, GET_CHILDREN, GET_DATA, multi_read, pipelined
from kctl.zookeeper.diagnosis import Remembered, server_version, why_not
from kctl.zookeeper.store import LARGEST_REQUEST, Acl, OutcomeUnknown, Znode, parent_of, request_size

LOST = (
    ConnectionLoss,
    ConnectionClosedError,
    SessionExpiredError,
    OperationTimeoutError,
    KazooTimeoutError,
    TimeoutError,
)
FIRST_MULTI_READ = (3, 6)
FEW = 8  # so many reads are not worth asking the server what it can


class Ensemble:
    """A `ZnodeStore` over a live ensemble, by kazoo. Close it."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.location = access.hosts
        self.timeout = access.timeout
        self._remembered = Remembered()
        self._client = open_client(access, self._remembered)
        self._has_multi_read: bool | None = None
        self._connect()

    # --- connection ---

    def _connect(self) -> None:
        live = self._client.start_async()
        live.wait(self.timeout)
        if not self._client.connected:
            reason = why_not(self.access, self._remembered)
            self.close()
            raise KctlError(reason)

    @property
    def is_read_only(self) -> bool:
        """Whether the server is cut off from its quorum, so that what it says may be old."""
        return bool(self._client.client_state == "CONNECTED_RO")

    @property
    def is_authenticated(self) -> bool:
        """Whether this session has proved who it is in any way."""
        return bool(self.access.sasl_mechanism or self.access.tls_certificate)

    def close(self) -> None:
        """End the session; a connection that hangs is left to the kernel."""
        with contextlib.suppress(Exception):
            self._client.stop()
        with contextlib.suppress(Exception):
            self._client.close()

    # --- reading ---

    def get(self, path: str) -> Znode | None:
        """A znode."""
        return self._bulk(GET_DATA, [path])[0]  # type: ignore[no-any-return]  # what the operation gives

    def children(self, path: str) -> list[str] | None:
        """The names below it, sorted."""
        return self._bulk(GET_CHILDREN, [path])[0]  # type: ignore[no-any-return]

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Many znodes, in the order asked for."""
        return self._bulk(GET_DATA, paths)

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """The names below many znodes."""
        return self._bulk(GET_CHILDREN, paths)

    def _bulk(self, operation: int, paths: Sequence[str]) -> list[Any]:
        full = self._below_chroot(paths)
        found: list[Any] = self._again(
            lambda: self._read(operation, full), paths[0] if len(paths) == 1 else ""
        )
        return found

    def _below_chroot(self, paths: Sequence[str]) -> list[str]:
        """Whole paths. kazoo's own function normalizes each, which costs as much as reading it."""
        root = self._client.chroot.rstrip("/")
        if not root:
            return list(paths)
        return [root if path == "/" else root + path for path in paths]

    def _read(self, operation: int, paths: list[str]) -> list[Any]:
        if len(paths) > FEW and self._can_multi_read():
            try:
                return multi_read(self._client._call, operation, paths, self.timeout)
            except ConnectionLoss:
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
        """What is read from now on is at least as new as this moment."""
        self._again(lambda: self._client.sync_async("/").get(timeout=self.timeout), "/")

    def acl(self, path: str) -> list[Acl]:
        """The access list of a znode; empty where there is none."""
        return self.acl_many([path])[0]

    def acl_many(self, paths: Sequence[str]) -> list[list[Acl]]:
        """The access lists of many znodes; empty where there is none."""
        full = self._below_chroot(paths)
        found = self._again(lambda: pipelined(self._client._call, GET_ACL, full, self.timeout), "")
        return [one or [] for one in found]

    def _again(self, read: Callable[[], Any], path: str) -> Any:
        """Read, once more after each lost connection, until the time is over."""
        end = time.monotonic() + self.timeout
        while True:
            try:
                return read()
            except NoAuthError:
                raise KctlError(f"{path or 'a znode'}: ZooKeeper does not let this session read it") from None
            except AuthFailedError:
                raise KctlError(f"ZooKeeper {self.location} refused the credentials") from None
            except LOST:
                left = end - time.monotonic()
                if left <= 0 or not self._wait_connected(left):
                    why = self._remembered.last or "the connection was lost"
                    raise KctlError(
                        f"ZooKeeper {self.location} did not answer within {self.timeout:g} s",
                        f"{why}; KCTL_ANSWER_TIMEOUT=60 waits longer",
                    ) from None
            except ZookeeperError as error:
                raise KctlError(f"{path or self.location}: ZooKeeper answered {_words(error)}") from error

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
        except KazooException as error:
            raise KctlError(
                f"ZooKeeper {self.location} answered {_words(error)}; nothing was written"
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
                "make smaller batches",
            )
        if self.is_read_only:
            raise Refused(f"ZooKeeper {self.location} is read-only: the server is cut off from its quorum")

    def _acl_for(self, path: str) -> list[ACL] | None:
        wanted = acl_for(self, path)
        return None if wanted is None else [ACL(one.permissions, Id(one.scheme, one.id)) for one in wanted]

    def _raise_first(self, writes: Sequence[Write], results: Sequence[Any]) -> None:
        """A transaction that failed says so only in its results: the first error that is not a consequence."""
        for write, result in zip(writes, results, strict=False):
            if not isinstance(result, Exception) or isinstance(
                result, (RolledBackError, RuntimeInconsistency)
            ):
                continue
            if isinstance(result, NodeExistsError):
                raise Conflict(f"{write.target} exists already; nothing was written")
            if isinstance(result, NoNodeError):
                gone = write.target if write.action != "create" else parent_of(write.target)
                raise Conflict(f"{gone} is not there any more; nothing was written")
            if isinstance(result, BadVersionError):
                raise Conflict(f"{write.target} was changed by somebody else; nothing was written")
            if isinstance(result, NoAuthError):
                raise KctlError(
                    f"{write.target}: ZooKeeper does not let this session write it; nothing was written"
                )
            raise KctlError(f"{write.target}: ZooKeeper answered {_words(result)}; nothing was written")
        if any(isinstance(result, Exception) for result in results) or len(results) < len(writes):
            raise KctlError("ZooKeeper rolled the transaction back without a reason; nothing was written")


# What brokers keep from the world's eyes when zookeeper.set.acl is true (1.1 and later; 0.10.2: users only).
SENSITIVE = ("/config/users", "/config/brokers", "/delegation_token/tokens")
READ, ALL = 1, 31


def acl_for(store: Ensemble, path: str) -> list[Acl] | None:
    """The access list of a new znode: as the brokers would set it. None: open to the world.

    Without a setting it is the parent's. Raises Refused where that list knows nobody that this session could
    be: a broker could then not change or delete the node.
    """
    setting = store.access.acl
    if setting == "open":
        return None
    if setting == "secure":
        if not store.is_authenticated:
            raise Refused('acl = "secure" needs a session with credentials; nothing was written')
        own = [Acl(ALL, "auth", "")]
        return own if path.startswith(SENSITIVE) else [*own, Acl(READ, "world", "anyone")]
    parent = store.acl(parent_of(path))
    if not parent or any(one.scheme == "world" and one.permissions == ALL for one in parent):
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
        NotEmptyError: "not empty",
        InvalidACLError: "invalid access list",
        NotReadOnlyCallError: "read-only",
    }
    return names.get(type(error), type(error).__name__.removesuffix("Error"))
