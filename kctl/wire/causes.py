"""Causes of failed connections as clauses, told from what libraries and systems say, and which servers have one."""

import queue
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence

from kctl.errors import KctlError
from kctl.model import Diagnosis

CHECK_ADDRESSES = "check addresses, ports and the security settings of the context"
ENDED = "it ends the connection (TLS or SASL needed?)"
ENDED_SASL = "it ends the connection (are user, password and mechanism right?)"
NO_ANSWER = "no answer in time"
REFUSED = "connection refused"
UNKNOWN_HOST = "the host name is not known"
NO_ROUTE = "there is no route to it"
UNTRUSTED = "the certificate is not trusted"
NO_TLS = "it does not speak TLS there"
NO_HANDSHAKE = "the TLS handshake failed"
CONTROLLER = "that is a controller's listener, not a broker's"
NOT_LET_IN = "user or password is wrong"
NO_MECHANISM = "the SASL mechanism is not enabled there"
NO_BROKERS = "the cluster reports no broker"
CAUSES = (
    (f"^ConnectionError: {NO_BROKERS}", NO_BROKERS),
    # What a broker says as it refuses a login, and the names in a certificate, may hold the words below.
    (r"^SaslAuthenticationFailed: ", NOT_LET_IN),
    (r"^UnsupportedSaslMechanism: ", NO_MECHANISM),
    (r"CERTIFICATE_VERIFY_FAILED[^(]*(?:: ([^(]+))?", UNTRUSTED),
    (r"ECONNREFUSED|Connection refused", REFUSED),
    (r"Name or service not known|gaierror|DNS|resolve|'idna' codec", UNKNOWN_HOST),
    (r"WRONG_VERSION_NUMBER|UNEXPECTED_EOF|record layer failure", NO_TLS),
    (r"Handshake failed", NO_HANDSHAKE),
    (r"SaslAuthenticationFailed|Authentication failed|invalid credentials", NOT_LET_IN),
    (r"UnsupportedSaslMechanism|mechanism", NO_MECHANISM),
    (r"controller \(no metadata support\)", CONTROLLER),
    (r"timed? ?out|Timeout|ETIMEDOUT", NO_ANSWER),
    (r"socket disconnected|ECONNRESET|reset by peer", ENDED),
    (r"^Ended: ", "the connections were closed meanwhile"),
    (r"No route to host|EHOSTUNREACH|ENETUNREACH", NO_ROUTE),
)
# A broker that refuses for one of these reasons refuses again, and may finally lock the user out.
FINAL = frozenset({UNTRUSTED, NO_TLS, NOT_LET_IN, NO_MECHANISM})
# Causes that say nothing about the host that accepted a connection.
UNREACHABLE = frozenset({NO_ANSWER, REFUSED, UNKNOWN_HOST, NO_ROUTE})


def cause_of(error: BaseException) -> str:
    """The cause as a clause."""
    text = text_of(error)
    return cause_in(text) or text.splitlines()[0][:200]


def text_of(error: BaseException) -> str:
    """What an error says, with its name."""
    return error.message if isinstance(error, KctlError) else f"{type(error).__name__}: {error}"


def cause_among(messages: Sequence[str], *, with_sasl: bool) -> str:
    """The cause in the last message that has one; NO_ANSWER only if no message has another."""
    causes = [cause for message in reversed(messages) if (cause := cause_in(message))]
    telling = [cause for cause in causes if cause != NO_ANSWER]
    if not causes:
        return (messages[1] if len(messages) > 1 else messages[0]).splitlines()[0][:200]
    cause = (telling or causes)[0]
    return ENDED_SASL if cause == ENDED and with_sasl else cause


def cause_in(text: str) -> str | None:
    return next((meaning for pattern, meaning in CAUSES if re.search(pattern, text, re.IGNORECASE)), None)


Check = Callable[[str, int], Diagnosis | None]


def refuse_unusable(servers: Sequence[str], seconds: float, check: Check, *, only_sure: bool = False) -> None:
    """Return when the check finds nothing wrong with a server. Raises KctlError with each distinct cause if it does with all.

    With `only_sure` it also returns where no server is known to be wrong for good.

    A client would wait for a host that says nothing for as long as an answer may take, and know no cause.
    """
    found = diagnoses(servers, seconds, check)
    if None in found.values():
        return
    hosts: dict[str, list[str]] = {}
    for server, diagnosis in found.items():
        assert diagnosis is not None
        hosts.setdefault(diagnosis.clause, []).append(server)
    reasons = "; ".join(f"{', '.join(names)}: {cause}" for cause, names in hosts.items())
    known = [diagnosis for diagnosis in found.values() if diagnosis is not None]
    if only_sure and not any(diagnosis.is_sure for diagnosis in known):
        return
    raise KctlError(
        f"no broker of {','.join(servers)} can be used: {reasons if len(hosts) > 1 else next(iter(hosts))}",
        next((diagnosis.hint for diagnosis in known if diagnosis.is_sure), CHECK_ADDRESSES),
    )


def diagnoses(servers: Sequence[str], seconds: float, check: Check) -> dict[str, Diagnosis | None]:
    """What the check finds for each server, all checked at once; it ends with the first where it finds nothing."""
    results: queue.SimpleQueue[tuple[str, Diagnosis | None]] = queue.SimpleQueue()

    def run(server: str) -> None:
        host, _, port = server.rpartition(":")
        try:
            results.put((server, check(host.strip("[]"), int(port))))
        except Exception as error:  # of names that cannot be one, and of ports beyond the last, too
            results.put((server, Diagnosis(cause_of(error), CHECK_ADDRESSES, is_sure=False)))

    for server in servers:
        threading.Thread(target=run, args=(server,), daemon=True).start()
    found: dict[str, Diagnosis | None] = {}
    end = time.monotonic() + seconds
    while len(found) < len(servers):
        try:
            server, diagnosis = results.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        found[server] = diagnosis
        if diagnosis is None:
            break
    silent = Diagnosis(NO_ANSWER, CHECK_ADDRESSES, is_sure=False)
    return {server: found.get(server, silent) for server in servers}


def accepts(seconds: float) -> Check:
    """A check that a host accepts a connection."""

    def connect(host: str, port: int) -> None:
        socket.create_connection((host, port), timeout=seconds).close()

    return connect
