"""SCRAM credentials over the Admin protocol: described, written, deleted.

Source: clients/src/main/resources/common/message/{DescribeUserScramCredentials,AlterUserScramCredentials}Request.json @ 4.3.0
(KIP-554); metadata/src/main/java/org/apache/kafka/controller/ScramControlManager.java @ 3.9.0-rc3
"""

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from formats.znodes.security import SCRAM_MECHANISMS
from kctl.access.users import Salted, password_not_kept
from kctl.access.view import USERS
from kctl.changes.kinds.access import DeleteScram, SetScram
from kctl.cluster.intent import Intent, Write
from kctl.cluster.interface import Conflict
from kctl.model import Json
from kctl.wire.adapter import Wire
from kctl.wire.protocol.messages import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from kctl.wire.rights import failure
from kctl.wire.writes.planning import request
from kctl.wire.writes.requests import OwnRequest, Quantifier, RequestItem, ask

RESOURCE_NOT_FOUND = 91
ALTER = "AlterUserScramCredentials"


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


def set_scram(wire: Wire, intent: Intent) -> list[Write]:
    """Nothing: the password is known only while the command runs that was given it. Raises Refused."""
    raise password_not_kept(intent)


def scram_writes(intent: SetScram, passwords: Mapping[str, Salted]) -> tuple[Write, ...]:
    """The requests that give a user credentials: one a mechanism. Contents are secrets."""
    writes = []
    for mechanism, password in sorted(passwords.items()):
        after: dict[str, Json] = {
            "user": intent.user,
            "mechanism": mechanism,
            "iterations": password.iterations,
            "salt": b64encode(password.salt).decode(),
            "salted_password": b64encode(password.salted_password).decode(),
        }
        writes.append(_request(intent.user, mechanism, after, intent.previous_mechanisms))
    return tuple(writes)


def delete_scram(wire: Wire, intent: Intent) -> list[Write]:
    """The requests that take credentials away, where they are still there."""
    assert isinstance(intent, DeleteScram)
    present = read_users(wire, [intent.user]).get(intent.user, {})
    return [
        _request(intent.user, mechanism, {"user": intent.user, "mechanism": mechanism}, intent.mechanisms)
        for mechanism in sorted(intent.mechanisms)
        if mechanism in present
    ]


def _request(user: str, mechanism: str, after: Mapping[str, Json], expected: Mapping[str, int]) -> Write:
    before: Json = {"iterations": expected.get(mechanism)}
    return request(ALTER, f"{mechanism} of user {user}", after, before)


TRANSLATIONS = {"set-scram": set_scram, "delete-scram": delete_scram}


def _send(wire: Wire, after: Mapping[str, Any]) -> Iterator[RequestItem]:
    number = next(number for number, name in SCRAM_MECHANISMS.items() if name == after["mechanism"])
    deletions, upsertions = [], []
    if "salted_password" in after:
        upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=after["user"],
            mechanism=number,
            iterations=after["iterations"],
            salt=b64decode(after["salt"]),
            salted_password=b64decode(after["salted_password"]),
        )
        upsertions.append(upsertion)
    else:
        kind = AlterUserScramCredentialsRequest.ScramCredentialDeletion
        deletions.append(kind(name=after["user"], mechanism=number))
    message = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    for result in ask(wire, message).results:
        yield RequestItem(f"user {result.user}", result.error_code, result.error_message)


def _is_done(wire: Wire, after: Mapping[str, Any], _: Quantifier) -> bool:
    present = read_users(wire, [after["user"]]).get(after["user"], {})
    return present.get(after["mechanism"]) == after.get("iterations")


def _refuse_changed(wire: Wire, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raise Conflict if the user's credential is not as it was read; a password set meanwhile does not show."""
    present = read_users(wire, [after["user"]]).get(after["user"], {})
    if present.get(after["mechanism"]) != before["iterations"]:
        raise Conflict(
            f"{after['mechanism']} of user {after['user']} was changed by somebody else; nothing was written"
        )


REQUESTS = {ALTER: OwnRequest(_send, _is_done, _refuse_changed)}
