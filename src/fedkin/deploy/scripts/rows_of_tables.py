"""How the rows of a table become samples, and what the network says of them a table again; torch and pandas only."""

import json
import sys
from pathlib import Path

import pandas as pd
import torch

HERE = Path(__file__).resolve().parent
HOW = json.loads((HERE / "preparation.json").read_text(encoding="utf-8"))  # how a row becomes a sample
FITTED = next(iter(HOW["sites"].values()), HOW.get("all"))  # the numbers of this site


def values(rows: pd.DataFrame, feature: dict[str, str]) -> pd.Series:
    """The values of one feature, missing where they are missing."""
    text = rows[feature["column"]].str.strip()
    text = text.mask(text.str.lower().isin(HOW["missing"]))
    if feature["is"] == "missing":
        first = next(one for one in HOW["features"] if one["column"] == feature["column"])
        return (values(rows, first) if first["is"] in ("number", "date") else text).isna()
    if feature["is"] == "number":
        number = pd.to_numeric(text.str.lower().replace(HOW["booleans"]), errors="coerce").astype(float)
        return number.mask(number.abs() == float("inf"))
    if feature["is"] == "date":
        date = pd.to_datetime(text, format=feature["format"], errors="coerce", utc=True)
        return (date - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)
    return text == feature["value"] if feature["is"] == "category" else text.notna() & ~text.isin(feature["values"])


def samples(rows: pd.DataFrame) -> torch.Tensor:
    """The samples that rows of a table become, whose values are text."""
    lacking = {feature["column"] for feature in HOW["features"]} - set(rows.columns)
    if lacking:
        sys.exit(f"The table lacks the column {', '.join(sorted(lacking))}.")
    columns = {str(i): values(rows, feature).astype(float) for i, feature in enumerate(HOW["features"])}
    known = torch.from_numpy(pd.DataFrame(columns, index=rows.index).to_numpy().copy())
    fill, shift, scale = (torch.tensor(FITTED[name], dtype=torch.float64) for name in ("fill", "shift", "scale"))
    return ((torch.where(known.isnan(), fill, known) - shift) / scale).float()


def read(file: str) -> torch.Tensor:
    """The samples in a CSV file."""
    if not Path(file).is_file():
        sys.exit(f"There is no file {file}.")
    try:
        first = Path(file).read_text(encoding="utf-8-sig").partition("\n")[0]
        by = max(",;\t|", key=first.count)
        rows = pd.read_csv(file, sep=by, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # a text that is none, or rows of different lengths
        sys.exit(f"{file} cannot be read as a CSV table in UTF-8: {str(error).strip()}")
    if by == ";":  # then a comma inside a number is a decimal one
        rows = rows.replace(r"^\s*(-?\d+),(\d+)\s*$", r"\1.\2", regex=True)
    return samples(rows.rename(columns=str.strip))


def table(outputs: torch.Tensor) -> pd.DataFrame:
    """What the network says: the class and its probabilities, or the value in the target's own unit."""
    out = outputs.double()
    number = pd.Series(range(1, len(out) + 1), name="row")
    if HOW["task"] == "regress":
        value = out[:, 0] * FITTED["target_scale"] + FITTED["target_shift"]
        return pd.DataFrame({"row": number, "prediction": value.numpy()})
    names = {"row": number, "prediction": [HOW["labels"][i] for i in out.argmax(1)]}
    chance = {f"probability {label}": out.softmax(1)[:, i].numpy() for i, label in enumerate(HOW["labels"])}
    return pd.DataFrame(names | chance)
