"""The sections of the page. Each module has one function that takes a study and returns a `Section`, or None where the
study has nothing to show."""
