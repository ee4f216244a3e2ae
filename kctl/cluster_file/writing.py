"""Resources as a file: YAML or JSON, in one order, without what every reader adds by itself."""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from kctl.access.acl import CLUSTER, WILDCARD, Acl
from kctl.cluster.state import DEFAULT
from kctl.cluster_file.loading import FORMAT, SUFFIXES
from kctl.cluster_file.resources import REPLICAS, SECTIONS, SHAPE, Resource, by_key
from kctl.cluster_file.variables import REFERENCE
from kctl.errors import BadValue, Refused, file_error
from kctl.files import LARGEST_TEXT, read_whole
from kctl.model import Json, command_line

PLAIN = re.compile(r"[A-Za-z_](?:[\w./:@+-]*[\w./@+-])?|-?[1-9][0-9]{0,17}(?:\.[0-9]+)?|0", re.ASCII)
OTHER_WORDS = re.compile(
    r"(?i)null|y|n|yes|no|on|off"
)  # which other readers take for something else than text
LONGEST_KEY = 1000  # of a key in the form `key: value`, for which YAML allows 1,024 characters
BEYOND_ASCII = re.compile(r"[^\n -~]")
Comments = Mapping[str, Iterable[str]]


def document_of(resources: Iterable[Resource]) -> dict[str, Json]:
    """The content of a file that asks for these resources."""
    listed = by_key(resources).values()
    document: dict[str, Json] = {"kctl": int(FORMAT)}
    for section, kind in SECTIONS.items():
        of_kind = [resource for resource in listed if resource.kind == kind]
        if not of_kind:
            continue
        if kind == "acl":
            document[section] = list(_rules(resource.acl for resource in of_kind if resource.acl))
        elif kind == "quota":
            document[section] = [_quota(resource) for resource in of_kind]
        else:
            document[section] = {resource.name: _body(resource) for resource in of_kind}
    return {key: _literal(value) for key, value in document.items()}


def _literal(value: Json) -> Json:
    """The value so that `${...}` in it is read as it is, and not as a variable."""
    if isinstance(value, str):
        return REFERENCE.sub(lambda match: f"${match[0]}", value)
    if isinstance(value, list):
        return [_literal(item) for item in value]
    if isinstance(value, dict):
        return {str(_literal(key)): _literal(item) for key, item in value.items()}
    return value


def _body(resource: Resource) -> Json:
    if resource.kind == "user":
        known = dict(sorted(resource.fields.items()))
        if "" in known.values():
            return {"mechanisms": list(known)}
        return {"mechanisms": dict(known)}
    configs: dict[str, Json] = dict(sorted(resource.configs.items()))
    if resource.kind != "topic":
        return configs
    shape: dict[str, Json] = {key: resource.fields[key] for key in SHAPE if key in resource.fields}
    if REPLICAS in shape:  # which say the two numbers
        shape = {REPLICAS: list[Json](str(shape[REPLICAS]).split(","))}
    return {**shape, "configs": configs} if configs else shape


def _quota(resource: Resource) -> Json:
    entity = _whom(resource)
    values: dict[str, Json] = {}
    for key, value in sorted(resource.fields.items()):
        text = str(value)
        values[key] = int(text) if text.isdecimal() else float(text)
    return {**entity, **values}


def _whom(resource: Resource) -> dict[str, Json]:
    assert resource.entity is not None
    kind, name = resource.entity
    if kind == "ips":
        return {"ip": name}
    if kind == "clients":
        return {"client_id": unquote(name)}
    user, separator, client = name.partition("/clients/")
    return {"user": unquote(user), **({"client_id": unquote(client)} if separator else {})}


def _rules(acls: Iterable[Acl]) -> Iterator[Json]:
    """The rules; those that differ in their operations alone are one."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for acl in sorted(acls, key=lambda acl: (acl.principal, acl)):
        of = (acl.principal, acl.resource_type, acl.resource_name, acl.pattern_type, acl.host, acl.permission)
        grouped.setdefault(of, []).append(acl.operation)
    for (principal, kind, name, pattern, host, permission), operations in grouped.items():
        rule: dict[str, Json] = {
            "principals": principal,
            kind: True if (kind, name) == ("cluster", CLUSTER) else name,
        }
        if pattern != "literal":
            rule["pattern"] = pattern
        rule["operations"] = list(operations)
        if host != WILDCARD:
            rule["hosts"] = host
        if permission != "allow":
            rule["permission"] = permission
        yield rule


# --- text -----------------------------------------------------------------------------------------------


def yaml_lines(
    document: Mapping[str, Json], head: Iterable[str] = (), comments: Comments | None = None
) -> Iterator[str]:
    """The document as lines of YAML: `head` as comments before it, `comments` before `SECTION` or `SECTION/NAME`."""
    for line in head:
        yield _comment(line)
    for section, content in document.items():
        for line in (comments or {}).get(section, ()):
            yield _comment(line)
        if isinstance(content, dict):
            yield f"{section}:"
            for name, body in content.items():
                for line in (comments or {}).get(f"{section}/{name}", ()):
                    yield f"  {_comment(line)}"
                yield from _entry(name, body, "  ")
        else:
            yield from _entry(section, content, "")


def _comment(text: str) -> str:
    """A comment of one line, whatever it is about."""
    return "# " + "".join(c if c.isprintable() else " " for c in text)


def _entry(key: str, value: Json, indent: str) -> Iterator[str]:
    begins = f"{indent}{scalar(key)}:"
    if len(begins) > LONGEST_KEY:
        yield f"{indent}? {scalar(key)}"
        begins = f"{indent}:"
    if isinstance(value, dict) and value:
        yield begins
        for name, child in value.items():
            yield from _entry(name, child, f"{indent}  ")
    elif isinstance(value, list) and any(isinstance(child, dict) for child in value):
        yield begins
        for child in value:
            assert isinstance(child, dict)
            lines = [line for name, each in child.items() for line in _entry(name, each, f"{indent}    ")]
            first = f"{indent}  - {lines[0].removeprefix(f'{indent}    ')}"
            yield from (first, *lines[1:])
    else:
        yield f"{begins} {_flow(value)}"


def _flow(value: Json) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(scalar, value))}]"
    return "{}" if value == {} else scalar(value)


def scalar(value: Json) -> str:
    """A value in YAML, in quotes where it would be read as something else without them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    text = str(value)
    is_plain = PLAIN.fullmatch(text) and not OTHER_WORDS.fullmatch(text)
    return text if is_plain or text == DEFAULT else _quoted(text)


def _quoted(value: Json, indent: int | None = None) -> str:
    """The value in JSON, which readers of YAML take alike: they allow fewer characters, and no pair of escapes for one."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return BEYOND_ASCII.sub(
        lambda c: c[0] if c[0].isprintable() or c[0] > "\uffff" else f"\\u{ord(c[0]):04x}", text
    )


def with_remarks(document: Mapping[str, Json], head: Iterable[str], comments: Comments) -> dict[str, Json]:
    """The document with what stands in YAML as comments, as `remarks` among labels, which its reader ignores."""
    before = [*head, *(text for section in document for text in comments.get(section, ()))]
    remarked = {**_labels(before), **document}
    for section, content in document.items():
        bodies = content.items() if isinstance(content, dict) else ()
        added = {name: _labels(texts) for name, _ in bodies if (texts := comments.get(f"{section}/{name}"))}
        if isinstance(content, dict) and added:
            remarked[section] = {
                name: {**body, **added.get(name, {})} if isinstance(body, dict) else body
                for name, body in bodies
            }
    return remarked


def _labels(remarks: Iterable[str]) -> dict[str, Json]:
    texts = list[Json](remarks)
    return {"labels": {"remarks": texts}} if texts else {}


def json_text(
    document: Mapping[str, Json],
    head: Iterable[str] = (),
    comments: Comments | None = None,
    *,
    is_line: bool = False,
) -> str:
    """The document as JSON, or as one line of it, with `head` and `comments` as labels. Raises BadValue for a name too long."""
    _refuse_long_keys(dict(document))
    return _quoted(with_remarks(document, head, comments or {}), None if is_line else 2) + "\n"


def _refuse_long_keys(value: Json) -> None:
    """Raise BadValue for a key that no reader of YAML takes where JSON has it."""
    if isinstance(value, dict):
        for key, child in value.items():
            if len(key) * 6 > LONGEST_KEY and len(_quoted(key)) > LONGEST_KEY:
                raise BadValue(
                    f"a name of {len(key):,} characters, {key[:20]}..., is too long for JSON", "export YAML"
                )
            _refuse_long_keys(child)


class Target(NamedTuple):
    """Where an export is written, checked: a file, or a folder with a file for each section."""

    path: Path
    is_file: bool
    gone: tuple[Path, ...] = ()
    """Files of an earlier export, of sections that this one does not have, or has in a file of the other form."""
    suffix: str = ".yaml"
    """What the names of files in a folder end in."""


def target_of(
    to: str, sections: Collection[str], emptied: Collection[str], *, replaces: bool, is_json: bool = False
) -> Target:
    """Where a document with these sections is written, and in which form.

    Nothing is there, or with `replaces` a file, or a folder whose other files of YAML and JSON are of sections that are
    not exported; those of the sections `emptied`, which have nothing in them any more, and those of the other form are
    `gone`. Raises Refused, BadValue for a name that is neither a folder's nor of YAML or JSON, or that is of YAML where JSON
    is asked for, KctlError.
    """
    path = Path(to)
    suffix = ".json" if is_json else ".yaml"
    is_file = path.suffix.lower() in SUFFIXES and not path.is_dir() and not to.endswith("/")
    if not is_file and path.suffix and not path.is_dir() and not to.endswith("/"):
        raise BadValue(
            f"{path}: {path.suffix} is no ending of YAML or JSON",
            f"name a file with {', '.join(SUFFIXES)}, or a folder: {path}/",
        )
    if is_file and is_json and path.suffix.lower() != ".json":
        raise BadValue(
            f"{path}: {path.suffix} is of YAML, and the output asked for is JSON", f"name {path.stem}.json"
        )
    files = [path] if is_file and os.path.lexists(path) else []
    if path.is_dir():
        files = [path / name for name in sorted(os.listdir(path)) if name.lower().endswith(SUFFIXES)]
    if files and not replaces:
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        raise Refused(
            f"{files[0]}{more} would be replaced or stand beside the export; nothing was written",
            "give --replace, or another path",
        )
    if is_file:
        return Target(path, is_file)
    gone = []
    for file in files:
        section = file.stem if file.suffix in (".yaml", ".json") else ""
        if section not in SECTIONS or not _is_exported(file, section):
            raise Refused(
                f"{file}: no export wrote it, and `{command_line('kctl apply', [str(path)])}` reads it, too; nothing was written",
                "move it elsewhere, or name another folder",
            )
        if section in emptied if section not in sections else file.suffix != suffix:
            gone.append(file)
    return Target(path, is_file, tuple(gone), suffix)


def _is_exported(path: Path, section: str) -> bool:
    """Whether a file has what an export writes for a section: the format, this section, and comments."""
    try:
        text = read_whole(path, LARGEST_TEXT).decode()
        if path.suffix == ".json":
            document = json.loads(text)
            return isinstance(document, dict) and document.keys() - {"labels"} == {"kctl", section}
    except (OSError, ValueError, RecursionError):
        return False
    lines = text.splitlines()
    return [line for line in lines if line and line[0] not in "# "] == [f"kctl: {FORMAT}", f"{section}:"]


def write_document(
    target: Target, document: Mapping[str, Json], head: Iterable[str] = (), comments: Comments | None = None
) -> list[Path]:
    """Write the document to a file, or its sections to files in a folder; gives their paths. Raises KctlError.

    A file of an earlier export is replaced, at once; those that are gone are removed at last.
    """
    to = target.path
    if target.is_file:
        _replace(to, _text_of(document, to.suffix.lower(), head, comments))
        return [to]
    written = []
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise file_error(to, error) from error
    for section, content in document.items():
        if section != "kctl":
            path = to / f"{section}{target.suffix}"
            part = {"kctl": document["kctl"], section: content}
            _replace(path, _text_of(part, target.suffix, head, comments))
            written.append(path)
    for path in target.gone:
        try:
            path.unlink()
        except OSError as error:
            raise file_error(path, error) from error
    return written


def _text_of(
    document: Mapping[str, Json], suffix: str, head: Iterable[str], comments: Comments | None
) -> str:
    if suffix == ".json":
        return json_text(document, head, comments)
    return "\n".join([*yaml_lines(document, head, comments), ""])


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise file_error(path, error) from error
