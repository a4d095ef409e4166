"""A site's app: it answers the server from the data that site.toml names. A site runs its own copy of this file."""

from fedkin import flower
from fedkin.federation.site_data import samples

app = flower.client(samples=samples)
