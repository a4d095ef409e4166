"""Mistakes of a user, each told in one sentence that says what to change."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 200  # characters of a value that a sentence shows


class BadInput(ValueError):
    """A mistake in what the user asked for. The command line prints the sentence and exits with code 2."""


class Unfinished(Exception):
    """Something ended a run that is no mistake of the user's; the sentence says how to go on. Exit code 1."""


def unknown(kind: str, name: str, choices: Iterable[str]) -> BadInput:
    """The error for a name that is not among the choices. It names the nearest choices, or all if none is near."""
    known = sorted(choices)
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(known)}."
    return BadInput(f"There is no {kind} called {shown(name)}; {hint}")


def shown(value: object) -> str:
    """Return a value as a sentence shows it: in quotes, on one line, cut where it is long."""
    text = value if isinstance(value, str) else repr(value)
    return f"'{visible(text[:LONGEST])}{'...' if len(text) > LONGEST else ''}'"


def is_text(text: str) -> bool:
    """Whether every system can write this text down: it has no NUL and no half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def visible(text: str, also: str = "") -> str:
    """Return a text in which nothing is hidden: characters that are not printed, and would change how a terminal shows
    the others, stand there by their numbers. Those in `also` stay."""
    return "".join(c if c.isprintable() or c in also else ascii(c)[1:-1] for c in text)


def require(true: object, sentence: str) -> None:
    """Raise `BadInput(sentence)` unless the condition holds."""
    if not true:
        raise BadInput(sentence)
