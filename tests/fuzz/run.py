#!/usr/bin/env python3
"""Builds the fuzz targets with clang and libFuzzer and lets each run for a while.

    run.py [TARGET…] [--seconds N] [--jobs N] [--build DIR]     fuzz; new inputs are kept in DIR/corpus
    run.py [TARGET…] --replay                                   only run the corpora, with the same sanitizers
    run.py [TARGET…] --minimise                                 merge DIR/corpus and the corpora into small corpora

A crash lands in DIR/crashes; the command that replays it is printed and the exit status is 1. Public test suites and dictionaries are
read from SEMEL_TEST_DATA when it is set. The last line is `N passed, N failed, 0 skipped`.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COMPILER = os.environ.get("CC", "clang-14")
FLAGS = """-std=gnu17 -g -O1 -D_GNU_SOURCE -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
-Werror -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined""".split()
CPP_FLAGS = "-x c++ -std=c++17 -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-sanitize=vptr".split()
PACKAGES = ["sqlite3", "libcrypto", "icu-uc", "icu-i18n", "yaml-0.1", "libsodium", "libcurl", "gmime-3.0", "libidn2", "libpsl"]

# The folders below the faces; the parsers of the HTTP face stand alone.
SOURCES = ["src/base/*.c", "src/env/*.c", "src/store/*.c", "src/secret/*.c", "src/guard/*.c", "src/match/*.c", "src/match/*.cc", "src/audit/*.c", "src/ledger/*.c", "src/fingerprint/*.c",
           "src/destination/*.c", "src/identity/*.c", "src/mail/*.c", "src/receive/*.c", "src/policy/*.c", "src/access/*.c", "src/http/parse.c", "src/http/chunks.c", "src/smtp/session.c"]

# Per target: the longest input worth trying, folders of public suites to start from, a public dictionary (used unless TARGET.dict exists).
HTTP_DICTIONARY = "protocol/fuzz-dicts/projects_nginx_fuzz_http_request_fuzzer.dict"
JSON_DICTIONARY = "protocol/fuzz-dicts/projects_json_parse_afl_fuzzer.dict"
JSON_SUITES = ["protocol/json-testsuite/test_parsing", "protocol/json-testsuite/test_transform",
               "protocol/json-canonicalization/testdata/input"]
TARGETS = {
    "canonical": (2048, JSON_SUITES, JSON_DICTIONARY),
    "destination": (6144, [], None),
    "fingerprint": (2048, JSON_SUITES, JSON_DICTIONARY),
    "http_chunks": (4096, [], None),
    "http_head": (4096, [], HTTP_DICTIONARY),
    "id": (256, [], None),
    "json": (4096, JSON_SUITES, JSON_DICTIONARY),
    "key_template": (2048, [], None),
    "ledger": (600, [], None),
    "mail": (4096, [], None),
    "match": (1024, ["protocol/naughty-strings"], None),
    "mcp": (4096, JSON_SUITES, JSON_DICTIONARY),
    "percent": (512, ["protocol/naughty-strings"], None),
    "policy": (4096, [], None),
    "rebuild": (2048, JSON_SUITES, JSON_DICTIONARY),
    "receive": (8192, [], JSON_DICTIONARY),
    "smtp": (2048, [], None),
    "token": (256, [], None),
    "url": (2100, [], None),
    "when": (64, [], None),
}
CORPUS_FILES_MAX, CORPUS_FILE_SIZE_MAX = 60, 4096
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1:handle_abort=1",
                   UBSAN_OPTIONS="print_stacktrace=1")


def run(command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


# ---- building ----

def generate(build):
    """The files that the build makes from SQL and migrations; the same programs that meson calls. What did not change is left alone."""
    out, new = build / "generated", build / "generated.new"
    for folder in (out, new):
        folder.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "meson.build").read_text()
    sql = re.search(r"custom_target\('queries',\s*input: files\(([^)]*)\)", text).group(1)
    run([sys.executable, ROOT / "tools/queries.py", new / "queries.h", new / "queries.c",
         *[ROOT / name for name in re.findall(r"'([^']+)'", sql)]])
    arguments = [f"openapi={ROOT / 'src/api/openapi.json'}", f"match_rules={ROOT / 'src/match/rules.yaml'}"]
    for name in re.findall(r"'([^']+)'", re.search(r"migrations = \[([^\]]*)\]", text).group(1)):
        arguments += [f"migrations_{kind}={ROOT / 'migrations' / kind / name}" for kind in ("sqlite", "postgres")]
    for group in ("providers", "sources"):
        for name in re.findall(r"'([^']+)'", re.search(rf"\n{group} = \[([^\]]*)\]", text).group(1)):
            arguments.append(f"{group}={ROOT / group / name}.yaml")
    run([sys.executable, ROOT / "tools/embed.py", new / "embedded.c", new / "embedded.h", *arguments])
    for path in new.iterdir():
        old = out / path.name
        if not old.exists() or old.read_bytes() != path.read_bytes():
            shutil.copyfile(path, old)
    return [out / "queries.c", out / "embedded.c"]


def is_fresh(output, depfile):
    if not output.exists() or not depfile.exists():
        return False
    names = depfile.read_text().replace("\\\n", " ").split(":", 1)[1].split()
    made = output.stat().st_mtime
    return all(pathlib.Path(name).exists() and pathlib.Path(name).stat().st_mtime <= made for name in names)


def compile_one(source, build, extra):
    name = str(source.relative_to(ROOT) if source.is_relative_to(ROOT) else source.name).replace("/", "_")
    output, depfile = build / "objects" / (name + ".o"), build / "objects" / (name + ".d")
    if not is_fresh(output, depfile):
        language = CPP_FLAGS if source.suffix == ".cc" else [*FLAGS, "-include", ROOT / "src/base/banned.h"]
        run([COMPILER, *language, *extra, "-I", ROOT / "src", "-I", ROOT / "tests", "-I", build / "generated",
             "-MMD", "-MF", depfile, "-c", source, "-o", output], cwd=ROOT)
    return output


def build_targets(names, build, jobs):
    (build / "objects").mkdir(parents=True, exist_ok=True)
    sources = [path for pattern in SOURCES for path in sorted(ROOT.glob(pattern))]
    sources = [path for path in sources if not path.name.endswith("_test.c") and path.name not in ("postgres.c", "listener.c")] + generate(build)
    packages = subprocess.check_output(["pkg-config", "--cflags", "--libs", *PACKAGES], text=True).split()
    cflags = [flag for flag in packages if not flag.startswith("-l")]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(lambda path: compile_one(path, build, ["-fsanitize=fuzzer-no-link", *cflags]), sources))
        mains = list(pool.map(lambda name: compile_one(HERE / f"{name}.c", build, ["-fsanitize=fuzzer-no-link", *cflags]), names))
    archive = build / "libsemel.a"
    archive.unlink(missing_ok=True)
    run(["ar", "rcs", archive, *objects])
    for name, main in zip(names, mains):
        run([COMPILER, "-fsanitize=fuzzer,address,undefined", main, archive, *packages, "-lphonenumber", "-lstdc++", "-lm", "-lpthread", "-o", build / f"fuzz_{name}"])


# ---- running ----

def data_paths(names):
    folder = os.environ.get("SEMEL_TEST_DATA")
    return [path for path in (pathlib.Path(folder) / name for name in names) if path.exists()] if folder else []


def fuzzer(name, build, *options):
    return [build / f"fuzz_{name}", f"-artifact_prefix={build}/crashes/{name}-", "-timeout=10", "-rss_limit_mb=1024", *options]


def report(name, build, output, failed):
    """One line about what happened; the fuzzer's own words when it found something."""
    done = re.search(r"Done (\d+) runs in (\d+) second", output)
    last = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", output)
    runs = int(done.group(1)) if done else max([int(n) for n in re.findall(r"^#(\d+)", output, re.M)] or [0])
    edges, features, inputs = last[-1] if last else ("0", "0", "0")
    verdict = "FAILED" if failed else "ok"
    print(f"{name:14}{runs:>12,} execs  cov {edges:>5}  features {features:>6}  corpus {inputs:>5}  {verdict}", flush=True)
    if failed:
        print(output[-6000:])
        for path in re.findall(r"Test unit written to (\S+)", output):
            print(f"replay: {build / ('fuzz_' + name)} {path}", flush=True)


def fuzz(name, build, seconds):
    size_max, suites, dictionary = TARGETS[name]
    grown = build / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    (build / "crashes").mkdir(exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-max_len={size_max}"]
    own = HERE / f"{name}.dict"
    dictionaries = [own] if own.exists() else data_paths([dictionary] if dictionary else [])
    options += [f"-dict={path}" for path in dictionaries]
    command = fuzzer(name, build, *options, grown, HERE / "corpus" / name, *data_paths(suites))
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", env=ENVIRONMENT)
    report(name, build, done.stdout + done.stderr, done.returncode != 0)
    return done.returncode == 0


def replay(name, build, _seconds):
    files = sorted((HERE / "corpus" / name).iterdir())
    (build / "crashes").mkdir(exist_ok=True)
    done = subprocess.run([str(part) for part in fuzzer(name, build, *files)], capture_output=True, text=True, errors="replace", env=ENVIRONMENT)
    print(f"{name:14}{len(files):>12,} inputs  {'ok' if done.returncode == 0 and files else 'FAILED'}", flush=True)
    if done.returncode != 0:
        output = done.stdout + done.stderr
        print(output[-6000:])
        running = re.findall(r"^Running: (\S+)", output, re.M)
        if running:
            print(f"replay: {build / ('fuzz_' + name)} {running[-1]}")
    return done.returncode == 0 and bool(files)


def minimise(name, build, _seconds):
    """Adds to the corpus inputs that reach what it does not reach yet: a spread over their sizes, as many as it may hold."""
    kept, merged = HERE / "corpus" / name, build / "merged" / name
    shutil.rmtree(merged, ignore_errors=True)
    shutil.copytree(kept, merged)
    (build / "crashes").mkdir(exist_ok=True)
    (build / "corpus" / name).mkdir(parents=True, exist_ok=True)
    size_max = min(TARGETS[name][0], CORPUS_FILE_SIZE_MAX)
    command = fuzzer(name, build, "-merge=1", f"-max_len={size_max}", merged, build / "corpus" / name)
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", env=ENVIRONMENT)
    had = {path.name for path in kept.iterdir()}
    found = sorted((path for path in merged.iterdir() if path.name not in had), key=lambda path: (path.stat().st_size, path.name))
    room = CORPUS_FILES_MAX - len(had)
    chosen = found[::-(-len(found) // room)] if found and room > 0 else []
    for path in chosen:
        shutil.copyfile(path, kept / path.name[:16])
    print(f"{name:14}{len(had):>6} inputs before, {len(found)} reach more, {len(chosen)} were taken", flush=True)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=10, help="how long each target runs")
    parser.add_argument("--jobs", type=int, default=1, help="how many targets run at the same time")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-fuzz")
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--minimise", action="store_true")
    options = parser.parse_args()
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]}; the targets are {', '.join(TARGETS)}")
    names, build = options.targets or list(TARGETS), options.build.resolve()
    build_targets(names, build, max(options.jobs, 1))
    work = replay if options.replay else minimise if options.minimise else fuzz
    with concurrent.futures.ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        good = sum(pool.map(lambda name: work(name, build, options.seconds), names))
    print(f"{good} passed, {len(names) - good} failed, 0 skipped")
    return 0 if good == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
