"""The numbers behind the sections of the page. Nothing here reads a file or writes HTML."""
