"""The command line: ``statestore [--store URL] COMMAND``, for the person who looks after what agents left behind.

``main`` runs it. A command is one file in ``commands`` and one row in ``command_table``; it is imported when it is
asked for, and not before.
"""
