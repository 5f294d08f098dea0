"""The shared cases in sdk/conformance: keys and fingerprints are the server's, to the byte."""

import hashlib
import json
import pathlib

import pytest

from semel.canonical import canonical, downstream_key, fingerprint
from semel.errors import KeyFieldError, TemplateError
from semel.keys import MISSING, Template
from semel.times import read_moment

CONFORMANCE = pathlib.Path(__file__).resolve().parents[2] / "conformance"
KEYS = json.loads((CONFORMANCE / "keys.json").read_text(encoding="utf-8"))["cases"]
FINGERPRINTS = json.loads((CONFORMANCE / "fingerprints.json").read_text(encoding="utf-8"))


def fill(case):
    template = Template(case["template"], time=case.get("time"), zone=case.get("zone"))
    now = read_moment(case["now"], None).utc_us if "now" in case else None
    return template.fill(case.get("input", MISSING), now_us=now)


@pytest.mark.parametrize("case", KEYS, ids=lambda case: case["name"])
def test_keys(case):
    if "key" in case:
        assert fill(case) == case["key"]
    elif case["error"] == "template":
        with pytest.raises(TemplateError):
            fill(case)
    else:
        with pytest.raises(KeyFieldError) as refused:
            fill(case)
        assert refused.value.field == case.get("field")


@pytest.mark.parametrize("case", FINGERPRINTS["fingerprints"], ids=lambda case: case["name"])
def test_fingerprints(case):
    ignore = case.get("ignore", [])
    covered = {k: v for k, v in case["input"].items() if k not in ignore} if isinstance(case["input"], dict) else case["input"]
    assert canonical(covered) == case["canonical"]
    assert hashlib.sha256(canonical(covered).encode()).hexdigest() == case["sha256"]
    whole, fields = fingerprint(case["input"], ignore, case.get("pepper", "").encode())
    assert whole == case["whole"]
    assert fields == case.get("fields")


@pytest.mark.parametrize("case", FINGERPRINTS["downstream"], ids=lambda case: case["key"][:20])
def test_downstream_keys(case):
    assert downstream_key(case["space"], case["workflow"], case["key"]) == case["downstream"]


def test_the_cases_are_there():
    assert len(KEYS) > 100 and len(FINGERPRINTS["fingerprints"]) > 10
