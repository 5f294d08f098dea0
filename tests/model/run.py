#!/usr/bin/env python3
"""Checks the model of the ledger with spin: every mode keeps its promises, every mutant breaks one.

    tests/model/run.py                 under a minute on two cores
    tests/model/run.py --faults 7      longer
    tests/model/run.py --only IDEM     the checks of that name, mode or kind
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

MODEL = pathlib.Path(__file__).resolve().parent / "once.pml"

EVERYWHERE = {"refused", "unknown", "confirmed", "replay", "expired", "late confirm in unknown", "looked: it happened", "looked: it did not happen"}
GIVEN_OUT_AGAIN = {"late confirm in pending", "no effect, but an earlier attempt is unknown"}
MARKS = {
    "AMO": EVERYWHERE,
    "QUERY": EVERYWHERE,
    "IDEM": EVERYWHERE | GIVEN_OUT_AGAIN | {"deduplicated"},
    "ALO": EVERYWHERE | GIVEN_OUT_AGAIN | {"announced second effect"},
}
CRASHES = {"crash before the commit", "crash after the commit"}


@dataclass
class Check:
    name: str
    mode: str
    kind: str  # "safety", "batch", "live" or "mutant"
    flags: tuple = ()
    faults: int = 0


@dataclass
class Outcome:
    passed: bool
    states: str
    seconds: float
    text: str


# The mode in which a mutant does its harm. All but one are judged by what the world sees alone.
MUTANTS = [
    ("NO_FENCE", "AMO"),
    ("NO_SENT", "AMO"),
    ("RETRY_AMBIGUOUS", "AMO"),
    ("NEW_KEY", "IDEM"),
    ("NO_WINDOW", "IDEM"),
    ("LOOK_EARLY", "QUERY"),
    ("LOOK_NET", "QUERY"),
    ("HUMAN_FAST", "AMO"),
    ("ACK_EARLY", "AMO"),
    ("PURGE_ACTIVE", "AMO"),
    ("LATE_CONFIRM_ANY", "ALO"),
    ("FORGET_EARLIER", "IDEM"),
    ("FORGET_EARLIER", "ALO"),
    ("EXTEND_BLIND", "IDEM"),
    ("NO_LAPSE", "AMO"),
]


def mutant_flags(name):
    if name == "NO_LAPSE":
        return (name, "LIVE")
    if name == "LATE_CONFIRM_ANY":  # honest workers cannot turn it into harm: the rule itself is checked
        return (name,)
    if name == "ACK_EARLY":
        return (name, "HARM_ONLY", "BATCH")
    return (name, "HARM_ONLY")


def all_checks(faults):
    """The longest first, so that two cores end together. Where the space is large, fewer faults."""
    checks = [Check("IDEM", "IDEM", "safety", (), faults)]
    for mode, fewer in (("IDEM", 3), ("ALO", 1), ("AMO", 0), ("QUERY", 0)):
        checks.append(Check(mode, mode, "live", ("LIVE",), max(1, faults - fewer)))
    for mode, fewer in (("ALO", 3), ("AMO", 2)):
        checks.append(Check(mode, mode, "batch", ("BATCH",), max(1, faults - fewer)))
    for mode in ("ALO", "AMO", "QUERY"):
        checks.append(Check(mode, mode, "safety", (), faults))
    for name, mode in MUTANTS:
        checks.append(Check(name, mode, "mutant", mutant_flags(name), min(faults, 4)))
    return checks


def call(command, where, seconds):
    return subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=seconds, errors="replace")


def build(check, workers, where):
    defines = [f"-DMODE={check.mode}", f"-DFAULTS={check.faults}", f"-DWORKERS={workers}"] + [f"-D{flag}" for flag in check.flags]
    made = call(["spin", "-a", *defines, str(MODEL)], where, 60)
    if not (where / "pan.c").exists() or "rror" in made.stdout + made.stderr:
        return "spin: " + (made.stdout + made.stderr).strip()
    options = ["-DNFAIR=3"] if "LIVE" in check.flags else ["-DSAFETY"]
    if check.faults > 4:
        options.append("-DCOLLAPSE")
    level = "-O1" if check.mode in ("IDEM", "ALO") and check.kind != "mutant" else "-O0"  # compiling takes longer than a short search
    made = call(["gcc", level, "-w", *options, "-DMEMLIM=4000", "-o", "pan", "pan.c"], where, 300)
    return "gcc: " + made.stderr.strip() if made.returncode != 0 else None


def judge_mode(check, output):
    """None when every promise was kept and every situation came up."""
    broken = re.search(r"^broken: (.*)$", output, re.M)
    if broken:
        return "broken: " + broken.group(1)
    if "acceptance cycle" in re.sub(r"acceptance\s+cycles", "", output):
        return "it may never settle"
    if not re.search(r"errors: 0$", output, re.M):
        return "the search found an error"
    if "max search depth too small" in output or "out of memory" in output or "Search not completed" in output:
        return "the search is incomplete"
    wanted = set()
    if check.kind == "safety":
        wanted = MARKS[check.mode]
    elif check.kind == "batch":
        wanted = CRASHES
    missing = wanted - set(re.findall(r"^mark: (.*)$", output, re.M))
    return "never seen: " + ", ".join(sorted(missing)) if missing else None


def judge(check, output):
    found = judge_mode(check, output)
    if check.kind != "mutant":
        return found is None, found or "holds"
    refuted = found is not None and (found.startswith("broken: ") or found == "it may never settle")
    return refuted, "refuted, " + found if refuted else "SURVIVES" if found is None else found


def replay(where):
    """The shortest story pan has of the error, for people."""
    told = call(["./pan", "-r", "-n"], where, 60)
    (where / "trail.txt").write_text(told.stdout)


def run(check, workers, directory):
    where = pathlib.Path(directory) / f"{check.name}-{check.mode}-{check.kind}"
    where.mkdir()
    started = time.monotonic()
    failure = build(check, workers, where)
    if failure is not None:
        return Outcome(False, "-", time.monotonic() - started, failure)
    options = ["-a", "-f"] if "LIVE" in check.flags else ["-E"]
    try:
        output = call(["./pan", "-m1000000", "-n", "-w24", *options], where, 3600).stdout
    except subprocess.TimeoutExpired:
        return Outcome(False, "-", time.monotonic() - started, "too slow")
    states = re.search(r"^\s*([0-9.e+]+) states, stored", output, re.M)
    passed, text = judge(check, output)
    if not passed and check.kind != "mutant":
        replay(where)
    return Outcome(passed, f"{float(states.group(1)):,.0f}" if states else "-", time.monotonic() - started, text)


def show(check, outcome):
    verdict = "ok  " if outcome.passed else "FAIL"
    what = f"{check.kind:<7} {check.name:<17} {check.mode:<6} {check.faults:>2}"
    print(f"{verdict} {what} {outcome.states:>12} {outcome.seconds:>6.1f} s  {outcome.text}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=4)
    parser.add_argument("--workers", type=int, choices=(2, 3), default=2)
    parser.add_argument("--only", default="", help="a name, mode or kind")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--keep", action="store_true", help="keep the working directory")
    return parser.parse_args()


def main():
    options = arguments()
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is needed and not installed (apt-get install {tool})")
    checks = [c for c in all_checks(options.faults) if options.only in (c.name, c.mode, c.kind, "")]
    directory = tempfile.mkdtemp(prefix="semel-model-")
    print(f"     {'what':<7} {'name':<17} {'mode':<6} {'f':>2} {'states':>12} {'time':>8}  result")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for check, outcome in zip(checks, pool.map(lambda c: run(c, options.workers, directory), checks)):
            show(check, outcome)
            failed += not outcome.passed
    if options.keep or failed:
        print(f"kept: {directory}")
    else:
        shutil.rmtree(directory)
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
