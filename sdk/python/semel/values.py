"""Python values as JSON: arguments on their way to a fingerprint, results on their way to the ledger."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import pathlib
import uuid
from typing import Any, Dict, Iterable

from .canonical import canonical

RESULT_SIZE_MAX = 1_000_000  # the server takes bodies of 1 MiB
REPR_SIZE_MAX = 1000
INPUT_SIZE_MAX = 16 * 1024
FIELD_SIZE_MAX = 1024
NOT_KEPT = "semel_result_not_kept"  # the one member of what is recorded in place of a result that is no JSON


class NotPlain(TypeError):
    """A value that has no obvious form in JSON."""


def plain(value: Any) -> Any:
    """The value as JSON data. Dates, UUIDs, decimals, enums, paths, dataclasses and pydantic models have an obvious form."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return _scalar(value)
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, decimal.Decimal, pathlib.PurePath)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {_name(name): plain(member) for name, member in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump(mode="json"))
    raise NotPlain(f"{type(value).__name__} has no obvious form in JSON")


def _scalar(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return plain(value.value)
    try:
        canonical(value)
    except ValueError as error:  # NaN, an infinity, a lone surrogate
        raise NotPlain(str(error)) from error
    return value


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise NotPlain("the name of a member is text")
    return name


def input_of(arguments: Dict[str, Any], ignore: Iterable[str] = ()) -> Dict[str, Any]:
    """What a call is about: its arguments as JSON, without those that have no form in JSON (connections, clients, `self`).

    Long ones are represented by their hash: the input is only there to be compared.
    """
    left_out = set(ignore)
    fields: Dict[str, Any] = {}
    for name, value in arguments.items():
        if name in left_out:
            continue
        try:
            fields[name] = plain(value)
        except NotPlain:
            continue
    if len(canonical(fields)) <= INPUT_SIZE_MAX:
        return fields
    return {name: _short(value) for name, value in fields.items()}


def _short(value: Any) -> Any:
    text = canonical(value)
    return value if len(text) <= FIELD_SIZE_MAX else "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def result_text(value: Any) -> str:
    """The result as JSON text. NotPlain when it is none, or too long to be kept."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise NotPlain(str(error)) from error
    if size > RESULT_SIZE_MAX:
        raise NotPlain(f"it is {size} bytes long, and a result is at most {RESULT_SIZE_MAX}")
    return text


def description_text(value: Any, why: str) -> str:
    """What is recorded in place of a result that is no JSON: what it was, for people."""
    kind = type(value)
    try:
        shown = repr(value)
    except Exception as error:  # the effect has happened: nothing that a repr does may lose it
        shown = f"(repr failed: {type(error).__name__})"
    shown = shown[:REPR_SIZE_MAX].encode("utf-8", "replace").decode()
    about = {"type": f"{kind.__module__}.{kind.__qualname__}", "repr": shown, "why": why.encode("utf-8", "replace").decode()[:REPR_SIZE_MAX]}
    return json.dumps({NOT_KEPT: about})


def is_description(result: Any) -> bool:
    return isinstance(result, dict) and list(result) == [NOT_KEPT]
