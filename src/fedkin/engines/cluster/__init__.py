"""The engine whose clients are divided among actors of Ray: on the cores of this machine, or on a cluster."""
