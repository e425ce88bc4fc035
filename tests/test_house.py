"""The rules of the house that a person would forget: where packages come from, what an import may do."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("graph", "nodes", "memory")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_are_those_of_this_repository(package: str):
    found = importlib.import_module(package).__file__
    assert found and Path(found).parent == ROOT / package


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_bears_the_name_of_a_package(package: str):
    assert not [path for path in ROOT.glob("*/*.py") if path.stem in PACKAGES and path.parent.name in PACKAGES]


def test_memory_knows_of_langgraph_only_its_store():
    imports = [
        (path.name, name)
        for path in (ROOT / "memory").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in getattr(node, "names", [])]
        )
    ]
    strange = [
        (file, name)
        for file, name in imports
        if name.startswith("langgraph") and not name.startswith("langgraph.store")
    ]
    assert strange == []


def test_importing_everything_opens_nothing(tmp_path: Path):
    """B156: no file, no socket, no key is needed to import what langgraph.json names."""
    names = [
        f"{path.parent.name}.{path.stem}"
        for name in PACKAGES
        for path in (ROOT / name).glob("*.py")
        if path.stem not in ("__main__", "postgres")
    ]
    code = f"import sys, importlib\nsys.path.insert(0, {str(ROOT)!r})\nfor n in {names!r}: importlib.import_module(n)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env={"PATH": ""})
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_waits_for_no_library():
    code = "import sys\nfrom graph.cli import parser\nparser().format_help()\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"langgraph", "langchain_core", "chromadb", "numpy", "pydantic"} & set(done.stdout.split())
