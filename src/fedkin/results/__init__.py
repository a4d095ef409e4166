"""What a run writes, and its readers."""
