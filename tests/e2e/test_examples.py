"""Every example runs, twice, and the world outside sees what its file `effects` says: as often after the second time as after the first."""

import collections
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from semel_process import REPO, binary

sys.path.insert(0, str(REPO / "sdk/python"))
from semel.fakes import Effects  # noqa: E402  (needs the path above)

EXAMPLES = sorted(path for path in (REPO / "examples").iterdir() if path.is_dir())
MODULES = REPO / "sdk/node/interop/node_modules"  # installed by tools/test.py for the Node client's own tests


@pytest.fixture
def world():
    effects = Effects()
    yield effects
    effects.close()


def wanted(example):
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in (example / "effects").read_text().splitlines()}


def happened(world):
    """A key that came before is a repetition that the provider recognises; without a key everything counts."""
    seen, counts = set(), collections.Counter()
    for effect in world.received:
        counts[effect.what] += effect.key is None or (effect.what, effect.key) not in seen
        seen.add((effect.what, effect.key))
    return dict(counts)


def copy_of(example, folder):
    """So that nothing that it writes stays."""
    copy = folder / example.name
    shutil.copytree(example, copy, ignore=shutil.ignore_patterns("node_modules"))
    if (example / "package.json").exists():
        if not (MODULES / "@langchain/langgraph").exists():
            pytest.skip("npm ci in sdk/node/interop was not run")
        (copy / "node_modules").symlink_to(MODULES)
    return copy


def environment(semel, world, folder):
    (folder / "bin").mkdir()
    (folder / "bin" / "semel").symlink_to(binary())
    paths = os.pathsep.join([str(folder / "bin"), os.path.dirname(shutil.which("node") or "/usr/bin/node"), "/usr/bin", "/bin"])
    return {"PATH": paths, "HOME": str(folder), "SEMEL_URL": f"http://127.0.0.1:{semel.port}", "WORLD_URL": world.url,
            "PYTHONPATH": str(REPO / "sdk/python"), "LANG": "C.UTF-8"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs_twice(house, world, tmp_path, example):
    semel = house.start("sqlite")
    copy, env = copy_of(example, tmp_path), environment(semel, world, tmp_path)
    outputs = []
    for time in (1, 2):
        ran = subprocess.run([str(copy / "run.sh")], env=env, capture_output=True, text=True, timeout=120, cwd="/")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert happened(world) == wanted(example), f"the {time}. time"
        outputs.append(ran.stdout)
    assert outputs[0] and outputs[0].splitlines()[-1] == outputs[1].splitlines()[-1]


def test_every_example_is_listed_and_complete():
    text = (REPO / "examples/README.md").read_text()
    for example in EXAMPLES:
        assert f"[{example.name}]({example.name})" in text
        assert {path.name for path in example.iterdir()} >= {"README.md", "run.sh", "effects"} and wanted(example)
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("name", ["02-overlapping-cron", "06-github-actions"])
def test_without_semel_it_happens_more_than_once(house, world, tmp_path, name):
    """Otherwise the count above would prove nothing."""
    example = REPO / "examples" / name
    copy, env = copy_of(example, tmp_path), environment(house.start("sqlite"), world, tmp_path)
    (tmp_path / "bin" / "semel").unlink()
    (tmp_path / "bin" / "semel").write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    (tmp_path / "bin" / "semel").chmod(0o755)
    subprocess.run([str(copy / "run.sh")], env=env, capture_output=True, timeout=120, cwd="/")
    assert all(happened(world)[what] > count for what, count in wanted(example).items())
