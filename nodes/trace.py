"""The steps that a turn leaves for people who ask what happened."""

import time
from typing import Any

from nodes.state import Step


class Watch:
    """Measures one node's step with a monotonic clock."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.start = time.monotonic()

    def step(self, **detail: Any) -> list[Step]:
        """Return the step as a state update: the node, its milliseconds so far, and what it wants to tell."""
        return [Step(node=self.node, ms=round((time.monotonic() - self.start) * 1000), detail=detail)]
