"""Power cuts: what a store does to the disk is recorded, and every state that a cut may leave is opened and judged.

``disk`` says what a cut may leave, ``calls`` records what the package does through ``os`` and ``sqlite_calls`` what
SQLite does, ``staging`` lays a state out as files, ``histories`` has things to do, ``files`` and ``database`` judge.
"""
