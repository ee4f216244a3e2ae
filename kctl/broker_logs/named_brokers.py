"""The brokers of lines that do not name theirs, by the pod, container or host that printed them.

What lines or folders say counts before names. The numbers of pods are ids, or all of them are less by the same: where
lines of some pods tell their brokers, the names of the others are read by them. Two brokers never become one: of a
number that is another's too, nothing is known.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from formats.broker_logs.carrier_names import CarrierName, carrier_name, words_of
from formats.broker_logs.layouts import COMPOSE, CarriedLayout, is_export
from formats.broker_logs.line import writers_named
from formats.values import replace
from kctl.findings import Finding
from kctl.findings import state_log as codes
from kctl.text_logs.containers import only
from kctl.text_logs.log_files import LogFile
from kctl.text_logs.opening import chunks_of

Say = Callable[[Finding], None]
Offsets = dict[str, dict[int, set[str]]]
"""By family of names what is to be added to their numbers, and the names of which lines tell that."""


def with_brokers_by_name(
    files: Sequence[LogFile], given: Mapping[str, int], say_so: Say
) -> tuple[list[LogFile], set[str]]:
    """The files, those of no broker with the one that a name tells; and which of the `given` names were met.

    `given` is the broker of each name that a person told; lines that name their broker count before it.
    """
    names_met: set[str] = set()
    told: set[int] = set()
    out: list[LogFile] = []
    for file in files:
        printed_by = file.printed_by or ""
        name = next((name for name in given if name in (printed_by, *words_of(printed_by))), None)
        if file.broker_id is None and not file.writers and (name or _name_of(file) is not None):
            file = _with_later_writers(file)
        if name is not None:
            names_met.add(name)
            told.add(len(out))
            file = file if file.writers else replace(file, broker_id=given[name])
        out.append(file)
    offsets = _offsets(out)
    names_by_id: dict[int, set[str]] = {}
    for file in out:
        named = _name_of(file)
        broker_id = _id_by_name(named, offsets) if named and file.broker_id is None else file.broker_id
        if broker_id is not None and file.printed_by:
            names_by_id.setdefault(broker_id, set()).add(named.name if named else file.printed_by)
    for i, file in enumerate(out):
        named = _name_of(file)
        if named is None or len(file.writers) > 1:
            continue
        if file.broker_id is not None:
            is_one_of_many = len(offsets.get(named.family, {}).get(file.broker_id - named.number, ())) > 1
            if named.is_id and named.number != file.broker_id and not (is_one_of_many or i in told):
                what = "what its lines say" if file.writers else "the folder"
                say_so(codes.LOG_BROKER_NAME_DIFFERS.at(file.place, name=named.name, broker=file.broker_id, what=what))  # fmt: skip
            continue
        broker_id = _id_by_name(named, offsets)
        if broker_id is None:
            reason = _why_unclear(named, offsets)
        elif len(names := names_by_id[broker_id]) > 1:
            reason = f"{' and '.join(sorted(names))} would both be broker {broker_id}"
        else:
            out[i] = file = replace(file, broker_id=broker_id, broker_by_name=named.name)
            say_so(codes.LOG_BROKER_BY_NAME.at(file.place, name=named.name, broker=broker_id))
            continue
        say_so(codes.LOG_BROKER_NAME_UNCLEAR.at(file.place, name=named.name, reason=reason))
    return out, names_met


def _name_of(file: LogFile) -> CarrierName | None:
    if not file.printed_by:
        return None
    is_service = isinstance(file.layout, CarriedLayout) and file.layout.has(COMPOSE)
    return carrier_name(file.printed_by, is_service=is_service)


def _offsets(files: Iterable[LogFile]) -> Offsets:
    """What is to be added to the numbers of each family of names, by the files whose brokers their lines tell."""
    offsets: Offsets = {}
    for file in files:
        named = _name_of(file)
        if named is not None and file.broker_id is not None and len(file.writers) == 1:
            names = offsets.setdefault(named.family, {}).setdefault(file.broker_id - named.number, set())
            names.add(named.name)
    return offsets


def _id_by_name(named: CarrierName, offsets: Offsets) -> int | None:
    of_family = offsets.get(named.family)
    if not of_family:
        return named.number if named.is_id else None
    offset = next(iter(of_family))
    return named.number + offset if len(of_family) == 1 and offset >= 0 else None


def _why_unclear(named: CarrierName, offsets: Offsets) -> str:
    if named.family in offsets:
        return f"by their lines the numbers of others called {named.family} are no ids"
    return "its number need not be the broker's id"


def _with_later_writers(file: LogFile) -> LogFile:
    """The file with the broker that lines behind its start name."""
    for lines in _lines_of(file):
        if writers := writers_named(file.layout.bare(lines)):
            return replace(file, writers=frozenset(writers), broker_id=min(writers) if len(writers) == 1 else None)  # fmt: skip
    return file


def _lines_of(file: LogFile) -> Iterator[bytes]:
    if file.part:
        return cut_at_lines(chunks_of(file.part, lambda reason: None, is_as_written=True))
    pieces = chunks_of(file.path, lambda reason: None, is_as_written=not is_export(file.layout))
    origin = file.layout.origin if isinstance(file.layout, CarriedLayout) else None
    if origin and file.container:
        return only(pieces, origin, file.container, array("q"), is_first=file.is_first)
    return cut_at_lines(pieces)


def cut_at_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, each piece of whole lines."""
    rest = b""
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        yield rest + piece[:cut]
        rest = piece[cut:] if cut else rest + piece
    yield rest
