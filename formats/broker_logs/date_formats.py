"""Dates as patterns of log4j write them: letters of `SimpleDateFormat`, and the names that log4j gives to formats.

Source of the letters: java.text.SimpleDateFormat (Java 17); of the names: log4j 1.2 `PatternLayout`, log4j 2.24
`FixedDateFormat` and `DatePatternConverter`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple

from formats.errors import FormatError

DATE = "dd MMM yyyy HH:mm:ss,SSS"
COMPACT_ISO = "yyyyMMdd'T'HHmmss,SSS"
# Names of formats that are not the ISO 8601 forms, which are read without their letters.
NAMED = {
    "DATE": DATE,
    "DATE_PERIOD": DATE.replace(",", "."),
    "ABSOLUTE": "HH:mm:ss,SSS",
    "ABSOLUTE_PERIOD": "HH:mm:ss.SSS",
    "ABSOLUTE_MICROS": "HH:mm:ss,SSSSSS",
    "ABSOLUTE_NANOS": "HH:mm:ss,SSSSSSSSS",
    "COMPACT": "yyyyMMddHHmmssSSS",
    "ISO8601_BASIC": COMPACT_ISO,
    "ISO8601_BASIC_PERIOD": COMPACT_ISO.replace(",", "."),
    "US_MONTH_DAY_YEAR4_TIME": "dd/MM/yyyy HH:mm:ss.SSS",
    "US_MONTH_DAY_YEAR2_TIME": "dd/MM/yy HH:mm:ss.SSS",
}
SECONDS_SINCE_1970 = {"UNIX": 1000, "UNIX_MILLIS": 1}
# log4j 1 and 2 write the same names differently.
EITHER = {" ": "[ T]", "T": "[ T]", ",": "[,.]", ".": "[,.]"}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Dates of other forms than ISO 8601; of those that read as many times the first. log4j's own name for the first is
# US_MONTH_DAY_YEAR4_TIME.
_OTHERS = (
    "dd/MM/yyyy",
    "MM/dd/yyyy",
    "dd/MMM/yyyy",
    "dd.MM.yyyy",
    "dd-MM-yyyy",
    "MM-dd-yyyy",
    "dd MMM yyyy",
    "dd-MMM-yyyy",
    "MMM dd, yyyy",
)
OTHER_DATES = (
    *(f"{date} HH:mm:ss{fraction}" for fraction in (",SSS", "") for date in _OTHERS),
    *SECONDS_SINCE_1970,
)
_DIGITS = {"yyyy": r"\d{4}", "MMM": "[A-Z][a-z]{2}", "MM": r"\d\d", "dd": r"\d\d", ".": r"\."}
_EXPRESSIONS = dict.fromkeys(
    re.sub(r"yyyy|MMM?|dd|\.", lambda part: _DIGITS[part[0]], date) for date in _OTHERS
)
# Expressions that begin with the same two digits share that beginning, which is then searched for once.
_OF_DIGITS = [text.removeprefix(r"\d\d") for text in _EXPRESSIONS if text.startswith(r"\d\d")]
_OF_NAMES = [text for text in _EXPRESSIONS if not text.startswith(r"\d\d")]
OTHER_DATE = "|".join([rf"\d\d(?:{'|'.join(_OF_DIGITS)})", *_OF_NAMES])
"""What matches the dates of `OTHER_DATES`."""
# Of numbers since 1970, those of the years 2001 to 2033 at the beginning of a line.
LIKE_OTHER_DATE = re.compile(rf"(?:{OTHER_DATE})[ T]\d\d:|\A\[?1\d{{9}}(?:\d{{3}})?[\] ]".encode())
FAR = 60
"""Bytes of a line in which its date is looked for."""
_LETTERS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_OFFSET = re.compile(r"(?:GMT|UTC|UT)?(?:(?P<sign>[+-])(?P<hours>\d{1,2}):?(?P<minutes>\d\d)?)?|Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DateFormat(NamedTuple):
    """How times are written."""

    expression: str
    """What matches a time; its only group with a name is `time`."""
    parts: re.Pattern[str]
    """The same, with a group for each part."""
    zone: tzinfo | None
    """The zone that the pattern names."""
    millis_each: int = 0
    """Of times that are a number since 1970; 0 for all others."""

    @property
    def has_date(self) -> bool:
        """Whether its times have a date, and do not count from midnight."""
        return bool(self.millis_each) or "year" in self.parts.groupindex

    def tells_zone(self, text: str) -> bool:
        """Whether a time is UTC here, since its offset is in it or known of all; abbreviations of zones are none."""
        match = self.parts.fullmatch(text)
        offset = match["offset"] if match and "offset" in self.parts.groupindex else ""
        return bool(self.millis_each or self.zone or (offset and zone_of(offset)))

    def millis(self, text: str) -> int | None:
        """A time as milliseconds; of its own clock where no offset is known. None for no such time."""
        match = self.parts.fullmatch(text)
        if match is None:
            return None
        if self.millis_each:
            return int(text) * self.millis_each
        then = _then(match.groupdict())
        if then is None:
            return None
        offset = match["offset"] if "offset" in self.parts.groupindex else None
        zone = (zone_of(offset) if offset else None) or self.zone or UTC
        try:
            return (then.replace(tzinfo=zone) - _EPOCH) // timedelta(milliseconds=1)
        except OverflowError:
            return None


def _then(parts: dict[str, str | None]) -> datetime | None:
    """The date and the time of day of these parts, without a zone."""

    def number(name: str, otherwise: int) -> int:
        text = parts.get(name)
        return int(text) if text else otherwise

    year = number("year", 1970)
    if parts.get("year") and len(parts["year"] or "") <= 2:
        year += 2000
    name = (parts.get("month_name") or "").lower()[:3]
    if name and name not in MONTHS:
        return None
    hour = number("hour", 0) % 24 if "hour12" not in parts else number("hour12", 0) % 12
    if (parts.get("half") or "").lower().startswith("p"):
        hour += 12
    try:
        day = date(year, MONTHS.index(name) + 1 if name else number("month", 1), number("day", 1))
        if parts.get("day_of_year"):
            day = date(year, 1, 1) + timedelta(days=number("day_of_year", 1) - 1)
        micros = int((parts.get("fraction") or "0").ljust(6, "0")[:6])
        second = min(number("second", 0), 59)  # a leap second is none for this machine
        return datetime(day.year, day.month, day.day, hour, number("minute", 0), second, micros)
    except (ValueError, OverflowError):
        return None


@lru_cache(64)
def zone_of(text: str) -> tzinfo | None:
    """The zone of an offset or a name: `+01:00`, `GMT+1`, `Z`, `Europe/Berlin`; None for abbreviations, which several have."""
    match = _OFFSET.fullmatch(text)
    if match:
        minutes = int(match["hours"] or 0) * 60 + int(match["minutes"] or 0)
        try:
            return timezone(timedelta(minutes=-minutes if match["sign"] == "-" else minutes))
        except ValueError:
            return None
    if "/" not in text:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@lru_cache(64)
def date_format(pattern: str, zone: str | None = None) -> DateFormat:
    """The format of a name or of letters; `FormatError` for letters that are none, and for dates without a year."""
    in_zone = None
    if zone:
        in_zone = zone_of(zone)
        if in_zone is None:
            raise FormatError(f"{zone!r} is no zone such as UTC, GMT+1 or Europe/Berlin", 0)
    if pattern in SECONDS_SINCE_1970:
        digits = r"\d{10}" if pattern == "UNIX" else r"\d{12,13}"
        return DateFormat(rf"(?P<time>{digits})", re.compile(digits), None, SECONDS_SINCE_1970[pattern])
    letters = NAMED.get(pattern, pattern)
    parts: list[str] = []
    place = 0
    for token in _LETTERS.finditer(letters):
        if token.start() != place:
            break
        place = token.end()
        if token[2]:
            parts.append(_part(token[2], len(token[0]), letters))
        else:
            quoted = token[1] if token[1] is not None else token[0]
            literal = "'" if token[0] == "''" else quoted.replace("''", "'")
            parts.append(EITHER.get(literal, re.escape(literal)))
    if place != len(letters):
        raise FormatError(f"the quote in the date {letters!r} does not end", place)
    with_names = "".join(parts)
    try:
        compiled = re.compile(with_names, re.IGNORECASE)
    except re.error as error:  # a part twice
        raise FormatError(f"the date {pattern!r} has a part twice: {error}", 0) from error
    names = compiled.groupindex
    if not {"hour", "hour12"} & names.keys():
        raise FormatError(f"the date {pattern!r} has no hour", 0)
    days = {"day", "day_of_year", "month", "month_name"} & names.keys()
    if days and "year" not in names:
        raise FormatError(f"the date {pattern!r} has no year", 0)
    if "year" in names and not ("day_of_year" in names or ({"month", "month_name"} & days and "day" in days)):
        raise FormatError(f"the date {pattern!r} has no day", 0)
    return DateFormat(rf"(?P<time>{re.sub(r'[?]P<[a-z_0-9]+>', '?:', with_names)})", compiled, in_zone)


_WORD = r"[^\W\d_]{1,20}\.?"
_ZONE = r"(?:[A-Z][A-Za-z]{0,8}(?:[+-]\d{1,2}:?\d\d)?|[+-]\d\d(?::?\d\d)?)"


def _part(letter: str, count: int, letters: str) -> str:
    """What matches one letter, so many times."""
    named = {
        "y": "year", "u": "year", "Y": "year", "d": "day", "D": "day_of_year", "H": "hour", "k": "hour",
        "K": "hour12", "h": "hour12", "m": "minute", "s": "second",
    }  # fmt: skip
    if letter == "u" and count < 2:
        return r"\d"  # the number of a day in its week
    if letter in named:
        name = named[letter]
        if name == "year":
            digits = r"\d\d" if count == 2 else r"\d{4}"
        elif name == "day_of_year":
            digits = rf"\d{{{min(count, 3)},3}}"
        else:
            digits = r"\d\d" if count > 1 else r"\d{1,2}"
        return rf"(?P<{name}>{digits})"
    if letter in "ML":
        return rf"(?P<month_name>{_WORD})" if count > 2 else rf"(?P<month>\d{{{min(count, 2)},2}})"
    if letter in "Snf":
        return rf"(?P<fraction>\d{{{min(count, 9)}}})" if count > 1 else r"(?P<fraction>\d{1,9})"
    if letter == "a":
        return r"(?P<half>[AP]\.?M\.?)"
    if letter in "zZXxOV":
        return rf"(?P<offset>{_ZONE})"
    if letter in "EGce":
        return _WORD if letter in "EG" and count else r"\w+"
    if letter in "wWF":
        return r"\d{1,2}"
    raise FormatError(f"{letter!r} is no letter of a date in {letters!r}", letters.find(letter))


def month_first(pattern: str) -> str:
    """A pattern with the month before the day, where it has both as digits and a sign between that tells no order."""
    return pattern.replace("dd/MM/yyyy", "MM/dd/yyyy").replace("dd-MM-yyyy", "MM-dd-yyyy")


def other_form(head: bytes) -> tuple[str | None, str | None]:
    """The form of `OTHER_DATES` that most lines have near their beginning; and the first date, if the month may as well
    come before the day."""
    lines = [
        line[:FAR].decode("latin-1") for line in head.split(b"\n") if LIKE_OTHER_DATE.search(line, 0, FAR)
    ]
    counts: dict[str, int] = {}
    for form in OTHER_DATES if lines else ():
        dates = date_format(form)
        expression = re.compile(rf"(?<!\d){dates.expression}(?!\d)")
        found = (expression.search(line) for line in lines)
        counts[form] = sum(match is not None and dates.millis(match["time"]) is not None for match in found)
    form = max(counts, key=lambda form: counts[form], default="")
    if not counts.get(form):
        return None, None
    dates = date_format(form)
    other = month_first(form)
    is_doubtful = other != form and counts.get(other) == counts[form]
    first = (
        next(match["time"] for line in lines if (match := re.search(dates.expression, line)))
        if is_doubtful
        else None
    )
    return form, first
