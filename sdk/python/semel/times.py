"""The event's own time, and the parts of it that a key can have. Times are whole microseconds since 1970, UTC."""

from __future__ import annotations

import calendar
import datetime
import re
from typing import Any, NamedTuple, Optional
from zoneinfo import ZoneInfo

from .canonical import canonical

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SECONDS_END = 10**11  # numbers below are seconds (until the year 5138), then milliseconds, then neither
MILLISECONDS_END = 10**14

_EPOCH = datetime.datetime(1970, 1, 1)
_UNITS = {"w": 7 * DAY, "d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": SECOND // 1000}
_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ZONE_NAME = re.compile(r"[A-Za-z0-9/_+-]{1,64}")


class Moment(NamedTuple):
    """One time, in UTC and on the wall clock of the workflow's zone."""

    utc_us: int
    local: datetime.datetime  # without a zone


def open_zone(name: Optional[str]) -> Optional[ZoneInfo]:
    """None for UTC. ValueError when there is no such zone."""
    if not name or name in ("UTC", "Etc/UTC"):
        return None
    if not _ZONE_NAME.fullmatch(name) or name.startswith(("posix/", "right/", "SystemV/")):
        raise ValueError(f"there is no time zone '{name}': write an IANA name such as Europe/Paris")
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"there is no time zone '{name}': write an IANA name such as Europe/Paris") from error


def moment_at(utc_us: int, zone: Optional[ZoneInfo]) -> Moment:
    try:
        utc = _EPOCH + datetime.timedelta(microseconds=utc_us)
        return Moment(utc_us, utc + _offset(utc, zone))
    except OverflowError as error:
        raise ValueError("is outside the years 1 to 9999") from error


def _offset(utc: datetime.datetime, zone: Optional[ZoneInfo]) -> datetime.timedelta:
    if zone is None:
        return datetime.timedelta(0)
    offset = utc.replace(tzinfo=datetime.timezone.utc).astimezone(zone).utcoffset()
    return offset if offset is not None else datetime.timedelta(0)


def _moment_of_date(date: datetime.datetime, zone: Optional[ZoneInfo]) -> Moment:
    """Midnight that day on the wall clock. Asked twice: the first guess may be on the other side of a clock change."""
    utc = date - _offset(date - _offset(date, zone), zone)
    return Moment((utc - _EPOCH) // datetime.timedelta(microseconds=1), date)


def read_moment(value: Any, zone: Optional[ZoneInfo]) -> Moment:
    """RFC 3339 text, epoch seconds or milliseconds, or a plain date. ValueError, with a sentence that begins with "is", when it is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return moment_at(_epoch_us(canonical(value)), zone)
    if not isinstance(value, str):
        raise _no_time()
    text = value.strip(" \t")
    if len(text) in (10, 13) and text.isascii() and text.isdigit():
        return moment_at(int(text) * (SECOND if len(text) == 10 else SECOND // 1000), zone)
    if _DATE.fullmatch(text):
        return _moment_of_date(_read_date(text), zone)
    return moment_at(_read_rfc3339(text), zone)


def _no_time() -> ValueError:
    return ValueError("is not a time: send 2026-11-15T09:30:00Z, 2026-11-15, or epoch seconds or milliseconds")


def _epoch_us(text: str) -> int:
    """Whole seconds or milliseconds from a canonical number, fractions dropped towards the past."""
    negative = text.startswith("-")
    digits, _, fraction = text.lstrip("-").partition(".")
    if "e" in text or int(digits) >= MILLISECONDS_END:
        raise _no_time()
    magnitude = int(digits)
    number = -magnitude - (1 if fraction else 0) if negative else magnitude
    return number * (SECOND if magnitude < SECONDS_END else SECOND // 1000)


def _read_date(text: str) -> datetime.datetime:
    try:
        return datetime.datetime(int(text[:4]), int(text[5:7]), int(text[8:10]))
    except ValueError as error:
        raise _no_time() from error


def _read_rfc3339(text: str) -> int:
    found = _RFC3339.fullmatch(text)
    if not found:
        raise _no_time()
    date, fraction, sign = found.group(1), found.group(5) or "", found.group(6)
    hour, minute, second = int(found.group(2)), int(found.group(3)), int(found.group(4))
    off_hour, off_minute = int(found.group(7) or 0), int(found.group(8) or 0)
    if hour > 23 or minute > 59 or second > 60 or off_hour > 23 or off_minute > 59:
        raise _no_time()
    start = (_read_date(date) - _EPOCH) // datetime.timedelta(microseconds=1)
    offset = (off_hour * HOUR + off_minute * MINUTE) * (-1 if sign == "-" else 1)
    time_us = start + hour * HOUR + minute * MINUTE + second * SECOND - offset
    if second == 60 and time_us % DAY != 0:  # a leap second exists only at the end of a UTC day
        raise _no_time()
    return time_us + int((fraction + "000000")[:6])


def parse_duration(text: str) -> int:
    """90s, 15m, 1h30m … as microseconds; units from great to small, each once. ValueError otherwise."""
    found = re.findall(r"([0-9]+)([a-z]+)", text)
    order = list(_UNITS)
    places = [order.index(unit) if unit in order else -1 for _, unit in found]
    if not found or "".join(n + unit for n, unit in found) != text or -1 in places or places != sorted(set(places)):
        raise ValueError(f"'{text}' is no duration such as 15m or 1h30m")
    return sum(int(n) * _UNITS[unit] for n, unit in found)


def _date(when: datetime.datetime) -> str:
    return f"{when.year:04d}-{when.month:02d}-{when.day:02d}"


def day(when: Moment) -> str:
    return _date(when.local)


def week(when: Moment) -> str:
    year, number, _ = when.local.isocalendar()
    return f"{year:04d}-W{number:02d}"


def month(when: Moment) -> str:
    return f"{when.local.year:04d}-{when.local.month:02d}"


def quarter(when: Moment) -> str:
    return f"{when.local.year:04d}-Q{(when.local.month + 2) // 3}"


def year(when: Moment) -> str:
    return f"{when.local.year:04d}"


def hour(when: Moment) -> str:
    return f"{_date(when.local)}T{when.local.hour:02d}"


def window(when: Moment, length_us: int) -> str:
    """The start of the window, in UTC; windows are counted from 1970. Seconds only where a window can begin within a minute."""
    start = _EPOCH + datetime.timedelta(microseconds=when.utc_us // length_us * length_us)
    seconds = f":{start.second:02d}" if length_us % MINUTE else ""
    return f"{_date(start)}T{start.hour:02d}:{start.minute:02d}{seconds}Z"


def billing(when: Moment, first_day: int) -> str:
    """The first day of the period that begins on this day of the month, or on the last day of a shorter month."""
    year_, month_ = when.local.year, when.local.month
    if when.local.day < _day_in(year_, month_, first_day):
        year_, month_ = (year_, month_ - 1) if month_ > 1 else (year_ - 1, 12)
    return f"{year_:04d}-{month_:02d}-{_day_in(year_, month_, first_day):02d}"


def _day_in(year_: int, month_: int, wanted: int) -> int:
    return min(wanted, calendar.monthrange(year_, month_)[1]) if year_ > 0 else wanted
