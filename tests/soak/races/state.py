"""What a store holds, to the model: plain values that cannot change, so that a search can go back to them.

Versions and moments of birth cannot be foretold. They are learnt from the first answer that tells them, and must fit
every later one; no item has one version twice.
"""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """Something that was said."""

    seq: int
    text: str
    key: str | None = None


class Kept(NamedTuple):
    """A session."""

    user: str
    created: str | None
    """When it began; ``None`` while nobody was told."""
    by: int
    """The operation that wrote it last: a version of the model's own."""
    version: str | None = None
    """The version it has; ``None`` while nobody was told."""
    is_old: bool = False
    """Whether a prune may take it: it was born with an old date, and nobody touched it since."""
    records: tuple[Record, ...] = ()
    metadata: tuple[tuple[str, int], ...] = ()
    next_seq: int = 1
    parent: str | None = None

    def with_records(self, said: tuple[tuple[str, str | None], ...]) -> Kept:
        """The session with more said in it; a key that it knows is not said again."""
        records, next_seq = self.records, self.next_seq
        for text, key in said:
            if key is None or all(record.key != key for record in records):
                records, next_seq = (*records, Record(next_seq, text, key)), next_seq + 1
        return self._replace(records=records, next_seq=next_seq)

    def seqs_of(self, said: tuple[tuple[str, str | None], ...]) -> tuple[int, ...]:
        """The numbers of what was just said, or of what its keys were used for before."""
        by_key = {record.key: record.seq for record in self.records if record.key is not None}
        by_text = {record.text: record.seq for record in self.records}
        return tuple(by_text[text] if key is None else by_key[key] for text, key in said)

    def with_metadata(self, changes: tuple[tuple[str, int], ...]) -> Kept:
        """The session with some metadata set."""
        return self._replace(metadata=tuple(sorted((dict(self.metadata) | dict(changes)).items())))

    def touched(self, by: int) -> Kept:
        """The session after a write: nobody knows its version yet."""
        return self._replace(by=by, version=None, is_old=False)

    @property
    def title(self) -> str | None:
        """What a listing calls it."""
        return self.records[0].text if self.records else None


class Paper(NamedTuple):
    """A document."""

    value: int
    by: int
    version: str | None = None


class Thrown(NamedTuple):
    """A session in the trash."""

    id: str
    kept: Kept
    by: int
    """The operation that threw it away."""


class State(NamedTuple):
    """Everything."""

    sessions: tuple[tuple[str, Kept], ...] = ()
    papers: tuple[tuple[str, Paper], ...] = ()
    trash: tuple[Thrown, ...] = ()
    """The last thrown away last."""
    used: frozenset[tuple[str, str]] = frozenset()
    """Items and versions that were told."""
    batches: int = 0
    """How often several items were written at once."""

    def session(self, session_id: str, owner: str | None = None) -> Kept | None:
        """A session, if it is there, and this owner's to see."""
        kept = next((kept for own_id, kept in self.sessions if own_id == session_id), None)
        return None if kept is None or owner not in (None, kept.user) else kept

    def paper(self, name: str) -> Paper | None:
        """A document, if it is there."""
        return next((paper for own_name, paper in self.papers if own_name == name), None)

    def with_session(self, session_id: str, kept: Kept | None) -> State:
        """The same with one session put in its place, or gone."""
        others = [pair for pair in self.sessions if pair[0] != session_id]
        return self._replace(sessions=tuple(sorted([*others, *([] if kept is None else [(session_id, kept)])])))

    def with_paper(self, name: str, paper: Paper | None) -> State:
        """The same with one document put in its place, or gone."""
        others = [pair for pair in self.papers if pair[0] != name]
        return self._replace(papers=tuple(sorted([*others, *([] if paper is None else [(name, paper)])])))

    def with_batch(self) -> State:
        """The same after several items were written at once."""
        return self._replace(batches=self.batches + 1)

    def learnt(self, session_id: str, version: str, created: str | None = None) -> State | None:
        """The same after an answer told a session's version, and perhaps its birth; ``None`` if they cannot be."""
        kept = self.session(session_id)
        if kept is None or (created is not None and kept.created not in (None, created)):
            return None
        known = kept._replace(version=version, created=created or kept.created)
        return self._with_use(session_id, kept.version, version, self.with_session(session_id, known))

    def learnt_of_paper(self, name: str, version: str) -> State | None:
        """The same after an answer told a document's version."""
        paper = self.paper(name)
        if paper is None:
            return None
        return self._with_use(name, paper.version, version, self.with_paper(name, paper._replace(version=version)))

    def _with_use(self, item: str, known: str | None, version: str, following: State) -> State | None:
        if known is not None:
            return following if known == version else None
        if (item, version) in self.used:
            return None
        return following._replace(used=self.used | {(item, version)})
