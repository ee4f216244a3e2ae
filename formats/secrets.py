"""Redact secrets in configurations, znodes, records of metadata, URIs and texts.

A secret is replaced before its value is stored in a row, a file or an error. What cannot be searched reliably (torn
JSON, duplicate keys, an unknown form) is not shown at all: its length and digest stand in its place.

Source: `ConfigDef.Type.PASSWORD` in clients/src/main/java/org/apache/kafka/common/config/{SslConfigs,SaslConfigs}.java,
core/src/main/scala/kafka/server/{KafkaConfig,DynamicBrokerConfig}.scala and connect/runtime @ 3.9.0-rc3;
org/apache/kafka/common/security/scram/internals/ScramCredentialUtils.java @ 2.8.2
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

REDACTED = "(redacted)"
WITHHELD = REDACTED[:-1].encode()  # how a content begins that an export leaves out
# Kafka's keys of type PASSWORD and those of its plug-ins, whatever listener, mechanism or plug-in prefix they have.
SECRET_KEY = re.compile(
    r"^scram-sha-|passw(or)?d|passphrase|passcode|jaas[._]config|credential(?!s?\.(provider|class|file|url))|hmac"
    r"|secret(?!\.?(provider|file|path|name|version))"
    r"|(ssl|tls)\.keystore\.(key|certificate\.chain)$|(ssl|tls)\.truststore\.certificates$"
    r"|(private|master|account|access|api|storage|shared|encryption)[._-]?key(?!\.?(id|path|file|alias|name))s?$"
    r"|account\.key\."
    r"|(^|[._-])(sas|auth|access|bearer|refresh|session|security|api|personal)?[._-]?token$"
    r"|connection[._-]?string$|basic[._-]auth|user[._-]info$|stored_?key$|server_?key$|(^|[._-])salt$",
    re.IGNORECASE,
)
# A znode below a chroot of any depth.
TOKEN_PATH = re.compile(r"(^|/)delegation_token/tokens/.")
CONFIG_PATH = re.compile(r"(^|/)config/(users|brokers|clients|topics|ips|groups)/.")
SECRET_WORD = re.compile(
    rb"scram-sha-|passw|passphrase|jaas|secret|credential|hmac|private.?key|\btoken\b|sig=|accountkey",
    re.IGNORECASE,
)
# Where secrets stand in texts: the user of a URI, parameters of a query, parts of a connection string, JAAS options.
# Placeholders, as in `NAME=VALUE` and `export NAME=...`, are no secrets.
VALUE = r"(?!\(redacted\)|(?:VALUE|\.\.\.)(?=[`'\"\s,;})]|$))(\"[^\"\n]*\"?|'[^'\n]*'?|[^\s&;,'\"<>)}\]]+)"
NAMED = (
    # A topic or a group may have such a name, and requests have; what is said of it is no secret.
    r"(?i)(?<![\w.-])(?<!\btopic )(?<!\bgroup )(?!(?-i:(?:Describe|Alter)UserScramCredentials): )"
    # Nor is the line in a file.
    r"([\w.-]*(?:passw(?:or)?d|passphrase|secret|credential)[\w.-]*)"
    r"(?!(?:(?<=\.yaml)|(?<=\.yml)|(?<=\.json)|(?<=\.properties)|(?<=\.toml)):\d+(?:[:\s,;]|$))([\"']?\s*(?:[=:]|%3D)\s*)",
    r"(?i)\b([\w.-]*(?:signature|token|hmac|api[_-]?key|access[_-]?key(?:[_-]?id)?|account[._-]?key(?:\.[\w.-]+)?|shared[_-]?key)|sig"
    r"|x-(?:amz|goog)-(?:signature|credential|security-token))([\"']?\s*(?:=|%3D)\s*)",
    # What clients of stores call it in the query of a URL.
    r"(?i)(?<=[?&])([\w.%-]*(?:key|connection_string|keyfile_content|auth))(=)",
)
AUTHORIZATION = (
    r"(?i)\b(authorization[\"']?\s*[=:]\s*[\"']?)(?!\(redacted\))(?:(?:bearer|basic)\s+)?[^\s,;'\"]+"
)
# Credentials without the name of their header; words that follow "basic" hold no digit and no padding.
BARE = r"(?i)\b(basic|bearer)(\s+)(?=[\w+/.~-]*[0-9+/=])[\w+/.~-]{8,}={0,2}"
# Oracle's form of a user and a password.
JDBC_USER = r"(?i)(\bjdbc:[\w:.-]+:)[\w.$-]+/[^\s/@]+(?=@)"
# A password may hold what ends the host of a URI, as half of the keys of AWS do; a port is none.
USER = (
    re.compile(r"(?<=://)(?![\w.-]+:\d{1,5}(?:[/?#,;]|$))[^/\s@:?#'\"]*:[^\s'\"<>]+(?=@)"),
    re.compile(r"(?<=://)[^/\s@?#'\"]+(?=@)"),
    re.compile(r"(?<![\w/.:@-])[\w.+%-]+:[^/\s:@'\",]+(?=@[\w-])"),
)
SUSPECT = re.compile(
    r"(?i)://[^\s]*@|:[^\s/@]+@|jdbc:|basic\s|bearer\s|passw|passphrase|secret|sig|credential|token|hmac|authorization"
    r"|key[\w.-]*[\"']?\s*(?:=|%3D)|[?&][\w.%-]*(?:connection_string|auth)="
)


@cache
def _texts() -> tuple[tuple[re.Pattern[str], str], ...]:
    return (
        *((user, REDACTED) for user in USER),
        (re.compile(JDBC_USER), rf"\1{REDACTED}"),
        (re.compile(AUTHORIZATION), rf"\1{REDACTED}"),
        (re.compile(BARE), rf"\1\2{REDACTED}"),
        *((re.compile(named + VALUE), rf"\1\2{REDACTED}") for named in NAMED),
    )


@lru_cache(4096)  # of the same few keys many are asked about
def is_secret_key(key: str) -> bool:
    """Whether a configuration key, or a field of a record, holds a secret."""
    return SECRET_KEY.search(key) is not None


def redact_text(text: str) -> str:
    """The text without the users of URIs, signatures, and values of keys that name a secret."""
    if SUSPECT.search(text):
        for pattern, replacement in _texts():
            text = pattern.sub(replacement, text)
    return text


def withheld(data: bytes) -> str:
    """The text that replaces secret content: its length and digest."""
    from hashlib import sha256  # most that is read holds no secret

    return f"{WITHHELD.decode()}: {len(data)} bytes, sha256 {sha256(data).hexdigest()})"


def redact_values(values: Any) -> Any:
    """JSON values with the secrets in them replaced at any depth; the very same object where there are none."""
    if isinstance(values, Mapping):
        named = values.get("name")
        is_pair = isinstance(named, str) and "value" in values and is_secret_key(named)
        redacted = {
            key: REDACTED
            if value is not None and (is_secret_key(str(key)) or (is_pair and key == "value"))
            else redact_values(value)
            for key, value in values.items()
        }
        return values if all(redacted[key] is value for key, value in values.items()) else redacted
    if isinstance(values, list):
        items = [redact_values(value) for value in values]
        return values if all(new is old for new, old in zip(items, values, strict=True)) else items
    if isinstance(values, str):
        shown_text = redact_text(values)
        return values if shown_text == values else shown_text
    return values


def redact(path: str, data: bytes) -> bytes:
    """A znode's content with secrets replaced; the very same bytes where there are none."""
    if not data:
        return data
    if TOKEN_PATH.search(path):
        return withheld(data).encode()
    is_config = CONFIG_PATH.search(path) is not None
    if not is_config and not SECRET_WORD.search(data.replace(b"\0", b"")):
        return data
    import json

    from formats import bounded_json

    try:
        values = bounded_json.loads(data.decode("utf-8"), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError):
        return withheld(data).encode()
    if is_config and not _is_flat(values):
        return withheld(data).encode()
    try:
        redacted = redact_values(values)
        if redacted is values:
            return data
        return json.dumps(redacted, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )
    except RecursionError:
        return withheld(data).encode()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("duplicate key")
    return values


def _is_flat(values: Any) -> bool:
    """Whether it has the form of a configuration: text by text, in an object that says its version."""
    config = values.get("config") if isinstance(values, dict) else None
    return (
        isinstance(config, dict)
        and all(isinstance(value, str) for value in config.values())
        and all(isinstance(value, (int, str)) for key, value in values.items() if key != "config")
    )
