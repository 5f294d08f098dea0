"""Strings that break programs, as keys and as results: what comes out is what went in, byte for byte."""

import json
import os
import pathlib

import pytest

DATA = os.environ.get("SEMEL_TEST_DATA")
PATH = pathlib.Path(DATA or ".") / "protocol" / "naughty-strings" / "blns.json"


def strings():
    if not DATA or not PATH.exists():
        pytest.skip("SEMEL_TEST_DATA does not name a directory with protocol/naughty-strings/blns.json")
    return sorted(set(json.loads(PATH.read_text(encoding="utf-8"))))


def results(text):
    """Two spellings of one result; both have to survive as they are."""
    plain = json.dumps({"text": text, text: [text]}, ensure_ascii=False, separators=(",", ":"))
    return plain.encode() if len(text) % 2 else json.dumps([text, {"n": 1.0}], ensure_ascii=True).encode()


def check(client, text, intent):
    replay = client.claim("naughty", text, input={"text": text})
    assert replay.status == 200, (text, replay)
    assert b'"result":%s,"confirmed_at"' % results(text) in replay.raw, text
    shown = client.intent(intent)
    assert shown.json["key"] == text
    assert shown.raw.endswith(b',"result":%s}' % results(text)), text


def test_every_naughty_string_survives(semel, client):
    held = {}
    for text in strings():
        answer = client.claim("naughty", text, input={"text": text})
        if text == "":
            assert answer.status == 400 and answer.json["field"] == "key"
            continue
        assert answer.status == 201, (text, answer)
        assert client.confirm_raw(answer, results(text)).status == 200, text
        held[text] = answer.json["intent"]
    assert len(held) > 500
    for text, intent in held.items():
        check(client, text, intent)
        assert client.claim("naughty", text, input={"text": text + "."}).status == 422, text
    client.close()
    assert semel.stop() == 0
    semel.start()
    for text, intent in held.items():
        check(client, text, intent)


def test_names_and_errors_survive(client):
    for number, text in enumerate(strings()):
        if text == "" or len(text.encode()) > 120 or any(ord(c) < 32 or ord(c) == 127 for c in text):
            continue
        answer = client.claim(text, f"k{number}", thread=text, run=text, action=text)
        assert answer.status == 201, (text, answer)
        assert client.say("fail", answer, error=text).status == 200
        shown = client.intent(answer.json["intent"]).json
        assert [shown[name] for name in ("workflow", "thread", "run", "action", "error")] == [text] * 5
