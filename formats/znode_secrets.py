"""What in a znode is nobody's business: SCRAM credentials, broker passwords, delegation tokens.

Source: clients/src/main/java/org/apache/kafka/common/security/scram/internals/ScramCredentialUtils.java,
core/src/main/scala/kafka/server/DynamicBrokerConfig.scala @ 2.8.2 (`ConfigDef.Type.PASSWORD`)
"""

import re

from formats.errors import FormatError
from formats.znode_json import Json, encode, parse_object

REDACTED = "(redacted)"
# Kafka's keys of type password end in one of these, whatever listener prefix stands before them.
SECRET_KEY = re.compile(
    r"(^SCRAM-SHA-)|(password$)|(\.jaas\.config$)|(secret)|(credentials?$)|(ssl\.keystore\.(key|certificate\.chain)$)|(ssl\.truststore\.certificates$)",
    re.I,
)
SECRET_PATHS = ("/delegation_token/tokens/",)
CONFIG_PATHS = ("/config/",)


def is_secret_key(key: str) -> bool:
    """Whether a configuration key holds a secret."""
    return SECRET_KEY.search(key) is not None


def redact(path: str, data: bytes) -> bytes:
    """The znode's content with secrets replaced; the very same bytes where there are none."""
    if path.startswith(SECRET_PATHS):
        return REDACTED.encode() if data else data
    if not path.startswith(CONFIG_PATHS) or path.startswith("/config/changes"):
        return data
    try:
        values = parse_object(data)
    except FormatError:
        # What cannot be parsed cannot be searched either, and it may hold a password.
        return REDACTED.encode() if data and SECRET_KEY.search(data.decode("latin-1")) else data
    config = values.get("config")
    if not isinstance(config, dict) or not any(map(is_secret_key, config)):
        return data
    shown: dict[str, Json] = {k: REDACTED if is_secret_key(k) else v for k, v in config.items()}
    return encode({**values, "config": shown})
