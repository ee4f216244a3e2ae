"""What files can hold of what a cluster has. The rest is left out of exports and of comparisons alike, and said."""

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from formats.values import replace
from formats.znodes.security import SCRAM_MECHANISMS
from kctl.access.quotas import QUOTA_NAMES
from kctl.cluster.state import DEFAULT
from kctl.cluster_file.resources import SHAPE, Resource, Value
from kctl.cluster_file.sections import is_rule_to_hold, number_text, quota_name, quota_resource


def configs_to_hold(topic: str, configs: Mapping[str, str], left_out: list[str]) -> dict[str, str]:
    """The configuration of a topic without the keys that are the names of something else in files."""
    for key in SHAPE:
        if key in configs:
            left_out.append(
                f"topic {topic}: the configuration {key}, whose name means something else in files"
            )
    return {key: value for key, value in configs.items() if key not in SHAPE}


def quota_to_hold(
    user: str | None, client_id: str | None, ip: str | None, values: Mapping[str, str], left_out: list[str]
) -> Resource | None:
    """A quota of which files can hold something; a name is `<default>` only where it is everybody else."""
    whose = quota_name(user, client_id, ip)
    fields: dict[str, Value] = {}
    for key, value in values.items():
        if key in SCRAM_MECHANISMS.values():
            continue
        number = number_text(value) if key in QUOTA_NAMES else None
        if number is None:
            left_out.append(
                f"quota {whose}: {key}={value}, which is no quota that kctl knows with a value that it can have"
            )
        else:
            fields[key] = number
    return quota_resource(user, client_id, ip, fields) if fields else None


def stored_quota(
    entity_type: str, name: str, values: Mapping[str, str], left_out: list[str]
) -> Resource | None:
    """The quota of a stored configuration, in whose name users and clients are percent-encoded."""
    first, separator, second = name.partition("/clients/") if entity_type == "users" else (name, "", "")
    decoded = [part if entity_type == "ips" else unquote(part) for part in (first, second)]
    if any(text == DEFAULT != part for text, part in zip(decoded, (first, second), strict=True)):
        left_out.append(f"quota of {entity_type} {name}: in files {DEFAULT} is everybody else")
        return None
    whom, client = decoded[0], decoded[1] if separator else None
    if entity_type == "ips":
        return quota_to_hold(None, None, whom, values, left_out)
    if entity_type == "clients":
        return quota_to_hold(None, whom, None, values, left_out)
    return quota_to_hold(whom, client, None, values, left_out)


def to_hold(resources: Iterable[Resource], left_out: list[str]) -> Iterator[Resource]:
    """The resources without what is no text: half of a pair of surrogates, which no file in UTF-8 has."""
    for resource in resources:
        names = (resource.name, *(resource.acl or ()), *(resource.entity or ()))
        whole = f"{resource.kind.replace('_', ' ')} {resource.name}"
        if not all(map(_is_text, names)):
            left_out.append(f"{whole}: its name is no text")
            continue
        if resource.acl and not is_rule_to_hold(resource.acl.resource_type, resource.acl.resource_name):
            left_out.append(f"rule {whole}: no broker knows such a resource")
            continue
        broken = [key for key, value in resource.fields.items() if not _is_text(f"{key}{value}")]
        if broken:
            left_out.extend(f"{whole}: {key}, which is no text" for key in broken)
            kept = {key: value for key, value in resource.fields.items() if key not in broken}
            resource = replace(resource, fields=kept)
        yield resource


def _is_text(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
