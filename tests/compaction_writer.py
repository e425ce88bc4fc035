"""A process that talks until it is killed, its page cut every few turns. Run by test_compaction_crash.py.

It reads lines of "home seed log" and forks for each. The forked process appends to the log each question before it is
asked and each answer after its run, and stores with a hash for an embedder.
"""

import json
import os
import random
import sys
from pathlib import Path

import chromadb  # noqa: F401  loaded once, before any fork
from conftest import config
from talking import Talking, opened

from nodes.context import Context


def talk_until_killed(home: Path, rng: random.Random, log: int) -> None:
    """Ask and answer, telling before and after."""
    steps = Talking(then=lambda messages, tools: f"answer to {messages[-1].text}")
    with opened(home, steps) as agent:
        while True:
            question = f"question {rng.randrange(10**9)}"
            os.write(log, (json.dumps({"asked": question}) + "\n").encode())
            message = {"role": "user", "content": question}
            context = Context(max_messages=4, extract=rng.choice(("off", "compaction")))
            agent.invoke({"messages": [message]}, config(), context=context)
            os.write(log, (json.dumps({"answered": question}) + "\n").encode())


def main() -> None:
    """Fork a talker for each line of the input; print its process id."""
    for line in sys.stdin:
        home, seed, log_path = line.split()
        if (child := os.fork()) == 0:
            log = os.open(Path(log_path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            talk_until_killed(Path(home), random.Random(int(seed)), log)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main()
