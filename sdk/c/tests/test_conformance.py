"""The shared cases in sdk/conformance, through the public functions."""

import hashlib
import json
import subprocess

import pytest
from conftest import ROOT, TOOL

CONFORMANCE = ROOT / "sdk/conformance"
KEYS = json.loads((CONFORMANCE / "keys.json").read_text(encoding="utf-8"))["cases"]
FINGERPRINTS = json.loads((CONFORMANCE / "fingerprints.json").read_text(encoding="utf-8"))


def tool(*words):
    return subprocess.run([TOOL, *words], check=True, capture_output=True).stdout.decode()


def moment_us(text):
    from semel.times import read_moment

    return str(read_moment(text, None).utc_us)


@pytest.mark.parametrize("case", KEYS, ids=lambda case: case["name"])
def test_keys(case):
    given = json.dumps(case["input"]) if "input" in case else "-"
    answer = tool("key", case["template"], case.get("zone", "-"), case.get("time", "-"), moment_us(case["now"]) if "now" in case else "0", given)
    status, text = answer.rstrip("\n").split("\t")[:2]
    if "key" in case:
        assert (status, text) == ("ok", case["key"])
    else:
        assert status == "invalid" and (text == "(template)") == (case["error"] == "template")
        assert text == case.get("field", text)


@pytest.mark.parametrize("case", FINGERPRINTS["fingerprints"], ids=lambda case: case["name"])
def test_canonical_forms(case):
    given = case["input"]
    covered = {k: v for k, v in given.items() if k not in case.get("ignore", [])} if isinstance(given, dict) else given
    text = tool("canonical", json.dumps(covered))
    assert text == case["canonical"] and hashlib.sha256(text.encode()).hexdigest() == case["sha256"]


@pytest.mark.parametrize("case", FINGERPRINTS["downstream"], ids=lambda case: case["key"][:20])
def test_downstream_keys(case):
    assert tool("downstream", case["space"], case["workflow"], case["key"]).strip() == case["downstream"]


def test_the_cases_are_there():
    assert len(KEYS) > 100 and len(FINGERPRINTS["fingerprints"]) > 10
