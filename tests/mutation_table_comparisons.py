"""The wrong changes that `mutations.py` tries in comparisons, their tables and trackers."""

from __future__ import annotations

from mutation_table import Mutation

ARMS = "comparison -k arms"

COMPARISONS = [
    Mutation("arm-overruled", "any(own == path or own.startswith", "False and any(own == path or own.startswith", ARMS),
    Mutation("sweep-of-one", "for text in texts] for path, texts", "for text in texts[:1]] for path, texts", ARMS),
    Mutation("short-name-guessed", "require(len(found) < 2, f", "require(found or True, f", ARMS),
    Mutation("file-over-option", '("method", "methods", *said)', '("method", "methods")', ARMS),
    Mutation("arm-twice", "if other is not arm:", "if False:", ARMS),
    Mutation("library-replaced", "sys.path.append(here)", "sys.path.insert(0, here)", ARMS),
    Mutation("tracker-twice", "if record.round > self.writer.last:", "if record.round:", "track"),
    Mutation(
        "tracker-stops-a-run",
        "except Exception as error:  # whatever the other",
        "except KeyError as error:  # whatever the other",
        "track",
    ),
    Mutation(
        "export-best-reversed",
        ".max() if metric.higher_is_better",
        ".min() if metric.higher_is_better",
        "comparison -k exports",
    ),
    Mutation("ten-of-three", "int(min(10, -(-rounds // every)))", "10", "command -k small_things"),
    Mutation("toml-null-lost", "return None if value == NULL else value", "return value", "runs -k experiment_file"),
]
