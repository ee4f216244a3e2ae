"""The JSON Schema of files, for editors: made from the tables of keys that the reader goes by."""

from collections.abc import Mapping

from formats.znodes.security import SCRAM_MECHANISMS
from kctl.access.acl import OPERATIONS
from kctl.access.quotas import QUOTA_NAMES
from kctl.access.users import FEWEST_ITERATIONS, MOST_ITERATIONS
from kctl.cluster_file.resources import PARTITIONS, REPLICAS, REPLICATION_FACTOR, SECTIONS
from kctl.cluster_file.sections import ACL_KEYS, CONFIG_SECTIONS, QUOTA_KEYS, TOPIC_KEYS, USER_KEYS
from kctl.model import Json

SCALAR: Json = {"type": ["string", "number", "boolean", "null"]}
TEXTS: Json = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
VARIABLE: Json = {"type": "string", "pattern": r"\$\{"}


def _number(lowest: int, highest: int | None = None) -> Json:
    limits: dict[str, Json] = {"type": "integer", "minimum": lowest}
    if highest is not None:
        limits["maximum"] = highest
    return {"anyOf": [limits, VARIABLE]}


def _values(of: Json) -> Json:
    return {"type": ["object", "null"], "additionalProperties": of}


CONFIGS = _values({"anyOf": [SCALAR, {"type": "array", "items": SCALAR}]})
TYPES: Mapping[str, Json] = {
    PARTITIONS: _number(1),
    REPLICATION_FACTOR: _number(1),
    REPLICAS: TEXTS,
    "configs": CONFIGS,
    "labels": {},
    "cluster": {"const": True},
    "pattern": {"enum": ["literal", "prefixed"]},
    "permission": {"enum": ["allow", "deny"]},
    "operations": {
        "anyOf": [
            {"enum": list(OPERATIONS.values())},
            {"type": "array", "items": {"enum": list(OPERATIONS.values())}, "minItems": 1},
        ]
    },
    "mechanisms": {
        "anyOf": [
            {"enum": list(SCRAM_MECHANISMS.values())},
            {"type": "array", "items": {"enum": list(SCRAM_MECHANISMS.values())}, "minItems": 1},
            {
                "type": "object",
                "propertyNames": {"enum": list(SCRAM_MECHANISMS.values())},
                "additionalProperties": _number(FEWEST_ITERATIONS, MOST_ITERATIONS),
            },
        ]
    },
    **{key: {"type": ["number", "string", "null"]} for key in QUOTA_NAMES},
    **{key: {"type": "string"} for key in ("user", "client_id", "ip", "placement")},
}


def _body(keys: Mapping[str, str], of_rules: bool = False) -> dict[str, Json]:
    properties: dict[str, Json] = {}
    for name, words in keys.items():
        of = TEXTS if of_rules and (name == "user" or name not in TYPES) else TYPES.get(name, {})
        assert isinstance(of, dict)
        properties[name] = {"description": words, **of}
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def file_schema() -> dict[str, Json]:
    """The JSON Schema (draft 2020-12) of a file that `kctl apply` reads."""
    topic = _body(TOPIC_KEYS)
    names: Json = {"enum": ["all"]}
    sections: dict[str, Json] = {
        "kctl": {"const": 1, "description": "The format."},
        "include": {"description": "Files that are read before this one, from its folder.", **_dict(TEXTS)},
        "variables": {"description": "Values of ${name}, under those of --set.", **_dict(_values(SCALAR))},
        "labels": {"description": "Anything; kctl ignores it."},
        "manage": {
            "description": "The kinds of which the files hold all that there is to be: all, or patterns of names.",
            "type": ["object", "null"],
            "properties": {key: {"anyOf": [names, TEXTS]} for key in SECTIONS},
            "additionalProperties": False,
        },
        "defaults": {
            "description": "Values for topics by pattern; of several that fit, the later stands above.",
            "type": ["object", "null"],
            "properties": {"topics": _values(topic)},
            "additionalProperties": False,
        },
        "users": _values(_body(USER_KEYS)),
        "topics": _values(topic),
        **{section: _values(CONFIGS) for section in CONFIG_SECTIONS},
        "quotas": {"type": ["array", "null"], "items": _body(QUOTA_KEYS)},
        "acls": {
            "type": ["array", "null"],
            "items": {**_body(ACL_KEYS, of_rules=True), "required": ["principals", "operations"]},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a file that kctl apply reads",
        "type": ["object", "null"],
        "properties": sections,
        "additionalProperties": False,
    }


def _dict(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value
