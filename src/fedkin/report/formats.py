"""Numbers as tables and sentences write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedkin.metrics import Metric


def percent(value: float | None, spread: float | None = None) -> str:
    """A fraction in percent without the sign, as the tables have it: 93.12±0.40; '-' for None."""
    if value is None:
        return "-"
    return f"{100 * value:.2f}" + ("" if spread is None else f"±{100 * spread:.2f}")


def share(value: float) -> str:
    """A fraction in percent with three significant digits: 37.5 %."""
    return f"{100 * value:.3g}\u00a0%"


def weight(value: float) -> str:
    """A fraction in percent, with a fourth digit near 100 %, so that 99.98 % is not written as 100 %."""
    return f"{100 * value:.{3 if value < 0.99 else 4}g}\u00a0%"


def whole_percent(value: float | None) -> str:
    """A fraction in whole percent; 'unknown' for None."""
    return "unknown" if value is None else f"{100 * value:.0f}\u00a0%"


def points(value: float, digits: int = 2) -> str:
    """A signed difference of accuracies in percentage points, with a proper minus."""
    text = f"{100 * value:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def significant(value: float) -> str:
    """A number with three significant digits and a proper minus."""
    return f"{value:.3g}".replace("-", "−")


def size(count: float) -> str:
    """A number of bytes in the unit that people would use."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def repeated(summary: dict[str, Any]) -> str:
    """Return over how many runs the numbers of a method are: '2 seeds', '2 seeds x 10 splits', or '5 data seeds' where
    the seed goes along with that of the data."""
    counts = {word: len(summary.get(f"{word}s".replace(" ", "_"), [0])) for word in ("seed", "split", "data seed")}
    together = counts["data seed"] > 1 and summary.get("runs") == counts["split"] * counts["data seed"]
    shown = [word for word, count in counts.items() if count > 1 and not (word == "seed" and together)] or ["seed"]
    shown = shown if "seed" in shown or together else ["seed", *shown]
    return " x ".join(f"{counts[word]} {word}" + ("s" if counts[word] > 1 else "") for word in shown)


# of any metric


def measure(metric: Metric, value: float | None, spread: float | None = None) -> str:
    """A value of a metric as the tables have it: 93.12±0.40 of one in percent, 0.417 of another; '-' for None."""
    if metric.percent or value is None:
        return percent(value, spread)
    return decimals(value) + ("" if spread is None else f"±{spread:.3f}")


def decimals(value: float) -> str:
    """A plain number with three decimals and a proper minus."""
    return f"{value:.3f}".replace("-", "−")


def with_unit(metric: Metric, value: float | None, spread: float | None = None) -> str:
    """The same with a percent sign where it is in percent."""
    return measure(metric, value, spread) + ("\u00a0%" if metric.percent else "")


def difference(metric: Metric, value: float, digits: int = 2) -> str:
    """A signed difference: +1.20 in percentage points, or +0.031 of a plain number."""
    if metric.percent:
        return points(value, digits)
    text = f"{value:+.{digits + 1}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def gained(metric: Metric, value: float, digits: int = 2) -> str:
    """A gain in words: '+1.20 points', or '+0.031 in R2'; positive is better, also where a metric is to be small."""
    return difference(metric, value, digits) + (" points" if metric.percent else f" in {metric.label}")


def titled(metric: Metric) -> str:
    """A metric's label as the beginning of a title."""
    return metric.label[0].upper() + metric.label[1:]


def in_percent(metric: Metric) -> str:
    """What is added to a title over such values: ' in %' or nothing."""
    return " in %" if metric.percent else ""


def in_points(metric: Metric) -> str:
    """What is added to a title over differences of such values: ' in points' or nothing."""
    return " in points" if metric.percent else ""


def gain_with_ends(metric: Metric, found: Mapping[str, Any]) -> str:
    """A verdict's mean gain and its 95 % interval: '+1.20 [−0.30, +2.70]'. A verdict of an older version has none."""
    ends = [end for end in (found.get("low"), found.get("high")) if end is not None]
    text = difference(metric, found["gain"])
    return f"{text} [{', '.join(difference(metric, end) for end in ends)}]" if ends else text


def p_in_words(found: Mapping[str, Any]) -> str:
    """A verdict's p: 'p < 0.001', corrected where it is so: 'p = 0.031 after Holm'."""
    p = found.get("p_holm", found["p"])
    return ("p < 0.001" if p < 0.001 else f"p = {p:.3f}") + (" after Holm" if "p_holm" in found else "")
