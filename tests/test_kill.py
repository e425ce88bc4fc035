"""Killed at any instant at which the saver writes, and gone on with: what was stored is not done again."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tool_graphs import WAYS

ROOT = Path(__file__).parent.parent
WHOLE = [["human", "Pay both"], ["ai", ""], ["tool", "transferred 1"], ["tool", "transferred 2"], ["ai", "Both paid."]]


@pytest.fixture(scope="module", params=WAYS)
def instants(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What lay on disk after each kill, and what came of going on."""
    command = [sys.executable, str(ROOT / "tests/kill_child.py"), str(tmp_path_factory.mktemp("killed")), request.param]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_side_effect_whose_result_was_stored_is_never_repeated(instants):
    """B054, with a saver that is slow: at every instant of a turn of two calls."""
    for one in instants:
        times = Counter(amount for amount, *_ in one["after"]["effects"])
        assert all(times[str(n)] == 1 for n in one["before"]["stored"]), one
    assert {len(one["before"]["stored"]) for one in instants} == {0, 1, 2}


def test_a_call_that_died_before_its_result_was_stored_runs_again_under_the_same_key(instants):
    """So that a tool can tell: its call's id, and the id of LangGraph's task."""
    again = [one for one in instants if len(one["after"]["effects"]) > 2]
    for one in again:
        assert len({tuple(effect) for effect in one["after"]["effects"]}) == 2, one
    assert again and all(one["before"]["effects"] for one in again)


def test_no_tool_runs_before_its_call_is_on_disk(instants):
    """B049: killed at once after the effect, the thread knows that it was called."""
    ran = [one for one in instants if one["before"]["effects"]]
    assert ran and all(one["before"]["called"] for one in ran)


def test_the_turn_is_whole_in_the_end_wherever_it_was_killed(instants):
    assert len(instants) > 15 and all(one["messages"] == WHOLE for one in instants)
