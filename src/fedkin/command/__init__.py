"""The command line: its options, its progress display and its commands."""
