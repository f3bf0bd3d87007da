"""A session's fields, its metadata and its moments: set, unset, and otherwise left alone."""

from __future__ import annotations

from statestore.conformance.bench import Bench
from statestore.conformance.changes import created, moment, session_of, user
from statestore.conformance.contract import Contract, case
from statestore.engine import ChangeSession, SessionQuery
from statestore.stored import OPTIONAL_FIELDS


class FieldCases(Contract):
    """Fields, metadata, moments."""

    @case
    async def test_fields_are_set_one_by_one(self, bench: Bench) -> None:
        """A change sets the fields that it names, None unsets, and the others stay; listings show the same."""
        await bench.commit(created("s"))
        expected: dict[str, str | None] = dict.fromkeys(OPTIONAL_FIELDS)
        changes: list[dict[str, str | None]] = [
            {"active_seed_id": "seed"},
            {"active_persona_id": "persona", "project_id": "project"},
            {"parent_session_id": "parent"},
            {"active_seed_id": None, "project_id": 'é "quoted" \\ \n東京'},
            {"parent_session_id": ""},
            {"active_persona_id": None, "parent_session_id": None, "project_id": None},
        ]
        for change in changes:
            await bench.commit(ChangeSession("s", moment(1), set_fields=change))
            expected |= change
            stored = await session_of(bench.engine, "s")
            assert {name: getattr(stored.fields, name) for name in OPTIONAL_FIELDS} == expected
            (summary,) = await bench.engine.list_sessions(SessionQuery())
            assert {name: getattr(summary, name) for name in OPTIONAL_FIELDS} == expected
        await bench.reopen()
        stored = await session_of(bench.engine, "s")
        assert {name: getattr(stored.fields, name) for name in OPTIONAL_FIELDS} == expected

    @case
    async def test_metadata_keep_their_order_and_text(self, bench: Bench) -> None:
        """A changed key keeps its place, a new one goes last, an unset one goes; every text is as it was given."""
        await bench.commit(created("s", metadata={"b": b"1.0", "a": b'{"y":1E5,"x":[-0.0]}', "c": b'"\\u00e9\\/"'}))
        assert (await session_of(bench.engine, "s")).metadata == b'{"b":1.0,"a":{"y":1E5,"x":[-0.0]},"c":"\\u00e9\\/"}'
        await bench.commit(ChangeSession("s", moment(1), set_metadata={"z": b"null", "a": b"2"}, unset_metadata=("b",)))
        assert (await session_of(bench.engine, "s")).metadata == b'{"a":2,"c":"\\u00e9\\/","z":null}'
        await bench.commit(ChangeSession("s", moment(2), set_metadata={"b": b"3"}))
        await bench.reopen()
        assert (await session_of(bench.engine, "s")).metadata == b'{"a":2,"c":"\\u00e9\\/","z":null,"b":3}'
        await bench.commit(ChangeSession("s", moment(3), unset_metadata=("a", "b", "c", "z", "never there")))
        assert (await session_of(bench.engine, "s")).metadata == b"{}"

    @case
    async def test_odd_metadata_keys_are_keys(self, bench: Bench) -> None:
        """Metadata keys are any text: empty, quoted, like a field, like a number."""
        keys = [
            "",
            " ",
            "a.b",
            'q"',
            "\\",
            "\n",
            "é",
            "e\u0301",
            "id",
            "user_messages",
            "__proto__",
            "10",
            "9",
            "$",
            "東",
        ]
        await bench.commit(created("s", metadata={key: str(index).encode() for index, key in enumerate(keys)}))
        await bench.reopen()
        session = await bench.store.load_session("s")
        assert session is not None
        assert list(session.metadata.items()) == [(key, index) for index, key in enumerate(keys)]
        await bench.commit(ChangeSession("s", moment(1), unset_metadata=tuple(keys[::2])))
        session = await bench.store.load_session("s")
        assert session is not None
        assert list(session.metadata) == keys[1::2]

    @case
    async def test_large_metadata_are_kept(self, bench: Bench) -> None:
        """Metadata are unbounded: many keys, and a value of a megabyte."""
        metadata = {f"key{index}": str(index).encode() for index in range(500)}
        await bench.commit(created("s", metadata=metadata | {"big": b'"' + b"x" * 1_000_000 + b'"'}))
        session = await bench.store.load_session("s")
        assert session is not None
        assert len(session.metadata) == 501
        assert len(session.metadata["big"]) == 1_000_000
        await bench.commit(ChangeSession("s", moment(1), unset_metadata=("big",)))
        session = await bench.store.load_session("s")
        assert session is not None
        assert session.metadata == {f"key{index}": index for index in range(500)}

    @case
    async def test_updated_never_goes_back(self, bench: Bench) -> None:
        """The later of the stored and the given moment stays, to the nanosecond, with its text."""
        await bench.commit(created("s", at=moment(5, ".5")))
        steps = [
            (moment(4), moment(5, ".5")),
            (moment(5, ".499999999"), moment(5, ".5")),
            (moment(5, ".500000001"), moment(5, ".500000001")),
            ("2026-01-02T01:00:05.6+01:00", "2026-01-02T01:00:05.6+01:00"),
            ("2026-01-02T00:30:05.9+01:00", "2026-01-02T01:00:05.6+01:00"),
            (moment(6), moment(6)),
            ("1969-12-31T23:59:59Z", moment(6)),
            ("2261-01-01T00:00:00Z", "2261-01-01T00:00:00Z"),
            (moment(7), "2261-01-01T00:00:00Z"),
        ]
        for given, expected in steps:
            await bench.commit(ChangeSession("s", given, append=(user("x"),)))
            stored = await session_of(bench.engine, "s")
            assert (stored.fields.created, stored.fields.updated) == (moment(5, ".5"), expected)
            (summary,) = await bench.engine.list_sessions(SessionQuery())
            assert (summary.created_text, summary.updated_text) == (moment(5, ".5"), expected)

    @case
    async def test_a_summary_tells_what_the_session_holds(self, bench: Bench) -> None:
        """A listing shows id, owner, moments, fields, version, and a size that grows with the session."""
        (outcome,) = await bench.commit(created("s", user("hello"), at=3, fields={"active_seed_id": "seed"}))
        (summary,) = await bench.engine.list_sessions(SessionQuery())
        assert (summary.id, summary.user_id, summary.active_seed_id) == ("s", "alice", "seed")
        assert (summary.created_text, summary.updated_text) == (moment(3), moment(3))
        assert (summary.message_count, summary.response_count, summary.event_count) == (1, 0, 0)
        assert summary.version == str(outcome.version)
        assert isinstance(summary.version, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        await bench.commit(ChangeSession("s", moment(4), append=(user("0123456789" * 5_000),)))
        (later,) = await bench.engine.list_sessions(SessionQuery())
        assert later.size > summary.size > 0
