"""How many planted instructions reach memory, by door and by disguise; how many honest notes are refused at first.

PYTHONPATH=.:tests python tests/bench_injections.py
"""

import warnings
from collections import Counter

from injections import HONEST, attacks, extract, run

from nodes.grounds import objection


def main() -> None:
    """Let every attack happen; print how many there were and how many reached something."""
    warnings.simplefilter("ignore")
    tried: Counter[str] = Counter()
    reached: Counter[str] = Counter()
    for attack in attacks():
        names = ("all", f"door: {attack.door}", f"disguise: {attack.disguise}")
        names += ("English" if attack.payload.isascii() else "Chinese",)
        tried.update(names)
        if kept := run(attack):
            reached.update(names)
            print("REACHED", attack, kept)
        if attack.door == "tool":
            tried["extraction"] += 1
            if kept := extract(attack):
                reached["extraction"] += 1
                print("EXTRACTED", attack, kept)
    read = [text for attack in attacks() for text in attack.texts]
    refused = [pair for pair in HONEST if objection(pair[1], said=[pair[0]], read=read)]
    print(f"honest notes refused at first: {len(refused)} of {len(HONEST)}", *refused, sep="\n  ")
    for name in sorted(tried):
        print(f"{name:26} {reached[name]:5} of {tried[name]}")


if __name__ == "__main__":
    main()
