"""Each adapter on SQLite beside what its framework ships, in one run: ``python -m benchmarks.adapters [NAME…]``.

A framework has a module here with its stores: the framework's own, most of them from `benchmarks.peers`, and ours under
the adapter. All are a `benchmarks.peers.peer.Peer`, so that what is measured, and how they take turns, is the same as
among the peers.
"""
