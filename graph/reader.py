"""Reading in a process of its own: what a damaged or hostile file does to a reader, it does to that process alone.

The process has a limit of memory, and of time for each file; it is started anew when it has died.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Timer
from typing import Any, Self

from graph.reading import NotRead, Read, load, read
from memory.passages import Document

READ_S = 300.0
READ_BYTES = 4 * 2**30
FORMAT = "1"
"""Part of every revision: with another one here everything is read and split anew."""


class Reader:
    """Reads files one after the other; use it as a context manager."""

    def __init__(self, *, seconds: float = READ_S) -> None:
        self.seconds = seconds
        self.process: subprocess.Popen[str] | None = None

    def read(self, path: Path, *, name: str, declared: str = "", known: str = "") -> tuple[str, Read | None]:
        """Return a file's revision, and what is read unless that is `known`. Raises NotRead, in one line."""
        process = self.process = self.process or started()
        assert process.stdin and process.stdout
        timer = Timer(self.seconds, process.kill)
        timer.start()
        try:
            request = {"path": str(path), "name": name, "declared": declared, "known": known}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        except BaseException:
            self.stop()
            raise
        finally:
            in_time = timer.is_alive()
            timer.cancel()
        if not line:
            self.stop()
            raise NotRead("broke the reader" if in_time else f"takes longer than {self.seconds:g} s to read")
        return result_of(json.loads(line))

    def stop(self) -> None:
        """End the process."""
        if self.process:
            self.process.kill()
            self.process.communicate()
        self.process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def started() -> "subprocess.Popen[str]":
    """Start the process that reads."""
    home = str(Path(__file__).resolve().parent.parent)
    code = f"import sys; sys.path.insert(0, {home!r}); from graph.reader import serve; serve()"
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def result_of(answer: dict[str, Any]) -> tuple[str, Read | None]:
    """Read an answer of the process. Raises NotRead."""
    if "failed" in answer:
        raise NotRead(answer["failed"])
    if (found := answer.get("document")) is None:
        return answer["rev"], None
    places = {name: tuple(map(tuple, found[name])) for name in ("pages", "outline")}
    return answer["rev"], Read(document=Document(**{**found, **places}), notes=tuple(answer["notes"]))


def serve() -> None:
    """Answer requests, a line each, until the input ends. What readers print goes nowhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    with suppress(ImportError, ValueError, OSError):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_AS, (READ_BYTES, READ_BYTES))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer_to(json.loads(line))) + "\n")
        answers.flush()


def answer_to(request: dict[str, str]) -> dict[str, Any]:
    """Read what a request names."""
    import hashlib

    try:
        data = load(Path(request["path"]))
        rev = hashlib.sha256(FORMAT.encode() + data).hexdigest()[:16]
        if rev == request["known"]:
            return {"rev": rev}
        found = read(data, name=request["name"], declared=request["declared"])
        return {"rev": rev, "document": asdict(found.document), "notes": found.notes}
    except NotRead as error:
        return {"failed": str(error)}
    except MemoryError:
        return {"failed": "needs more memory than it may have"}
    except OSError as error:
        return {"failed": f"cannot be read: {error.strerror or error}"}
    except BaseException as error:  # a panic of a library in Rust is no Exception
        return {"failed": f"is damaged ({type(error).__name__})"}
