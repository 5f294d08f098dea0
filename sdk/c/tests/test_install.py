"""What is installed: the README's program, as it is pasted, and names that can be seen."""

import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

README = (ROOT / "sdk/c/README.md").read_text(encoding="utf-8")
SANITIZED = BUILD.name != "build"
NAMES = set(re.findall(r"SEMEL_EXPORT [^;]*?\b(semel_\w+)\(", (ROOT / "sdk/c/include/semel.h").read_text(), re.S))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    if SANITIZED:
        pytest.skip("a program without the sanitizer cannot load a library with it")
    root = tmp_path_factory.mktemp("root")
    subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir", str(root)], check=True)
    found = next(root.rglob("semel.pc"))
    environment = {**os.environ, "PKG_CONFIG_PATH": str(found.parent), "PKG_CONFIG_SYSROOT_DIR": str(root)}
    return environment, str(found.parent.parent)


def flags(installed, *more):
    return subprocess.run(["pkg-config", "--cflags", *more, "semel"], env=installed[0], check=True, capture_output=True, text=True).stdout.split()


def build(installed, tmp_path, compiler, how):
    (tmp_path / "followup.c").write_text(re.search(r"^```c\n(.*?)^```$", README, re.M | re.S).group(1))
    libraries = flags(installed, "--libs") if how == "shared" else flags(installed, "--libs", "--static")
    if how == "static":
        libraries = [f"{installed[1]}/libsemel.a" if word == "-lsemel" else word for word in libraries]
    warnings = ["-Wall", "-Wextra", "-Werror"] + (["-pedantic", "-std=c17"] if compiler == "cc" else [])
    subprocess.run([compiler, *warnings, "followup.c", *libraries, "-o", "followup"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("how", ["shared", "static"])
def test_the_program_of_the_readme(installed, tmp_path, how):
    build(installed, tmp_path, "cc", how)
    said = re.findall(r"^\$ ./followup\n(.*)$", README, re.M)
    for line in said:
        environment = {**os.environ, "LD_LIBRARY_PATH": installed[1] if how == "shared" else ""}
        result = subprocess.run(["./followup"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.stdout.strip() == line and result.returncode == 0 and result.stderr == ""
    assert len(said) == 2


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
def test_the_header_is_also_for_cpp(installed, tmp_path):
    (tmp_path / "x.cc").write_text('#include <semel.h>\nint main() { return semel_version()[0] == 0; }\n')
    subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", "x.cc", *flags(installed, "--libs"), "-o", "x"], cwd=tmp_path, check=True)


def test_only_names_of_the_header_can_be_seen(installed):
    shared = subprocess.run(["nm", "-D", "--defined-only", f"{installed[1]}/libsemel.so"], check=True, capture_output=True, text=True).stdout
    assert {line.split()[2].split("@")[0] for line in shared.splitlines() if " T " in line} == NAMES
    static = subprocess.run(["nm", "--defined-only", "--extern-only", f"{installed[1]}/libsemel.a"], check=True, capture_output=True, text=True).stdout
    assert {line.split()[2] for line in static.splitlines() if len(line.split()) == 3} == NAMES


def test_it_needs_no_more_than_it_says(installed):
    """What the server has besides (mail, event loops, PostgreSQL) stays out of it."""
    dynamic = subprocess.run(["readelf", "-d", f"{installed[1]}/libsemel.so"], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"\[lib(\w+?)(?:-0)?\.so", "\n".join(line for line in dynamic.splitlines() if "NEEDED" in line)))
    assert needed <= {"sqlite3", "curl", "crypto", "icui18n", "icuuc", "yaml", "m", "c", "pthread"}
