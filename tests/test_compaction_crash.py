"""A process is killed with SIGKILL at any instant of a talk whose page is cut: the state is the old or the new one.

A few kills by default; PALIMPSEST_KILLS=200 for the full measure.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from conftest import ask, config
from talking import Talking, filed, opened

KILLS = int(os.environ.get("PALIMPSEST_KILLS", "8"))


def told(log: Path) -> tuple[list[str], list[str]]:
    """Return the questions that were asked, and those of them whose run returned."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [one["asked"] for one in lines if "asked" in one], [one["answered"] for one in lines if "answered" in one]


def check(home: Path, asked: list[str], answered: list[str]) -> None:
    """Open the thread as the kill left it: nothing that returned is lost, and it goes on.

    Of a run that never returned, the record may hold more than the state: it is written first.
    """
    model = Talking(then=lambda messages, tools: f"answer to {messages[-1].text}")
    with opened(home, model, wait_s=10) as agent:
        values = agent.get_state(config()).values
        page, record = values.get("messages", []), filed(agent.store)
        everything = [text for texts in record.values() for text in texts]
        for question in answered:
            assert {question, f"answer to {question}"} <= {*everything, *(message.text for message in page)}
        assert all(len(texts) == 1 for texts in record.values())
        questions = [message.text for message in page if message.type == "human"]
        places = [asked.index(question) for question in questions]
        assert places == sorted(places)
        since = [question for question in asked[min(places, default=len(asked)) :] if question in answered]
        assert all(question in questions for question in since)
        left = [question for question in answered if question not in questions]
        assert all(question in everything and f"answer to {question}" in everything for question in left)
        assert not left or values["summary"]
        question = f"still there {len(asked)}?"
        ask(agent, question, max_messages=4, extract="off")
        asked.append(question)
        answered.append(question)
        assert {question, f"answer to {question}"} <= {t for texts in filed(agent.store).values() for t in texts}


def test_after_a_kill_at_any_instant_the_state_is_the_old_or_the_new_and_the_record_complete(tmp_path: Path):
    rng = random.Random(int(os.environ.get("PALIMPSEST_SEED", "1")))
    log, home = tmp_path / "log", tmp_path / "home"
    log.touch()
    here = Path(__file__).parent
    writer = subprocess.Popen(
        [sys.executable, here / "compaction_writer.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(here.parent)])},
    )
    assert writer.stdin and writer.stdout
    asked: list[str] = []
    answered: list[str] = []
    with writer:
        for _ in range(KILLS):
            log.write_text("")
            writer.stdin.write(f"{home} {rng.randrange(10**9)} {log}\n")
            writer.stdin.flush()
            child = int(writer.stdout.readline())
            time.sleep(rng.uniform(0.2, 2.0))
            os.kill(child, signal.SIGKILL)
            assert writer.stdout.readline() == "gone\n"
            new_asked, new_answered = told(log)
            asked, answered = [*asked, *new_asked], [*answered, *new_answered]
            check(home, asked, answered)
        writer.stdin.close()
    assert len(answered) > KILLS
