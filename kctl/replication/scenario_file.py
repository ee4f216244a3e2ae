"""Scenarios as TOML: those that come with kctl, and those of users."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from kctl.errors import BadValue, UnreadableFile, reason_of
from kctl.replication.scenario import Scenario, Step

# What a step may do, and the keys it may have besides `do`, each with whether it must.
STEPS: Mapping[str, Mapping[str, bool]] = {
    "produce": {"records": False, "count": False},
    "fetch": {"broker": True, "rounds": False, "limit": False},
    "crash": {"broker": True},
    "power-failure": {"brokers": True},
    "restart": {"broker": True},
    "elect": {},
    "flush": {"broker": True},
    "checkpoint": {"broker": True},
    "shrink-isr": {"broker": True},
}


def built_in_names() -> list[str]:
    """Names of the scenarios that come with kctl."""
    folder = resources.files("kctl.replication") / "scenarios"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def read_scenario(name_or_path: str) -> Scenario:
    """A built-in scenario by name, or one from a TOML file. Raises UnreadableFile or BadValue."""
    if name_or_path in built_in_names():
        found = resources.files("kctl.replication") / "scenarios" / f"{name_or_path}.toml"
        return parse_scenario(name_or_path, found.read_text(encoding="utf-8"))
    path = Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "not UTF-8"
        names = ", ".join(built_in_names())
        raise UnreadableFile(f"{name_or_path}: {why}", f"built-in scenarios: {names}") from error
    try:
        return parse_scenario(path.stem, text)
    except BadValue as error:
        raise BadValue(
            f"{name_or_path}: {error.message.removeprefix(path.stem + ': ')}", error.hint
        ) from error


def parse_scenario(name: str, text: str) -> Scenario:
    """A scenario from TOML text. Raises BadValue that names what is wrong."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadValue(f"{name}: not TOML: {error}") from error
    brokers = table.get("brokers", [1, 2])
    if not _are_ids(brokers) or len(set(brokers)) != len(brokers) or not brokers:
        raise BadValue(f"{name}: brokers must be a list of different ids, not {brokers!r}")
    unclean = table.get("unclean_leader_election_enable")
    if unclean is not None and not isinstance(unclean, bool):
        raise BadValue(f"{name}: unclean_leader_election_enable must be true or false, not {unclean!r}")
    given = table.get("steps", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise BadValue(f"{name}: steps must be tables [[steps]]")
    steps = tuple(_step(name, number, one, brokers) for number, one in enumerate(given, 1))
    return Scenario(name, str(table.get("description", "")), tuple(brokers), steps, unclean)


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


def _step(name: str, number: int, given: dict[str, Any], brokers: list[int]) -> Step:
    where = f"{name}: step {number}"
    do = given.get("do")
    if not isinstance(do, str) or do not in STEPS:
        raise BadValue(f"{where}: do must be one of {', '.join(STEPS)}, not {do!r}")
    unknown = set(given) - {"do"} - set(STEPS[do])
    missing = {key for key, must in STEPS[do].items() if must} - set(given)
    if unknown or missing:
        raise BadValue(
            f"{where}: {do} has no key {min(unknown)!r}"
            if unknown
            else f"{where}: {do} needs {min(missing)!r}"
        )
    ids = given.get("brokers", [given["broker"]] if "broker" in given else [])
    if not _are_ids(ids) or not set(ids) <= set(brokers):
        raise BadValue(f"{where}: no such broker {ids!r}")
    count = given.get("rounds", given.get("count", 1))
    limit = given.get("limit")
    records = given.get("records", [])
    if type(count) is not int or not 0 < count <= 1000 or (limit is not None and type(limit) is not int):
        raise BadValue(f"{where}: count, rounds and limit are whole numbers, count at most 1000")
    if not isinstance(records, list) or not all(isinstance(r, str) for r in records):
        raise BadValue(f"{where}: records must be a list of names, not {records!r}")
    return Step(do, tuple(ids), tuple(records), count, limit)
