"""Why a connection failed, as a clause: kafka-python tells its log alone."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

ENDED = "it ends the connection (TLS or SASL needed?)"
ENDED_SASL = "it ends the connection (are user, password and mechanism right?)"
NO_ANSWER = "no answer in time"
UNTRUSTED = "the certificate is not trusted"
NO_TLS = "it does not speak TLS there"
NOT_LET_IN = "user or password is wrong"
NO_MECHANISM = "the SASL mechanism is not enabled there"
CAUSES = (
    (r"ECONNREFUSED|Connection refused", "connection refused"),
    (r"Name or service not known|gaierror|DNS|resolve", "the host name is not known"),
    (r"CERTIFICATE_VERIFY_FAILED[^(]*(?:: ([^(]+))?", UNTRUSTED),
    (r"WRONG_VERSION_NUMBER|UNEXPECTED_EOF|record layer failure", NO_TLS),
    (r"Handshake failed", "the TLS handshake failed"),
    (r"SaslAuthenticationFailed|Authentication failed|invalid credentials", NOT_LET_IN),
    (r"UnsupportedSaslMechanism|mechanism", NO_MECHANISM),
    (r"controller \(no metadata support\)", "that is a controller's listener, not a broker's"),
    (r"timed? ?out|Timeout|ETIMEDOUT", NO_ANSWER),
    (r"socket disconnected|ECONNRESET|reset by peer", ENDED),
    (r"No route to host|EHOSTUNREACH|ENETUNREACH", "there is no route to it"),
)
# A broker that refuses for one of these reasons does so again, and may lock the user out in the end.
FINAL = frozenset({UNTRUSTED, NO_TLS, NOT_LET_IN, NO_MECHANISM})
ATTEMPT = "Bootstrap connection to"
NOISE = ("not ready; waiting", "Unable to bootstrap")


def cause_of(error: BaseException) -> str:
    """Why it failed."""
    text = f"{type(error).__name__}: {error}"
    return _cause_in(text) or text.splitlines()[0][:200]


def cause_among(words: Sequence[str], *, with_sasl: bool) -> str:
    """Why, by the last of the words that tell; that nobody answered in time only where none tells more."""
    found = [cause for said in reversed(words) if (cause := _cause_in(said))]
    told = [cause for cause in found if cause != NO_ANSWER]
    if not found:
        return (words[1] if len(words) > 1 else words[0]).splitlines()[0][:200]
    cause = (told or found)[0]
    return ENDED_SASL if cause == ENDED and with_sasl else cause


def _cause_in(text: str) -> str | None:
    return next((meaning for pattern, meaning in CAUSES if re.search(pattern, text, re.IGNORECASE)), None)


class Heard(logging.Handler):
    """What the library says, and how often a broker refused for good."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.words: list[str] = []
        self.refusals = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        said = record.getMessage()
        if any(noise in said for noise in NOISE):
            return
        self.words.append(said)
        self.refusals += said.startswith(ATTEMPT) and _cause_in(said) in FINAL


@contextmanager
def listening() -> Iterator[Heard]:
    """What is said meanwhile."""
    heard, logger = Heard(), logging.getLogger("kafka.net")
    logger.addHandler(heard)
    try:
        yield heard
    finally:
        logger.removeHandler(heard)
