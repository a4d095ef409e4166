"""What the command `fedkin` starts with: it imports fedkin, which takes a moment, and a Ctrl-C meanwhile ends it."""

import signal


def main() -> None:
    """Run the command."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fedkin.command.cli import main as command  # imports torch

    signal.signal(signal.SIGINT, before)
    command()


if __name__ == "__main__":
    main()
