"""Who kctl is to an ensemble and how it gets in: hosts, TLS, SASL, digest, and kazoo's client made of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

from kctl.errors import KctlError
from kctl.settings import Context
from kctl.zookeeper.diagnosis import Remembered

SESSION_TIMEOUT = 10.0  # seconds; a server bounds it further


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to reach an ensemble: connect string with chroot, and what proves who we are."""

    hosts: str
    timeout: float = 10.0  # seconds for a connection, and for each answer
    read_only: bool = False  # also take a server that is cut off from its quorum
    tls: bool = False
    tls_ca: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_key_password: str | None = None
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = None
    acl: str | None = None  # None: as the parent has it; `secure`: as brokers with zookeeper.set.acl; `open`


def access_from(context: Context, *, timeout: float = 10.0, read_only: bool = False) -> Access:
    """The access that a context describes."""
    if not context.zookeeper:
        raise KctlError("no cluster is named", "give --zookeeper HOSTS/chroot, or --context NAME")
    return Access(
        hosts=context.zookeeper,
        timeout=timeout,
        read_only=read_only,
        tls=context.tls or bool(context.tls_ca or context.tls_certificate),
        tls_ca=context.tls_ca,
        tls_certificate=context.tls_certificate,
        tls_key=context.tls_key,
        tls_key_password=context.tls_key_password,
        sasl_mechanism=context.sasl_mechanism,
        sasl_username=context.sasl_username,
        sasl_password=context.sasl_password,
        acl=context.acl,
    )


class QuietThreads(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads, but an exception that ends one is remembered and not printed as a traceback.

    A server has `share` seconds to take a connection.
    """

    def __init__(self, remembered: Remembered, share: float) -> None:
        super().__init__()
        self.remembered = remembered
        self.share = share

    def create_connection(self, *args: Any, timeout: float, **how: Any) -> Any:
        """A connection."""
        return super().create_connection(*args, timeout=min(timeout, self.share), **how)

    def spawn(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function in a thread."""

        def run() -> None:
            try:
                func(*args, **kwargs)
            except Exception as error:
                self.remembered.last = self.remembered.last or f"{type(error).__name__}: {error}"

        return super().spawn(run)


def open_client(access: Access, remembered: Remembered) -> KazooClient:
    auth, sasl = None, None
    mechanism = (access.sasl_mechanism or "").upper()
    if mechanism == "DIGEST":
        auth = [("digest", f"{access.sasl_username}:{access.sasl_password}")]
    elif mechanism:
        _require_sasl(mechanism)
        sasl = {"mechanism": mechanism, "username": access.sasl_username, "password": access.sasl_password}
    # One that takes connections and says nothing must leave the others time.
    count = access.hosts.count(",") + 1
    share = access.timeout / (count + 1) if count > 1 else SESSION_TIMEOUT
    try:
        client = KazooClient(
            access.hosts,
            timeout=SESSION_TIMEOUT,
            logger=remembered.logger,
            handler=QuietThreads(remembered, share),
            read_only=access.read_only,
            auth_data=auth,
            sasl_options=sasl,
            use_ssl=access.tls,
            ca=access.tls_ca,
            certfile=access.tls_certificate,
            keyfile=access.tls_key,
            keyfile_password=access.tls_key_password,
            check_hostname=access.tls,
            # Without a bound on its pauses kazoo sleeps on for a minute after the server has come back.
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.5, max_jitter=0.2),
        )
    except (KazooException, ValueError, ImportError) as error:
        raise KctlError(f"{access.hosts!r} is no ZooKeeper connect string: {error}") from error
    connection = client._connection
    invoke = connection._invoke  # what asks for a session, and nothing else
    connection._invoke = lambda timeout, request, xid=None: invoke(min(timeout, share), request, xid)
    return client


def _require_sasl(mechanism: str) -> None:
    from importlib.util import find_spec

    if find_spec("puresasl") is None:
        raise KctlError(f"SASL mechanism {mechanism} needs the extra `sasl`", "pip install 'kctl[sasl]'")
