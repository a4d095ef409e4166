"""The page of speed is made from the committed measurements, and says when they say little."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
import speed_page

ROW = {
    "loop_us": 100.0,
    "one_us": 50.0,
    "all_us": 25.0,
    "one_ratio": 2.0,
    "all_ratio": 4.0,
    "all_over_one": 2.0,
    "one_wanted": 2.0,
    "all_wanted": 4.0,
    "cores": 2,
    "multiply_adds": 1_000_000,
    "multiply_adds_a_second": {"mm": 5e10, "oneDNN": 1e11},
    "limit_us": 10.0,
    "share_of_limit": 0.2,
    "products_us": 20.0,
}


def measurement(date: str, load: float = 0.1, **sections: Any) -> dict[str, Any]:
    about = {"date": date, "cpu": "a processor", "cores": 2, "load": load, "versions": {"torch": "2.13.0"}}
    return about | sections


def page(folder: Path, *lines: dict[str, Any]) -> str:
    """The page that is made from these measurements."""
    (folder / "speed").mkdir()
    (folder / "speed" / "speed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "speed.md").write_text(f"# Speed\n{speed_page.BEGIN}\nold\n{speed_page.END}\nAfter.\n")
    found = speed_page.made(folder / "speed", folder / "speed.md")
    text = found[folder / "speed.md"]
    assert text.startswith("# Speed\n")
    assert text.endswith(f"{speed_page.END}\nAfter.\n")
    assert "old" not in text
    return text


def test_the_page_is_not_older_than_its_measurements() -> None:
    for path, text in speed_page.made(speed_page.RESULTS, speed_page.PAGE).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is older than its measurements: make speed"


def test_of_every_row_the_newest_measurement_counts(tmp_path: Path) -> None:
    older = measurement("2026-01-01T10:00", rows={"one": ROW | {"loop_us": 111.0}, "other": ROW | {"loop_us": 222.0}})
    newer = measurement("2026-02-01T10:00", rows={"one": ROW | {"loop_us": 333.0}})
    text = page(tmp_path, newer, older)
    assert "| one | 333 |" in text
    assert "| other | 222 |" in text
    assert "111" not in text
    assert "2026-01-01" in text
    assert "2026-02-01" in text


def test_a_busy_machine_is_named(tmp_path: Path) -> None:
    assert "the numbers say little" in page(tmp_path, measurement("2026-01-01", load=4.0, rows={"one": ROW}))


def test_a_quiet_machine_is_not_called_busy(tmp_path: Path) -> None:
    assert "the numbers say little" not in page(tmp_path, measurement("2026-01-01", load=0.3, rows={"one": ROW}))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (2.0, None),
        (4.0, "the arithmetic allows it"),  # 25 µs, and products take 20
        (8.0, "out of reach with these products"),  # 12.5 µs, and the arithmetic takes 10
        (20.0, "out of reach: the arithmetic alone takes longer"),  # 5 µs
    ],
)
def test_a_row_that_misses_its_number_says_what_the_hardware_allows(
    tmp_path: Path, wanted: float, said: str | None
) -> None:
    text = page(tmp_path, measurement("2026-01-01", rows={"one": ROW | {"one_wanted": wanted}}))
    assert ("What the hardware allows" in text) == (said is not None)
    assert said is None or said in text
    assert ("**2.00x**" in text) == (said is None)


def test_two_cores_are_allowed_twice_as_much(tmp_path: Path) -> None:
    """8x on two cores is 12.5 µs: more than half of the products' 20."""
    text = page(tmp_path, measurement("2026-01-01", rows={"one": ROW | {"all_wanted": 8.0}}))
    assert "| one | 2 | 12.5 | 25.0 | 1.00 | 5.00 | 10.0 | the arithmetic allows it |" in text


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "speed.md").write_text("# Speed\n")
    with pytest.raises(SystemExit, match="no place for measurements"):
        speed_page.made(tmp_path, tmp_path / "speed.md")
