"""Numbers as people write them, and colours that keep methods apart."""

from __future__ import annotations

from fedkin.report.charts import style
from fedkin.report.formats import points, size


def test_many_methods_keep_apart_and_local_stays_grey() -> None:
    names = ["local", *(f"m{i}" for i in range(12))]
    found = style.styles(names, "local")
    assert len(set(found.values())) == 13
    assert found["local"][0] == style.ALONE


def test_ticks_of_a_logarithmic_axis() -> None:
    assert style.decades(12, 161) == [10, 20, 50, 100, 200]
    assert style.decades(1, 20_000) == [1, 10, 100, 1000, 10_000]


def test_signs_and_sizes_as_people_write_them() -> None:
    assert [points(v) for v in (0.0123, -0.5, 0.0, -1e-9)] == ["+1.23", "−50.00", "0.00", "0.00"]
    assert [size(v) for v in (0, 999, 1500, 11_712_000, 2.5e13)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "11.7 MB",
        "25.0 TB",
    ]
