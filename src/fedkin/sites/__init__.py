"""Clients on other machines: a site that answers what it is asked, and the engine that asks. Nothing here knows what
carries the letters between them."""

from fedkin.sites.here import Here
from fedkin.sites.letters import Answer, Failure, Request, Transport
from fedkin.sites.meeting import Sites, meet
from fedkin.sites.play import run
from fedkin.sites.remote import Remote
from fedkin.sites.samples import Arrays, Samples
from fedkin.sites.site import Site
from fedkin.sites.tables import Table

__all__ = [
    "Answer",
    "Arrays",
    "Failure",
    "Here",
    "Remote",
    "Request",
    "Samples",
    "Site",
    "Sites",
    "Table",
    "Transport",
    "meet",
    "run",
]
