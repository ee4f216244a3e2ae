"""SCRAM credentials over the Admin protocol: described, written, deleted.

Source: clients/src/main/resources/common/message/{DescribeUserScramCredentials,AlterUserScramCredentials}Request.json @ 4.3.0
(KIP-554); metadata/src/main/java/org/apache/kafka/controller/ScramControlManager.java @ 3.9.0-rc3
"""

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar

from formats.values import Struct
from formats.znodes.security import SCRAM_MECHANISMS
from kctl.access.users import Salted, password_not_kept
from kctl.access.view import USERS
from kctl.changes.kinds.access import DeleteScram, SetScram
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Conflict
from kctl.cluster.state import ClusterState
from kctl.wire.adapter import Wire
from kctl.wire.protocol.messages import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from kctl.wire.rights import failure
from kctl.wire.writes.requests import Quantifier, Request, RequestItem, ask

RESOURCE_NOT_FOUND = 91


def read_users(wire: Wire, names: Collection[str] | None = None) -> dict[str, dict[str, int]]:
    """The iterations of each user by mechanism: of these users (those that have none are left out), or of all.

    Raises KctlError where the brokers do not tell.
    """
    kind = DescribeUserScramCredentialsRequest.UserName
    # No list stands for all users as an empty one does, but a broker that may not tell then fails without an answer.
    wanted = [kind(name=name) for name in sorted(names or ())]
    answer = wire.read(DescribeUserScramCredentialsRequest(users=wanted))
    results = [(None, answer), *((str(result.user), result) for result in answer.results or ())]
    users = {}
    for user, result in results:
        if result.error_code == RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            raise failure(
                wire, USERS, "DescribeUserScramCredentials", result.error_code, "", result.error_message
            )
        if user is not None:
            users[user] = {
                SCRAM_MECHANISMS.get(info.mechanism, str(info.mechanism)): int(info.iterations)
                for info in result.credential_infos
            }
    return users


# --- changes --------------------------------------------------------------------------------------------


def set_scram(wire: Wire, intent: Intent) -> list[Request]:
    """Nothing: the password is known only while the command runs that was given it. Raises Refused."""
    raise password_not_kept(intent)


class KnownIterations(Struct, frozen=True):
    """The iterations of the credential that a request was computed from; None where there was none."""

    iterations: int | None


class AlterUserScramCredentials(Request, frozen=True, kw_only=True):
    """A user's credential of one mechanism: written, or without its password deleted. Contents are secrets."""

    is_to_be_seen: ClassVar[bool] = True
    expected: KnownIterations
    user: str
    mechanism: str
    iterations: int | None = None
    salt: str | None = None
    salted_password: str | None = None

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = AlterUserScramCredentialsRequest
        number = next(number for number, name in SCRAM_MECHANISMS.items() if name == self.mechanism)
        if self.salt is not None and self.salted_password is not None:
            upsertion = kind.ScramCredentialUpsertion(
                name=self.user,
                mechanism=number,
                iterations=self.iterations,
                salt=b64decode(self.salt),
                salted_password=b64decode(self.salted_password),
            )
            message = kind(deletions=[], upsertions=[upsertion])
        else:
            deletion = kind.ScramCredentialDeletion(name=self.user, mechanism=number)
            message = kind(deletions=[deletion], upsertions=[])
        for result in ask(wire, message).results:
            yield RequestItem(f"user {result.user}", result.error_code, result.error_message)

    def _present(self, wire: Wire) -> int | None:
        return read_users(wire, [self.user]).get(self.user, {}).get(self.mechanism)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        return self._present(wire) == self.iterations

    def refuse_other_answers(self, wire: Wire) -> None:
        """Raise Conflict if the user's credential is not as it was read; a password set meanwhile does not show."""
        if self._present(wire) != self.expected.iterations:
            raise Conflict(
                f"{self.mechanism} of user {self.user} was changed by somebody else; nothing was written"
            )


def scram_writes(intent: SetScram, passwords: Mapping[str, Salted]) -> tuple[Request, ...]:
    """The requests that give a user credentials: one a mechanism."""
    return tuple(
        AlterUserScramCredentials(
            about=f"{mechanism} of user {intent.user}",
            expected=KnownIterations(intent.previous_mechanisms.get(mechanism)),
            user=intent.user,
            mechanism=mechanism,
            iterations=password.iterations,
            salt=b64encode(password.salt).decode(),
            salted_password=b64encode(password.salted_password).decode(),
        )
        for mechanism, password in sorted(passwords.items())
    )


def delete_scram(wire: Wire, intent: Intent) -> list[Request]:
    """The requests that take credentials away, where they are still there."""
    assert isinstance(intent, DeleteScram)
    present = read_users(wire, [intent.user]).get(intent.user, {})
    return [
        AlterUserScramCredentials(
            about=f"{mechanism} of user {intent.user}",
            expected=KnownIterations(intent.mechanisms.get(mechanism)),
            user=intent.user,
            mechanism=mechanism,
        )
        for mechanism in sorted(intent.mechanisms)
        if mechanism in present
    ]
