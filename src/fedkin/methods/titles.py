"""What methods are called in sentences: FedAvg for fedavg."""

TITLES = {
    "local": "Local",
    "local_matched": "matched Local",
    "pooled": "Pooled",
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "kin": "kin",
    "fedavg_prior": "FedAvg with label shares",
    "fedavg_calibrated": "calibrated FedAvg",
    "fedmcsa": "FedMCSA",
    "fedmcsa_official": "FedMCSA (official)",
    "fedmcsa_without_mcsa": "FedMCSA without attention",
    "fedavg_mcsa": "FedAvg with MCSA",
    "pfedme_mcsa": "pFedMe with MCSA",
    "fedacs": "FedACS",
    "fedamp": "FedAMP",
    "heurfedamp": "HeurFedAMP",
    "pfedme": "pFedMe",
    "perfedavg": "Per-FedAvg",
    "ditto": "Ditto",
    "apfl": "APFL",
    "adafl": "AdaFL",
    "attn": "AdaFL (attention only)",
    "dyn_fedavg": "AdaFL (schedule only)",
    "scaffold": "SCAFFOLD",
    "fedmix": "FedMix",
    "active": "Active FL",
    "sfedavg": "S-FedAvg",
    "pfedre": "PFedRe",
    "pfedre_aligned": "PFedRe (aligned)",
    "krum": "Krum",
    "multikrum": "Multi-Krum",
    "trimmed_mean": "trimmed mean",
    "median": "median",
    "oracle": "oracle",
}


def title(name: str) -> str:
    """What a method, or an arm of a comparison such as 'fedprox@train.lam=1', is called in a sentence."""
    base, at, changed = name.partition("@")
    return TITLES.get(base, base) + (f" ({changed.replace('@', ', ')})" if at else "")
