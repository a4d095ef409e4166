"""Numbers as tables and sentences write them."""

from __future__ import annotations


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
