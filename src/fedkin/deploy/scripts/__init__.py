"""The scripts that an exported folder gets a copy of. They import nothing of fedkin."""
