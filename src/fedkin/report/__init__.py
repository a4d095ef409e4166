"""What a run or a comparison found, for people to read: a page of HTML (`page.py`) and tables for a terminal."""
