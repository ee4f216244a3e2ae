"""Access control, delegation tokens and SCRAM credentials in znodes.

Source: core/src/main/scala/kafka/security/authorizer/AclEntry.scala, core/src/main/scala/kafka/zk/ZkData.scala @ 3.9.0-rc3;
core/src/main/scala/kafka/server/DelegationTokenManagerZk.scala @ 3.9.0-rc3;
clients/src/main/java/org/apache/kafka/common/security/scram/internals/ScramCredentialUtils.java @ 3.9.0-rc3
"""

import base64
import binascii
import re
from typing import NamedTuple
from urllib.parse import unquote

from formats.errors import FormatError
from formats.znodes.json_text import integer, objects, optional_text, parse_object, required_long, text

SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class AclRule(NamedTuple):
    """A rule: who may (or may not) do what, from where, as spelled in the znode: `DescribeConfigs`, `Allow`."""

    principal: str
    host: str
    operation: str
    permission_type: str


def protocol_name(name: str) -> str:
    """`DescribeConfigs` in Kafka's protocol: `DESCRIBE_CONFIGS`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def parse_acls(data: bytes | None) -> tuple[AclRule, ...]:
    """The rules of a resource."""
    values = parse_object(data)
    integer(values, "version", 1)
    return tuple(
        AclRule(*(text(rule, key) for key in ("principal", "host", "operation", "permissionType")))
        for rule in objects(values, "acls")
    )


class DelegationTokenZnode(NamedTuple):
    """A delegation token without its secret, which is computed from a key of the brokers; times are milliseconds."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


def parse_delegation_token(data: bytes | None) -> DelegationTokenZnode:
    """A delegation token; names of principals are percent-encoded."""
    values = parse_object(data)
    integer(values, "version", 1)
    text(values, "tokenId")
    renewers = values.get("renewers") or []
    if not isinstance(renewers, list) or any(not isinstance(renewer, str) for renewer in renewers):
        raise FormatError("renewers is not a list of texts", 0)
    owner = text(values, "owner")
    return DelegationTokenZnode(
        unquote(owner),
        unquote(optional_text(values, "tokenRequester") or owner),  # from version 3
        tuple(unquote(str(renewer)) for renewer in renewers),
        required_long(values, "issueTimestamp"),
        required_long(values, "maxTimestamp"),
        required_long(values, "expiryTimestamp"),
    )


class ScramCredential(NamedTuple):
    """A broker's record of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @property
    def digest(self) -> str:
        """A digest that distinguishes credentials without revealing them."""
        from hashlib import sha256

        content = b",".join(map(base64.b64encode, self[:3])) + b",%d" % self.iterations
        return f"sha256 {sha256(content).hexdigest()}"


def parse_scram(value: str) -> ScramCredential:
    """`salt=…,stored_key=…,server_key=…,iterations=…`. The error does not quote it."""
    parts = dict(part.partition("=")[::2] for part in value.split(","))
    try:
        salt, stored, server = (
            base64.b64decode(parts[key], validate=True) for key in ("salt", "stored_key", "server_key")
        )
        return ScramCredential(salt, stored, server, int(parts["iterations"]))
    except (KeyError, ValueError, binascii.Error):
        raise FormatError("not a SCRAM credential", 0) from None


def format_scram(credential: ScramCredential) -> str:
    """The inverse of `parse_scram`."""
    salt, stored, server = (base64.b64encode(part).decode() for part in credential[:3])
    return f"salt={salt},stored_key={stored},server_key={server},iterations={credential.iterations}"
