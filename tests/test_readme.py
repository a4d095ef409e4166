"""The README's code runs as it stands there."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))
def test_python_in_the_readme_runs(
    code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README", "exec"), {"__name__": "readme"})
    accuracies = [float(word) for word in re.findall(r"\b0\.\d\d+", capsys.readouterr().out)]
    assert accuracies
    assert max(accuracies) > 0.3


def test_every_method_is_in_the_readme() -> None:
    from fedkin.methods import METHODS

    for name in METHODS:
        assert f"`{name}`" in README
