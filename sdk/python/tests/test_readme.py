"""The code in the README runs as it is pasted."""

import pathlib
import re

import pytest

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
PROGRAMS = [block for block in BLOCKS if "def test_" not in block]
TESTS = [block for block in BLOCKS if "def test_" in block]


def title(block):
    lines = [line for line in block.splitlines() if re.match("@once|with |node|send_email", line)]
    return lines[0][:30] if lines else block[:20]


@pytest.mark.parametrize("block", PROGRAMS, ids=title)
def test_each_program(semel, block):
    exec(compile(block, str(README), "exec"), {"__name__": "readme"})


def test_the_tests(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(README.parent))
    pytester.makepyfile("\n".join(TESTS))
    count = sum(len(re.findall(r"^def test_", block, re.M)) for block in TESTS)
    pytester.runpytest_subprocess("-p", "semel.pytest_plugin", "-p", "no:cacheprovider", "--semel-repeat=3").assert_outcomes(passed=count)


def test_there_are_blocks():
    assert len(PROGRAMS) >= 7 and len(TESTS) == 1
