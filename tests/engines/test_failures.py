"""Which failures of an actor a new start mends, and in which sentence the others are told."""

from __future__ import annotations

from typing import Any

import pytest

import fedkin as fk
from fedkin.engines.cluster.failures import lacking, raise_unless_mended, short_of_memory
from fedkin.errors import Unfinished

ray = pytest.importorskip("ray")
errors: Any = ray.exceptions
SAVED = r"what was saved can be gone on with by --resume\.$"


def in_a_task(cause: Exception, text: str = "Traceback") -> Exception:
    """The error of a call in which this happened."""
    found: Exception = errors.RayTaskError("train", text, cause)
    return found


def lost(kind: Any) -> Exception:
    found: Exception = kind("00", None, "")
    return found


MENDED = {
    "killed": (errors.ActorDiedError(), False),
    "unavailable": (errors.ActorUnavailableError("gone", b"0" * 16), False),
    "crashed": (errors.WorkerCrashedError(), False),
    "node": (errors.NodeDiedError("gone"), False),
    "monitor": (errors.OutOfMemoryError("2 worker(s) were killed"), True),
    "words": (errors.ActorDiedError(in_a_task(RuntimeError(), "killed, the node was running low on memory")), True),
    "python": (in_a_task(MemoryError()), True),
    "torch": (in_a_task(RuntimeError(), "DefaultCPUAllocator: can't allocate memory"), True),
}
TOLD = {
    "object": (lost(errors.ObjectLostError), Unfinished, f"^A machine of the Ray cluster was lost .*; {SAVED}"),
    "owner": (lost(errors.OwnerDiedError), Unfinished, f"^A machine of the Ray cluster was lost .*; {SAVED}"),
    "argument": (in_a_task(lost(errors.ObjectLostError)), Unfinished, "^A machine of the Ray cluster was lost"),
    "full": (errors.ObjectStoreFullError("full"), Unfinished, rf"^Ray failed \(ObjectStoreFullError\); {SAVED}"),
    "input": (
        in_a_task(fk.BadInput("No way, out of memory."), "out of memory"),
        fk.BadInput,
        r"^No way, out of memory\.$",
    ),
    "own": (in_a_task(ZeroDivisionError("zero")), errors.RayTaskError, "Traceback"),
    "module": (errors.RaySystemError("No module named 'mine'"), fk.BadInput, r"\(No module named 'mine'\); install it"),
    "actor": (
        errors.ActorDiedError(
            in_a_task(RuntimeError(), "The actor failed to import on the worker.\nImportError: cannot import fedkin.")
        ),
        fk.BadInput,
        r"^A machine of the Ray cluster lacks what the run needs \(cannot import fedkin\); install it there\.$",
    ),
}


@pytest.mark.parametrize("name", MENDED)
def test_a_new_start_mends_what_ended_an_actor(name: str) -> None:
    error, short = MENDED[name]
    raise_unless_mended(ray, error)
    assert short_of_memory(ray, error) == short
    assert lacking(ray, error) is None


@pytest.mark.parametrize("name", TOLD)
def test_the_others_are_told(name: str) -> None:
    error, kind, sentence = TOLD[name]
    with pytest.raises(kind, match=sentence):
        raise_unless_mended(ray, error)
