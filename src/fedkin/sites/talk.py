"""How the server asks its sites, and which answers it believes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from fedkin.errors import BadInput, Unfinished
from fedkin.sites.letters import Answer, Failure, Request
from fedkin.sites.meeting import Sites


class Talk:
    """Asks sites by their numbers. An answer counts only under the site's own name, and to this very request."""

    def __init__(self, sites: Sites):
        self.sites = sites

    def ask(
        self, do: str, values: Mapping[int, Mapping[str, Any]], everyone: bool = False, last: bool = False
    ) -> dict[int, dict[str, Any]]:
        """Ask these sites, all at once, and return what those said that answered.

        Whoever does not answer, or refuses, is left out and named. If nobody answers, or with `everyone` if somebody
        does not, the same is asked again until patience is over. The `last` time in a run, those that do not answer are
        asked again, for at most twice as long as a round waits for them, since nobody will ask them later.
        """
        sites, found = self.sites, dict[int, dict[str, Any]]()
        began, said = time.monotonic(), ""
        while values:
            left = {number: value for number, value in values.items() if number not in found}
            answers, why, refused = self.once(do, left)
            found |= answers
            waited = time.monotonic() - began
            again = last and waited < 2 * sites.timeout and len(refused) < len(left)
            if len(found) == len(values) or (found and not everyone and not again):
                self.name_missing(why, last)
                break
            names = ", ".join(f"{sites.names[number]}: {reason}" for number, reason in why.items())
            if len(refused) == len(left):
                raise BadInput(f"Every site that was asked refused. {names}")
            who = "Nobody answers" if not found else "Not everyone answers"
            longest = 2 * sites.timeout if last and found else sites.patience
            if waited > longest:
                saved = "the run is saved up to its last checkpoint, go on with --resume"
                raise Unfinished(f"{who} for {waited:.0f} s ({names}); {saved}.")
            if names != said:
                sites.warn(f"{who} ({names}); waiting, at most {longest - waited:.0f} s more.")
            said = names
            time.sleep(sites.pause)
        return found

    def once(
        self, do: str, values: Mapping[int, Mapping[str, Any]]
    ) -> tuple[dict[int, dict[str, Any]], dict[int, str], set[int]]:
        """Ask once. Returns what was answered, why others gave no answer that counts, and who of these refused."""
        names = self.sites.names
        requests = {names[number]: Request.of(uuid4().hex, do, value) for number, value in values.items()}
        answers = self.sites.transport.exchange(requests, self.sites.timeout)
        found: dict[int, dict[str, Any]] = {}
        why: dict[int, str] = {}
        refused = set()
        for number in values:
            name = names[number]
            try:
                found[number] = believed(name, requests[name], answers.get(name))
            except BadInput as error:
                why[number] = str(error)
            if "refused" in found.get(number, {}):
                why[number] = str(found.pop(number)["refused"])
                refused.add(number)
        return found, why, refused

    def name_missing(self, why: Mapping[int, str], last: bool) -> None:
        """Say who is left out of this exchange. In the last one of a run, sites get their final models."""
        for number, reason in why.items():
            name = self.sites.names[number]
            how = (
                f"It ends without site {name}, which gets no final model" if last else f"It goes on without site {name}"
            )
            self.sites.warn(f"{how}: {reason}")


def believed(name: str, request: Request, answer: Answer | Failure | None) -> dict[str, Any]:
    """Return what a site said; refuses an answer under another name, and one to another request."""
    if answer is None or isinstance(answer, Failure):
        raise BadInput("It did not answer." if answer is None else answer.reason)
    if answer.site != name:
        raise BadInput(f"It answered under the name of '{answer.site}'.")
    if answer.to != request.id:
        raise BadInput("It answered an earlier request, too late.")
    return answer.value()
