"""The named methods, one short file for each paper. Each method is a choice of four parts."""

from collections.abc import Callable

from fedkin.errors import unknown
from fedkin.methods.adafl import adafl, attn, dyn_fedavg
from fedkin.methods.apfl import apfl
from fedkin.methods.cfl import cfl
from fedkin.methods.ditto import ditto
from fedkin.methods.fedacs import fedacs
from fedkin.methods.fedala import fedala
from fedkin.methods.fedamp import fedamp, heurfedamp
from fedkin.methods.fedavg import fedavg
from fedkin.methods.feddwa import feddwa
from fedkin.methods.fedfomo import fedfomo
from fedkin.methods.fedmcsa import fedavg_mcsa, fedmcsa, fedmcsa_official, fedmcsa_without_mcsa, pfedme_mcsa
from fedkin.methods.fedmix import fedmix
from fedkin.methods.fedprox import fedprox
from fedkin.methods.ifca import ifca
from fedkin.methods.kin import fedavg_calibrated, fedavg_prior, kin, kin_light
from fedkin.methods.local import local, local_matched
from fedkin.methods.perfedavg import perfedavg
from fedkin.methods.pfedgraph import pfedgraph
from fedkin.methods.pfedme import pfedme
from fedkin.methods.pfedre import oracle, pfedre, pfedre_aligned, pfedre_robust
from fedkin.methods.pfedsim import pfedsim
from fedkin.methods.pooled import pooled
from fedkin.methods.robust import krum, median, multikrum, trimmed_mean
from fedkin.methods.scaffold import scaffold
from fedkin.methods.some_layers import fedbabu, fedper, fedrep, lgfedavg
from fedkin.methods.valued import active, sfedavg
from fedkin.parts import Method

METHODS: dict[str, Callable[..., Method]] = {
    made.__name__: made
    for made in (
        local,
        local_matched,
        pooled,
        fedavg,
        fedprox,
        kin,
        kin_light,
        fedavg_prior,
        fedavg_calibrated,
        fedmcsa,
        fedmcsa_official,
        fedmcsa_without_mcsa,
        fedavg_mcsa,
        pfedme_mcsa,
        fedacs,
        fedamp,
        heurfedamp,
        pfedgraph,
        feddwa,
        cfl,
        pfedsim,
        fedper,
        lgfedavg,
        fedrep,
        fedbabu,
        ifca,
        fedfomo,
        fedala,
        pfedme,
        perfedavg,
        ditto,
        apfl,
        adafl,
        attn,
        dyn_fedavg,
        scaffold,
        fedmix,
        active,
        sfedavg,
        pfedre,
        pfedre_aligned,
        pfedre_robust,
        krum,
        multikrum,
        trimmed_mean,
        median,
        oracle,
    )
}

__all__ = [*METHODS, "METHODS", "named"]


def named(name: str) -> Method:
    """The method of this name, with the defaults of its paper."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]()
