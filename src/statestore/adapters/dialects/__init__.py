"""How each framework's items are read and written, as plain data: ``statestore.adapters.dialects.<framework>``.

Each module offers a `Dialect` as ``DIALECT``, and imports no framework: a session can be read where the framework that
wrote it is not installed.
"""
