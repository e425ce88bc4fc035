"""Scripts of users: what the package offers runs, awaited and not, and satisfies `mypy --strict`."""

import os
import subprocess
import sys
from pathlib import Path

from test_readme import READMES, ROOT, blocks, ran

WRONG = """
from graph import open_agent, run
with open_agent() as agent:
    text: int = run(agent, "a", thread="t").text
"""
SCRIPT = Path(__file__).with_name("script_of_a_user.py")


def test_a_script_runs_with_tools_approval_trace_and_stream(tmp_path: Path):
    told = ran(SCRIPT.read_text(encoding="utf-8"), tmp_path)
    assert told[0] == "Sent. answered [1, 2, 3, 4, 5] ['']"
    assert [line.split()[0] for line in told[1:4]] == ["recall", "reason", "remember"]
    assert told[4].startswith("Hello. ")


def test_scripts_of_users_pass_mypy_strict(tmp_path: Path):
    """Also every script of the READMEs; as typed packages ours say so by a marker."""
    assert all((ROOT / package / "py.typed").is_file() for package in ("graph", "nodes", "memory"))
    shown = [(name.replace(".", "_"), n, code) for name in READMES for n, code in enumerate(blocks(name, "python"))]
    scripts = {f"{name}_{n}": code for name, n, code in shown}
    scripts |= {"script": SCRIPT.read_text(encoding="utf-8"), "wrong": WRONG}
    for name, code in scripts.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    # Our own modules are checked by the house's settings; here they are what is installed.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, f"--cache-dir={ROOT / '.mypy_cache' / 'scripts'}", "."],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.split(":")[0] for line in errors] == ["wrong.py"], done.stdout + done.stderr
