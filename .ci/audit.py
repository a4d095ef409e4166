"""Looks for known weaknesses of what requirements.lock pins: make audit.

It fails where there is one, and where not everything could be looked up, as without a network: pip-audit alone would
say then that it knows of none.
"""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = "pip-audit==2.10.1"


def main() -> int:
    """Print what is known, and return the exit code."""
    found = Path(".venv/audit.json")
    found.unlink(missing_ok=True)
    asked = ["--requirement", "requirements.lock", "--no-deps", "--disable-pip", "--progress-spinner", "off"]
    command = [".venv/bin/uv", "tool", "run", "--quiet", PROGRAM, *asked, "--format", "json", "--output", str(found)]
    run = subprocess.run(command, capture_output=True, text=True)
    if not found.exists():
        print(f"Nothing was audited, because {PROGRAM} did not run; is there a network?", file=sys.stderr)
        print(run.stderr[-2000:], file=sys.stderr)
        return 1
    every = json.loads(found.read_text())["dependencies"]
    weak = [one for one in every if one.get("vulns")]
    for one in weak:
        for known in one["vulns"]:
            newer = ", ".join(known["fix_versions"]) or "no version yet"
            print(f"{one['name']} {one['version']}: {known['id']}, mended in {newer}")
    unknown = [one["name"] for one in every if "skip_reason" in one]
    print(f"{len(every) - len(unknown)} of {len(every)} packages were audited, {len(weak)} have known weaknesses.")
    if unknown:
        print(f"{len(unknown)} could not be looked up, as {unknown[0]}; is there a network?", file=sys.stderr)
    return int(bool(weak or unknown))


if __name__ == "__main__":
    sys.exit(main())
