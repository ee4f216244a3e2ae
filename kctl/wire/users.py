"""SCRAM credentials over the Admin protocol: described, written, deleted.

Source: clients/src/main/resources/common/message/{DescribeUserScramCredentials,AlterUserScramCredentials}Request.json @ 4.3.0
(KIP-554); metadata/src/main/java/org/apache/kafka/controller/ScramControlManager.java @ 3.9.0-rc3
"""

from collections.abc import Collection

from kafka.protocol.admin.users import DescribeUserScramCredentialsRequest

from formats.znodes.security import SCRAM_MECHANISMS
from kctl.wire.adapter import BrokerError, Wire, error_name

RESOURCE_NOT_FOUND = 91


def read_users(wire: Wire, names: Collection[str] | None = None) -> dict[str, dict[str, int]]:
    """The iterations of each user by mechanism: of these users (those that have none are left out), or of all.

    Raises KctlError where the brokers do not tell.
    """
    kind = DescribeUserScramCredentialsRequest.UserName
    wanted = None if names is None else [kind(name=name) for name in sorted(names)]
    answer = wire.read(DescribeUserScramCredentialsRequest(users=wanted))
    results = [(None, answer), *((str(result.user), result) for result in answer.results or ())]
    users = {}
    for user, result in results:
        if result.error_code == RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            message = (result.error_message or "").rstrip(".") or "they are not described"
            raise BrokerError(f"credentials of users: {message} ({error_name(result.error_code)})")
        if user is not None:
            users[user] = {
                SCRAM_MECHANISMS.get(info.mechanism, str(info.mechanism)): int(info.iterations)
                for info in result.credential_infos
            }
    return users
