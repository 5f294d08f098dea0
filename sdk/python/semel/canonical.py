"""The canonical form of JSON (RFC 8785) and what is hashed from it. Pure, and equal to the server's: see sdk/conformance."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

FIELDS_MAX = 64
FIELD_NAMES_SIZE_MAX = 16 * 1024
DOWNSTREAM_DIGITS = 32


def canonical(value: Any) -> str:
    """The canonical text of plain JSON data. An integer keeps all its digits."""
    parts: List[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: Any, parts: List[str]) -> None:
    if value is None:
        parts.append("null")
    elif value is True or value is False:
        parts.append("true" if value else "false")
    elif isinstance(value, int):
        parts.append(str(int(value)))
    elif isinstance(value, float):
        parts.append(number_text(value))
    elif isinstance(value, str):
        parts.append(_text(value))
    elif isinstance(value, (list, tuple)):
        _write_items(value, parts)
    elif isinstance(value, dict):
        _write_members(value, parts)
    else:
        raise TypeError(f"{type(value).__name__} is not JSON")


def _write_items(items: Sequence[Any], parts: List[str]) -> None:
    parts.append("[")
    for at, item in enumerate(items):
        if at:
            parts.append(",")
        _write(item, parts)
    parts.append("]")


def _write_members(members: Dict[str, Any], parts: List[str]) -> None:
    parts.append("{")
    for at, name in enumerate(sorted(members, key=_utf16)):
        if at:
            parts.append(",")
        parts.append(_text(name))
        parts.append(":")
        _write(members[name], parts)
    parts.append("}")


def _utf16(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError("the name of a member is text")
    return name.encode("utf-16-be")


def _text(value: str) -> str:
    value.encode("utf-8")  # a lone surrogate is no text; this says so
    return json.dumps(value, ensure_ascii=False)


def number_text(value: float) -> str:
    """A float as ECMAScript writes it: 1.0 is 1, 1e21 is 1e+21."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not JSON")
    if value == 0:
        return "0"
    sign, digits, exponent = _shortest(abs(value), "-" if value < 0 else "")
    point = exponent + len(digits)  # where the decimal point stands, counted from the first digit
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"


def _shortest(value: float, sign: str) -> Tuple[str, str, int]:
    """The fewest digits that mean this number, and the power of ten behind them. Python's repr finds them."""
    mantissa, _, power = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power or 0) - len(fraction)
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    return sign, stripped, exponent + len(digits) - len(stripped)


def hash_parts(*parts: bytes) -> bytes:
    """SHA-256 over the parts, each behind its length, so that no two lists of parts are one text."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big"))
        whole.update(part)
    return whole.digest()


def fingerprint(value: Any, ignore: Sequence[str] = (), pepper: bytes = b"") -> Tuple[str, Optional[Dict[str, str]]]:
    """What tells whether two claims of one key mean the same: a hash of the whole, and a short one of each top-level field.

    The server makes its own with a secret pepper; this one is for comparing and for tests.
    """
    if isinstance(value, dict):
        value = {name: member for name, member in value.items() if name not in ignore}
    whole = hash_parts(pepper, canonical(value).encode()).hex()
    if not isinstance(value, dict) or len(value) > FIELDS_MAX or sum(len(name.encode()) for name in value) > FIELD_NAMES_SIZE_MAX:
        return whole, None
    names = sorted(value, key=_utf16)
    return whole, {name: hash_parts(pepper, name.encode(), canonical(value[name]).encode()).hex()[:16] for name in names}


def downstream_key(space: str, workflow: str, key: str) -> str:
    """The key for the destination: the same for every attempt. The server sends it with each `proceed`."""
    digest = hash_parts(b"semel-downstream-1", space.encode(), workflow.encode(), key.encode())
    return "sml-" + digest.hex()[:DOWNSTREAM_DIGITS]
