"""Plays the tables and figures of papers, reads their numbers, judges their claims, and shows all three."""
