"""The source itself: Python 3.9, the standard library alone, typed, and small."""

import ast
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
FILES = sorted((PACKAGE / "semel").glob("*.py"))
OTHERS = {"pytest"}  # imported by the plugin, which pytest loads


def unknown_imports(tree):
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - OTHERS


def long_functions(tree, lines_max=70):
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [node.name for node in functions if node.end_lineno - node.lineno > lines_max]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_module(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    assert ast.get_docstring(tree), "a module says what it is"
    assert unknown_imports(tree) == set()
    assert text.count("\n") < 400 and long_functions(tree) == []
    assert max(map(len, text.splitlines())) <= 150


def test_the_checks_see_their_own_bad_examples():
    with pytest.raises(SyntaxError):
        ast.parse("match x:\n    case 1: pass", feature_version=(3, 9))
    assert unknown_imports(ast.parse("import requests")) == {"requests"}
    assert long_functions(ast.parse("def f():\n" + "    g()\n" * 71)) == ["f"]


def test_it_compiles_without_a_warning(tmp_path):
    command = [sys.executable, "-W", "error", "-m", "compileall", "-q", "-f", str(PACKAGE / "semel")]
    subprocess.run(command, check=True, env={"PYTHONPYCACHEPREFIX": str(tmp_path)})


def test_it_is_typed(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--config-file", str(PACKAGE / "pyproject.toml"), "--cache-dir", str(tmp_path), str(PACKAGE / "semel")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
    assert (PACKAGE / "semel" / "py.typed").exists()
