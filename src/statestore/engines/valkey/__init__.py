"""``valkey://…``, ``redis://…`` - for sessions that many machines share at high rates; one server, or a cluster.

``url`` reads the address, ``connecting`` and ``pool`` make connections, ``calling`` repeats what did not get through,
``planning`` turns a batch into one call of a script, ``reading`` and ``listing`` ask, ``watching`` follows a stream of
changes. What happens inside the server is written in ``lua/``. The modules named ``cluster_…`` are for clusters. The
driver is loaded with this package, and that when a store is opened: ``driver`` alone imports it.
"""

from __future__ import annotations

from statestore.engines.valkey.cluster_engine import ValkeyClusterEngine
from statestore.engines.valkey.engine import ValkeyEngine
from statestore.engines.valkey.url import open_redis, open_rediss, open_valkey, open_valkeys

__all__ = ["ValkeyClusterEngine", "ValkeyEngine", "open_redis", "open_rediss", "open_valkey", "open_valkeys"]
