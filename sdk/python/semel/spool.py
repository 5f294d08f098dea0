"""What happened while semel was away: a local file of JSON lines, each on the disk before anything goes on.

    {"id":"…","what":"begin","at":"…","pid":42,"workflow":…,"key":…,"input":…,"intent":…,"fence":…}    about to act
    {"id":"…","what":"done","result":"…"}                                                              it happened; the result as JSON text
    {"id":"…","what":"failed","effect":…,"final":…,"error":…}                                          it failed
    {"id":"…","what":"say","at":"…","intent":…,"fence":…,"verb":"confirm","members":{…}}               a word about a claim that was not heard
    {"id":"…","what":"over"}                                                                           semel knows it now

When everything is over the file is emptied. What semel does not take goes to a second file, `….rejected`, for a person.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import secrets
import threading
from dataclasses import dataclass, field
from typing import IO, Any, Dict, Iterator, List, Optional

from .canonical import canonical
from .protocol import NOT_GIVEN, Terms

try:
    import fcntl
except ImportError:  # not a Unix: one process at a time
    fcntl = None  # type: ignore[assignment]


@dataclass
class Entry:
    """All lines with one id."""

    id: str
    first: Dict[str, Any]
    last: Dict[str, Any] = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        return bool(self.first["what"] == "begin")

    @property
    def is_under_way(self) -> bool:
        """A run without an end whose process is still there."""
        return self.is_run and not self.last and _is_alive(self.first.get("pid"))

    def terms(self) -> Terms:
        first = self.first
        value = first["input"] if "input" in first else NOT_GIVEN
        answer: Dict[str, Any] = {name: first.get(name) for name in ("thread", "epoch", "event", "question")}
        return Terms(first["workflow"], first.get("key"), value, run=first.get("run"), action=first.get("action"), **answer)


def _is_alive(pid: Any) -> bool:
    try:
        os.kill(int(pid), 0)
        return True
    except PermissionError:
        return True
    except (OSError, TypeError, ValueError):
        return False


class Spool:
    def __init__(self, path: str) -> None:
        self.path = pathlib.Path(path)
        self._lock = threading.Lock()

    def is_empty(self) -> bool:
        try:
            return self.path.stat().st_size == 0
        except OSError:
            return True

    def begin(self, terms: Terms, intent: Optional[str], fence: Optional[int]) -> str:
        line: Dict[str, Any] = {"what": "begin", "at": _now(), "pid": os.getpid(), "workflow": terms.workflow, "key": terms.key}
        line.update({"run": terms.run, "action": terms.action, "intent": intent, "fence": fence})
        if terms.is_answer:
            line.update({"thread": terms.thread, "epoch": terms.epoch, "event": terms.event, "question": terms.question})
        if terms.input is not NOT_GIVEN:
            line["input"] = terms.input
        return self._append(secrets.token_hex(8), line)

    def done(self, id_: str, result_text: str) -> None:
        self._append(id_, {"what": "done", "result": result_text})

    def failed(self, id_: str, failure: Dict[str, Any]) -> None:
        self._append(id_, {"what": "failed", **failure})

    def say(self, intent: str, fence: int, verb: str, members: Dict[str, str]) -> None:
        self._append(secrets.token_hex(8), {"what": "say", "at": _now(), "intent": intent, "fence": fence, "verb": verb, "members": members})

    def over(self, id_: str) -> None:
        self._append(id_, {"what": "over"})
        with self._locked("r+b") as file:
            if not _entries(file.read()):
                file.truncate(0)
                os.fsync(file.fileno())

    def reject(self, entry: Entry, why: str) -> None:
        """Puts it where a person will find it."""
        path = self.path.with_name(self.path.name + ".rejected")
        line = json.dumps({"at": _now(), "why": why, "first": entry.first, "last": entry.last})
        with _open(path, "ab") as file:
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.over(entry.id)

    def entries(self) -> List[Entry]:
        if self.is_empty():
            return []
        with self._locked("rb") as file:
            return _entries(file.read())

    def find(self, terms: Terms) -> Optional[Entry]:
        """The last run of this very thing that semel does not know of yet."""
        same = [entry for entry in self.entries() if entry.is_run and _names(entry.terms()) == _names(terms)]
        return same[-1] if same else None

    def _append(self, id_: str, line: Dict[str, Any]) -> str:
        is_new = not self.path.exists()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked("ab") as file:
            file.write(json.dumps({"id": id_, **line}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            _sync_folder(self.path.parent)
        return id_

    @contextlib.contextmanager
    def _locked(self, mode: str) -> Iterator[IO[bytes]]:
        with self._lock, _open(self.path, mode) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            if mode == "ab" and file.tell() > 0:
                _end_torn_line(self.path, file)
            yield file


def _open(path: pathlib.Path, mode: str) -> IO[bytes]:
    """For its owner alone: it holds what the functions were called with."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))


def _sync_folder(path: pathlib.Path) -> None:
    """A new file is on the disk only when its name is."""
    if fcntl is None:
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _end_torn_line(path: pathlib.Path, file: IO[bytes]) -> None:
    """A crash in the middle of a write leaves half a line; the next must not continue it."""
    with open(path, "rb") as reader:
        reader.seek(-1, os.SEEK_END)
        if reader.read(1) != b"\n":
            file.write(b"\n")


def _entries(data: bytes) -> List[Entry]:
    found: Dict[str, Entry] = {}
    for text in data.split(b"\n"):
        try:
            line = json.loads(text)
            id_, what = line["id"], line["what"]
        except (ValueError, KeyError, TypeError):
            continue
        if what in ("begin", "say"):
            found[id_] = Entry(id_, line)
        elif what == "over":
            found.pop(id_, None)
        elif id_ in found:
            found[id_].last = line
    return list(found.values())


def _names(terms: Terms) -> Any:
    if terms.is_answer:
        return terms.workflow, canonical([terms.thread, terms.epoch, terms.event, terms.question, terms.action])
    return terms.workflow, terms.key if terms.key is not None else canonical(terms.input)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
