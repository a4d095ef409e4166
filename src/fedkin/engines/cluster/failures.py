"""What it means that a call of an actor failed: which errors a new start mends, and what is said of the others."""

from __future__ import annotations

from typing import Any

import torch

from fedkin.errors import BadInput, Unfinished

RESUME = "what was saved can be gone on with by --resume"
WORDS = ("allocate memory", "out of memory", "low on memory", "memory pressure")


def short_of_memory(ray: Any, error: Exception) -> bool:
    """Whether an actor failed for lack of memory, as far as it can be told."""
    kinds = MemoryError, torch.OutOfMemoryError, ray.exceptions.OutOfMemoryError
    if isinstance(error, kinds) or isinstance(getattr(error, "cause", None), kinds):
        return True
    return any(word in str(error) for word in WORDS)


def raise_unless_mended(ray: Any, error: Exception) -> None:
    """Raise what a new start of the actor does not mend, in a sentence; an error of the training as it was there."""
    errors, cause = ray.exceptions, getattr(error, "cause", None)
    if isinstance(error, errors.ObjectLostError) or isinstance(cause, errors.ObjectLostError):
        raise Unfinished(f"A machine of the Ray cluster was lost with what lay there; {RESUME}.") from error
    if short_of_memory(ray, error) and not isinstance(cause, BadInput):
        return
    if isinstance(error, errors.RayTaskError):
        raise (cause if isinstance(cause, BadInput) else error) from None
    if isinstance(error, errors.RaySystemError):
        reason = str(error).splitlines()[0].removeprefix("System error: ").rstrip(".")
        raise BadInput(f"An actor lacks what the run needs ({reason}); install it on every machine.") from error
    if not isinstance(error, errors.RayActorError | errors.WorkerCrashedError | errors.NodeDiedError):
        raise Unfinished(f"Ray failed ({type(error).__name__}); {RESUME}.") from error
