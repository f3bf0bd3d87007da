"""Histories of concurrent operations, each explained by one order of the same operations, or refused.

Workers (processes, threads, tasks) do small things to the same few items and note when each began, when it ended and
what came of it. The checker looks for an order, within those times, in which a model that knows no engine gives the
same answers. A history that no order explains is a lost update, a stale read, half a batch: a broken promise.
"""
