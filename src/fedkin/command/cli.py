"""The command line: every command, and what a failure prints."""

from __future__ import annotations

import errno
import os
import sys

import click
from rich.console import Console

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
from fedkin.errors import BadInput, Unfinished
from fedkin.runs import files

WRITING = {
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST", "EISDIR")
}


def main() -> None:
    """Run the command. Bad input is one sentence and exit code 2; any other failure keeps its traceback."""
    try:
        code = app(standalone_mode=False)
    except BadInput as error:
        code = complain(str(error))
    except files.Damaged as error:
        code = complain(f"{error}.")
    except Unfinished as error:
        code = complain(str(error), 1)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        code = complain(error.format_message())
    except OSError as error:
        if error.errno is None or error.errno not in WRITING:
            raise
        where = f" at {error.filename}" if error.filename else ""
        advice = (
            "free some space and go on with --resume"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else "choose another --out"
        )
        code = complain(f"Cannot write{where}: {os.strerror(error.errno)}; {advice}.")
    sys.exit(code or 0)


def complain(sentence: str, code: int = 2) -> int:
    """Print a sentence on standard error and return the exit code."""
    Console(stderr=True).print(f"fedkin: {sentence}", style="red", highlight=False, markup=False, soft_wrap=True)
    return code


if __name__ == "__main__":
    main()
