"""How much memory a file takes when it is read, so that one for which there is none is refused before it is opened."""

from __future__ import annotations

import zipfile
from pathlib import Path

from fedkin.core.machine import free, readable
from fedkin.errors import require

TEXT, CELLS, ARRAYS, VALUES = 3, 10, 2, 16  # bytes of memory a byte of text, of a sheet, of arrays; of a table's value


def check_room(*paths: Path) -> None:
    """Refuse a file that is no file, is empty, or takes more memory than is free, alone or with the others."""
    for path in paths:
        require(path.is_file(), f"{path.name} is no file; give one that holds a table.")
        require(path.stat().st_size, f"{path.name} is empty.")
    need, there = sum(map(taken, paths)), free()
    what = f"{paths[0].name} takes" if len(paths) == 1 else f"The {len(paths):,} files take"
    said = f"{what} about {readable(need)} of memory, and {readable(there)} are free"
    require(need <= there, f"{said}; take fewer rows or columns.")


def taken(path: Path) -> int:
    """Return about how many bytes of memory a file takes when it is read. Archives say how large their members are."""
    size, ending = path.stat().st_size, path.suffix.lower()
    if ending == ".parquet":
        return VALUES * values_in(path)
    if ending in (".npz", ".xlsx"):
        factor = ARRAYS if ending == ".npz" else CELLS
        try:
            with zipfile.ZipFile(path) as archive:
                return factor * sum(member.file_size for member in archive.infolist())
        except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
            return 0  # whoever reads it says what is wrong
    return TEXT * size


def values_in(path: Path) -> int:
    """Return how many values a Parquet file says that it has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return 0  # whoever reads it says what is wrong
    return int(found.num_rows) * int(found.num_columns)
