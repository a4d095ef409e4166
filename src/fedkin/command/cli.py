"""The command line: every command, and what a failure prints."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from traceback import extract_tb

import click
import typer

from fedkin.command import (  # noqa: F401  each enters its commands
    choices,
    export,
    federation,
    join,
    page,
    play,
    predict,
    preset,
    tune,
    watch,
    what_if,
)
from fedkin.command.app import app
from fedkin.command.screen import plain_console, prepare_streams
from fedkin.errors import LONGEST, BadInput, Unfinished, is_text, require, shown, visible
from fedkin.imports import of_user
from fedkin.runs import files
from fedkin.runs.vouched import not_vouched

DEBUG = "--debug"
READ = 1000  # characters of a sentence
NEW_LINE = "\n"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> None:
    """Run the command. Bad input is one sentence and exit code 2, any other failure one sentence and exit code 1; the
    word --debug, at any place, shows the traceback of a failure too."""
    prepare_streams()
    words = [word for word in sys.argv[1:] if word != DEBUG]
    try:
        check_words(words)
        code = whole_command()(args=words, standalone_mode=False)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # also what nobody thought of
        if DEBUG in sys.argv:
            traceback.print_exc()
        code = complain(*told(error, words))
    sys.exit(code or 0)


@cache
def whole_command() -> click.Command:
    """Return all commands as click has them. Making them takes longer than many a command, so it is done once."""
    return typer.main.get_command(app)


def check_words(words: list[str]) -> None:
    """Refuse words that no file can be called."""
    for word in words:
        require(is_text(word), f"The word {shown(word)} has a character that is not text; leave it out.")


def told(error: Exception, words: Sequence[str] = ()) -> tuple[str, int]:
    """Return the sentence for what ended the command of these words, and the exit code."""
    if isinstance(error, click.exceptions.Abort):
        return "", 130
    if isinstance(error, click.ClickException):
        return error.format_message(), 2
    if isinstance(error, BadInput | files.Damaged):
        return f"{str(error).rstrip('.')}.", 2
    if isinstance(error, Unfinished):
        return str(error), 1
    if isinstance(error, OSError) and error.errno is not None:
        return system_sentence(error, error.errno), 2
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):  # of pathlib, up to Python 3.12
        return system_sentence(error, errno.ELOOP), 2
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "There is not enough memory for this; take fewer clients, a smaller model, or a smaller --chunk.", 2
    if (mine := of_user(error)) is not None:
        return str(mine), 2
    frame = extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:LONGEST] or "no reason given"
    place = f"{frame.filename}, line {frame.lineno}"
    if run := not_vouched(words):
        why = f"{type(error).__name__}: {said}"
        return f"{run} is not as fedkin writes a run, and no check sums say otherwise ({why}); add {DEBUG} to see.", 2
    return f"Something failed that should not: {type(error).__name__}: {said} ({place}); add {DEBUG} to see where.", 1


def system_sentence(error: OSError | RuntimeError, number: int) -> str:
    """Return the sentence for what the system refused to do."""
    where = f" {shown(str(error.filename))}" if isinstance(error, OSError) and error.filename else ""
    if number in FULL:
        return f"Cannot write{where}: {os.strerror(number)}; free some space and go on with --resume."
    return f"The system refuses{where}: {os.strerror(number)}; choose another file or folder."


def complain(sentence: str, code: int = 2) -> int:
    """Print a sentence on standard error, without the middle of a very long one, and return the exit code."""
    if sentence:
        sentence = sentence if len(sentence) <= READ else f"{sentence[: READ // 2]} ... {sentence[-READ // 2 :]}"
        said = f"fedkin: {visible(sentence, also=NEW_LINE)}"
        plain_console(stderr=True).print(said, style="red", highlight=False, markup=False, soft_wrap=True)
    return code


if __name__ == "__main__":
    main()
