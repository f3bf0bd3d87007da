"""One store under every agent framework: ``statestore.adapters.<framework>``, each an extra of its own.

Importing this package imports no framework. Each adapter keeps the framework's own items untouched, beside records
that everybody can read, so `statestore ls`, `show`, `search`, `export` and `prune` work on all of them.

What all adapters share:

- `identifiers`: a framework's ids as session ids, category and document names, and back.
- `requirements`: what is said when a framework is missing, or not of a version that is known to work.
- `access`: a store that was lent or opened from a URL, used from plain code and from event loops.
- `items`: how a framework's item becomes a record, and comes back exactly.
- `conversations`: a session's items: adding, reading, taking back, replacing.
- `dialects`: what each framework's items say.
- `handoff`: a session that one framework wrote, as the input of another.
"""
