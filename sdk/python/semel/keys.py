"""Keys from templates, as the server makes them: `followup:{lead_id}:{template}:{day}`. docs/reference/keys.md has all placeholders."""

from __future__ import annotations

import hashlib
import re
import time
import unicodedata
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Union

from . import times
from .canonical import canonical
from .errors import KeyFieldError, TemplateError

KEY_SIZE_MAX = 2048
PLACEHOLDERS_MAX = 32
HASH_DIGITS = 32
MISSING = object()

# Unicode White_Space and nothing else; Python's own idea of it differs.
_SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACE_RUN = re.compile(f"[{_SPACES}]+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f%]")
_CALL_TIME_WORDS = ("now", "random", "timestamp", "uuid")
_TIME_PARTS: Dict[str, Callable[[times.Moment], str]] = {
    "day": times.day, "week": times.week, "month": times.month, "quarter": times.quarter, "year": times.year, "hour": times.hour,
}


class _Part(NamedTuple):
    kind: str  # literal, field, hash, today, time, window, billing
    text: str  # the literal, the path, or the name of the time part
    number: int  # of the window in microseconds, of the billing day
    source: str  # as written


class Template:
    """A compiled key template. `time` is the path of the event's own time in the input; `zone` is where days are counted."""

    def __init__(self, text: str, time: Optional[str] = None, zone: Optional[str] = None) -> None:
        self.text, self.time_path = text, time or None
        _check_text(text)
        if self.time_path is not None:
            _check_path(self.time_path, self.time_path)
        try:
            self.zone = times.open_zone(zone)
        except ValueError as error:
            raise TemplateError(str(error)) from error
        self.parts = self._compile()

    def __repr__(self) -> str:
        return f"Template({self.text!r})"

    # ---- compiling ----

    def _compile(self) -> List[_Part]:
        parts: List[_Part] = []
        at = 0
        while at < len(self.text):
            at += self._step(self.text[at:], parts)
        if not any(part.kind != "literal" for part in parts):
            raise TemplateError(
                "this key never changes, so the work would be done once and never again: add a placeholder such as {lead_id} or {today}"
            )
        for part, behind in zip(parts, parts[1:]):
            if part.kind != "literal" and behind.text.startswith("%"):
                raise TemplateError(f"{part.source}: a '%' cannot stand directly behind a placeholder; put another character between")
        return parts

    def _step(self, rest: str, parts: List[_Part]) -> int:
        """One doubled brace, one placeholder or one literal character; how much of the text it took."""
        doubled = rest[:2] in ("{{", "}}")
        if rest[0] == "{" and not doubled:
            return self._placeholder(rest, parts)
        if rest[0] == "}" and not doubled:
            raise TemplateError("a brace that closes nothing; a literal one is }}")
        if parts and parts[-1].kind == "literal":
            parts[-1] = parts[-1]._replace(text=parts[-1].text + rest[0])
        else:
            parts.append(_Part("literal", rest[0], 0, rest[0]))
        return 2 if doubled else 1

    def _placeholder(self, rest: str, parts: List[_Part]) -> int:
        close, nested = rest.find("}"), rest.find("{", 1)
        if close < 0 or 0 < nested < close:
            raise TemplateError("a brace that is never closed; a literal one is {{")
        source = rest[: close + 1]
        if parts and parts[-1].kind != "literal":
            raise TemplateError(
                f"{source} follows another placeholder directly, and 1 next to 23 would read as 12 next to 3; put ':' between"
            )
        if sum(part.kind != "literal" for part in parts) == PLACEHOLDERS_MAX:
            raise TemplateError(f"a key has at most {PLACEHOLDERS_MAX} placeholders; use {{hash}}")
        parts.append(self._part(source, source[1:-1]))
        return len(source)

    def _part(self, source: str, inside: str) -> _Part:
        if not inside:
            raise TemplateError("{}: name a field of the input, such as {lead_id}; literal braces are {{ and }}")
        if inside.startswith(" ") or inside.endswith(" "):
            raise TemplateError(f"{source}: write the name without spaces around it")
        if inside.startswith("input."):
            return _field(source, inside[len("input."):])
        if inside in _CALL_TIME_WORDS:
            raise TemplateError(
                f"{source}: a key made at call time never repeats, so nothing would be done once; use {{today}} or a field. "
                f"An input field of that name is {{input.{inside}}}"
            )
        name, colon, argument = inside.partition(":")
        timed = name in _TIME_PARTS or name in ("window", "billing")
        if (name not in ("hash", "today") and not timed) or (timed and self.time_path is None):
            if colon and timed:
                raise TemplateError(f"{source}: it needs the event's own time: name the field that holds it with time=")
            if colon:
                raise TemplateError(f"{source}: only {{hash:…}}, {{window:…}} and {{billing:…}} take a ':'")
            return _field(source, inside)
        return _reserved(source, name, argument if colon else None)

    # ---- filling ----

    def names(self) -> Set[str]:
        """The top-level fields of the input that make the key."""
        paths = [part.text for part in self.parts if part.kind in ("field", "hash") and part.text]
        if self.time_path is not None and any(part.kind in ("time", "window", "billing") for part in self.parts):
            paths.append(self.time_path)
        return {path.split(".")[0] for path in paths}

    def fill(self, value: Any = MISSING, now_us: Optional[int] = None) -> str:
        """The key for an input of plain JSON data. KeyFieldError names the field that is missing or unusable."""
        event = self._event(value)
        key = ""
        for at, part in enumerate(self.parts):
            follow = self.parts[at + 1].text[:1] if at + 1 < len(self.parts) else ""
            key += self._text(part, follow, value, event, now_us)
            if len(key.encode()) > KEY_SIZE_MAX:
                raise KeyFieldError(None, f"the key is longer than {KEY_SIZE_MAX} bytes; use {{hash:…}} for the long field")
        return key

    def _event(self, value: Any) -> Optional[times.Moment]:
        if self.time_path is None or not any(part.kind in ("time", "window", "billing") for part in self.parts):
            return None
        try:
            return times.read_moment(_find(value, self.time_path), self.zone)
        except ValueError as error:
            raise KeyFieldError(self.time_path, str(error)) from error

    def _text(self, part: _Part, follow: str, value: Any, event: Optional[times.Moment], now_us: Optional[int]) -> str:
        if part.kind == "literal":
            return part.text
        if part.kind == "field":
            return _escape(_value_text(part.text, _find(value, part.text)), follow)
        if part.kind == "hash":
            return _hash(part.text, value)
        if part.kind == "today":
            return times.day(times.moment_at(time.time_ns() // 1000 if now_us is None else now_us, self.zone))
        assert event is not None
        if part.kind == "window":
            return times.window(event, part.number)
        if part.kind == "billing":
            return times.billing(event, part.number)
        return _TIME_PARTS[part.text](event)


def make_key(template: Union[str, Template], **fields: Any) -> str:
    """The key that a template makes from these fields."""
    compiled = template if isinstance(template, Template) else Template(template)
    return compiled.fill(fields)


# ---- parts of a template ----


def _check_text(text: str) -> None:
    if not text:
        raise TemplateError("the key is empty: write a template such as followup:{lead_id}")
    if len(text.encode("utf-8", "surrogatepass")) > KEY_SIZE_MAX:
        raise TemplateError(f"the key's template is longer than {KEY_SIZE_MAX} bytes")
    if re.search("[\x00-\x1f\x7f\ud800-\udfff]", text):
        raise TemplateError("the key's template has a control character; write it on one line")


def _check_path(source: str, path: str) -> None:
    if "" in path.split("."):
        raise TemplateError(f"{source}: a step of the path is empty; write it like {{customer.email}}")


def _field(source: str, path: str) -> _Part:
    _check_path(source, path)
    return _Part("field", path, 0, source)


def _reserved(source: str, name: str, argument: Optional[str]) -> _Part:
    if name == "hash":
        if argument is not None:
            _check_path(source, argument)
        return _Part("hash", argument or "", 0, source)
    if name == "window":
        return _Part("window", "", _window_length(source, argument), source)
    if name == "billing":
        return _Part("billing", "", _billing_day(source, argument), source)
    if argument is not None:
        raise TemplateError(f"{source}: nothing may follow the name; write it without ':'")
    return _Part("today" if name == "today" else "time", name, 0, source)


def _window_length(source: str, argument: Optional[str]) -> int:
    if argument is None:
        raise TemplateError(f"{source}: write {{window:15m}}; a field of that name is {{input.window}}")
    try:
        length = times.parse_duration(argument)
    except ValueError as error:
        raise TemplateError(f"{source}: the window wants a duration such as {{window:15m}} or {{window:2h}}") from error
    if not times.SECOND <= length <= 366 * times.DAY or length % times.SECOND:
        raise TemplateError(f"{source}: a window is whole seconds, from 1s to 366d")
    return length


def _billing_day(source: str, argument: Optional[str]) -> int:
    if argument is None:
        raise TemplateError(f"{source}: write {{billing:15}}; a field of that name is {{input.billing}}")
    if not re.fullmatch("[0-9]{1,3}", argument) or not 1 <= int(argument) <= 31:
        raise TemplateError(f"{source}: the period begins on a day of the month from 1 to 31, such as {{billing:15}}")
    return int(argument)


# ---- values ----


def _find(value: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, (list, tuple)) and re.fullmatch("0|[1-9][0-9]{0,8}", step) and int(step) < len(value):
            value = value[int(step)]
        else:
            raise KeyFieldError(path, "is missing from the input")
    return value


def _collapse(text: str) -> str:
    return _SPACE_RUN.sub(" ", unicodedata.normalize("NFC", text)).strip(" ")


def _value_text(path: str, value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return canonical(value)
    if isinstance(value, str):
        text = _collapse(value)
        if not text:
            raise KeyFieldError(path, "is empty; a key with a hole in it would be too broad")
        return text
    if value is None:
        raise KeyFieldError(path, "is null; a key with a hole in it would be too broad")
    raise KeyFieldError(path, "is no text, number, true or false: name a field in it, or use {hash:…}")


def _escape(text: str, follow: str) -> str:
    """What could be taken for the template's own text is written as %XX, so that no two lists of values make one key."""
    return "".join(_percent(c) if c == follow or _CONTROL.match(c) else c for c in text)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _hash(path: str, value: Any) -> str:
    if path:
        value = _find(value, path)
    hollow = value is MISSING or value is None or value == [] or value == {} or (isinstance(value, str) and not _collapse(value))
    if hollow:
        raise KeyFieldError(path or "(input)", "is empty; a key with a hole in it would be too broad")
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:HASH_DIGITS]


def hash_of(fields: Dict[str, Any], names: Sequence[str]) -> str:
    """The hash of the named fields, for keys that are made of several arguments. A field that is missing is an error."""
    for name in names:
        _find(fields, name)
    return _hash("", {name: fields[name] for name in names})
