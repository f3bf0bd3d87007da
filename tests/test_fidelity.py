"""Odd but legal files: whatever another program wrote, and we did not change, comes back as it was."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from faces import Face
from serdeform import pretty
from statestore import AgentResponse, Session, StateStore, UserMessage
from statestore.timestamps import later_of

USUAL: dict[str, Any] = {
    "id": "s",
    "user_id": "alice",
    "user_messages": [
        {"content": "one", "timestamp": "2026-01-01T00:00:01Z"},
        {"content": "two", "timestamp": "2026-01-01T00:00:03Z"},
    ],
    "agent_responses": [
        {
            "content": "first",
            "session_id": None,
            "seed_id": None,
            "phase_reached": None,
            "evaluation_passed": None,
            "timestamp": "2026-01-01T00:00:02Z",
        },
    ],
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:04Z",
    "metadata": {"title": "T"},
}


class Workshop:
    """A store on a directory into which the test puts files by hand."""

    def __init__(self, face: Face, directory: Path) -> None:
        self._directory = directory
        (directory / "sessions").mkdir(parents=True)
        self.store = face.open(directory)

    def put(self, text: str, session_id: str = "s") -> None:
        (self._directory / "sessions" / f"{session_id}.json").write_bytes(text.encode())

    def text(self, session_id: str = "s") -> str:
        return (self._directory / "sessions" / f"{session_id}.json").read_bytes().decode()

    def load(self, session_id: str = "s") -> Session:
        session = self.store.load_session(session_id)
        assert session is not None
        return session


@pytest.fixture
def workshop(face: Face, directory: Path) -> Workshop:
    return Workshop(face, directory)


def with_message(text: str, message: UserMessage, session: Session) -> str:
    """A pretty session file with one more message and a new ``updated_at``."""
    record = {"content": message.content, "timestamp": message.timestamp_text}
    start = text.index('\n  "user_messages": [\n')
    end = text.index("\n  ]", start)
    text = text[:end] + ",\n    " + pretty(record, indent=2) + text[end:]
    return with_updated(text, session)


def with_updated(text: str, session: Session) -> str:
    return re.sub(r'(?<=\n  "updated_at": )"[^"]*"', lambda _: f'"{session.updated_text}"', text, count=1)


ODD: dict[str, str] = {
    "keys in another order": pretty(dict(sorted(USUAL.items(), reverse=True))),
    "records with keys in another order": pretty(
        USUAL
        | {
            "user_messages": [{"timestamp": "2026-01-01T00:00:01Z", "content": "one"}, USUAL["user_messages"][1]],
            "agent_responses": [dict(reversed(USUAL["agent_responses"][0].items()))],
        }
    ),
    "optional fields of a response left out": pretty(
        USUAL | {"agent_responses": [{"content": "first", "timestamp": "2026-01-01T00:00:02Z"}]}
    ),
    "null for an unset field": pretty(USUAL | {"active_seed_id": None, "active_persona_id": None, "project_id": None}),
    "no list of responses": pretty({k: v for k, v in USUAL.items() if k != "agent_responses"}),
    "no metadata": pretty({k: v for k, v in USUAL.items() if k != "metadata"}),
    "unknown fields at the top": pretty(
        {"$schema": "x", **USUAL, "later": {"nested": [1, {"deep": None}], "empty": {}}, "flag": False}
    ),
    "an unknown field between the two lists": pretty(
        {
            k: v
            for key in USUAL
            for k, v in {key: USUAL[key], **({"between": [[]]} if key == "user_messages" else {})}.items()
        }
    ),
    "unknown fields in records": pretty(
        USUAL
        | {
            "user_messages": [{"x": 1, **USUAL["user_messages"][0], "y": {"z": []}}, USUAL["user_messages"][1]],
            "agent_responses": [USUAL["agent_responses"][0] | {"cost": 0.25}],
        }
    ),
    "unknown fields that look like ours": pretty(
        USUAL | {"later": {"user_messages": [{"content": "no"}], "agent_responses": [], "updated_at": "no"}}
    ),
    "metadata that look like ours": pretty(
        USUAL
        | {"metadata": {"id": "x", "updated_at": "y", "user_messages": [{"content": "no"}], "agent_responses": []}}
    ),
    "odd numbers in an unknown field": pretty(USUAL | {"later": "NUMBERS"}).replace(
        '"NUMBERS"',
        "[\n    1E5,\n    -0.0,\n    1e16,\n    18446744073709551615,\n    123456789012345678901234567890\n  ]",
    ),
    "odd numbers in metadata": pretty(USUAL).replace(
        '"title": "T"',
        '"title": "T",\n    "n": [\n      1E5,\n      -0.0,\n      18446744073709551615,\n      1.50\n    ]',
    ),
    "a number beyond 64 bits in metadata": pretty(USUAL).replace(
        '"title": "T"', '"title": "T",\n    "n": 123456789012345678901234567890'
    ),
    "escapes where none are needed": pretty(USUAL)
    .replace('"one"', r'"\u006fne \u00e9 \/ \u0000 \ud83e\udd80"')
    .replace('"first"', r'"f\u0069rst\u000a"')
    .replace('"alice"', r'"\u0061lice"')
    .replace('"T"', r'"\u0054"'),
    "an escaped metadata key": pretty(USUAL).replace('"title": "T"', r'"title": "T",' + "\n    " + r'"caf\u00e9": 1'),
    "an escaped unknown key": pretty(USUAL | {"caf__": 1}).replace("caf__", r"caf\u00e9"),
    "offsets": pretty(USUAL)
    .replace('"2026-01-01T00:00:01Z"', '"2026-01-01T02:00:01+02:00"')
    .replace('"2026-01-01T00:00:02Z"', '"2025-12-31T23:30:02.5-00:30"')
    .replace('"2026-01-01T00:00:00Z"', '"2026-01-01T00:00:00+00:00"'),
    "lower-case t and z": pretty(USUAL).replace("01T00", "01t00").replace('Z"', 'z"'),
    "odd numbers of digits": pretty(USUAL)
    .replace("00:00:01Z", "00:00:01.5Z")
    .replace("00:00:02Z", "00:00:02.1234567Z")
    .replace("00:00:03Z", "00:00:03.123456789123Z")
    .replace("00:00:00Z", "00:00:00.000000000Z"),
    "notes of a newer release of ours": pretty(USUAL | {"metadata": {"title": "T", "statestore": {"later": [1, 2.5]}}}),
}


RESPELT = ("an escaped metadata key", "an escaped unknown key")
"""Keys with needless escapes: they stay as they are until the object they stand in is written anew."""
KEPT = {name: text for name, text in ODD.items() if name not in RESPELT}
COPIED = {name: text for name, text in ODD.items() if name not in (*RESPELT, "notes of a newer release of ours")}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_one_more_message_leaves_the_rest_verbatim(workshop: Workshop, text: str) -> None:
    workshop.put(text)
    session = workshop.load()
    said = json.loads(text)
    assert [m.content for m in session.user_messages] == [m["content"] for m in said["user_messages"]]
    assert [m.timestamp_text for m in session.user_messages] == [m["timestamp"] for m in said["user_messages"]]
    assert [r.content for r in session.agent_responses] == [r["content"] for r in said.get("agent_responses", [])]
    metadata = said.get("metadata", {})
    metadata.pop("statestore", None)
    assert session.metadata == metadata
    message = session.add_user_message("three")
    workshop.store.save_session(session)
    assert workshop.text() == with_message(text, message, session)
    assert [m.content for m in workshop.load().user_messages][-1] == "three"


@pytest.mark.parametrize("text", COPIED.values(), ids=COPIED)
def test_the_session_as_json_is_the_file(workshop: Workshop, text: str) -> None:
    workshop.put(text)
    document = workshop.store.get_document("sessions", "s")
    assert document is not None
    assert document.text == text


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_changed_metadata_key_leaves_the_rest_verbatim(workshop: Workshop, text: str) -> None:
    workshop.put(text)
    session = workshop.load()
    session.set_metadata("added", 1)
    workshop.store.save_session(session)
    changed = workshop.text()
    del session.metadata["added"]
    workshop.store.save_session(session)
    expected = with_updated(text, session)
    restored = workshop.text()
    if '\n  "metadata": ' not in text:  # it has one now, and an empty one is what the seed would write
        restored = restored.removesuffix(',\n  "metadata": {}\n}') + "\n}"
    assert json.loads(changed)["metadata"]["added"] == 1
    assert restored == expected


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_saving_an_odd_session_that_did_not_change_writes_nothing(
    workshop: Workshop, directory: Path, text: str
) -> None:
    workshop.put(text)
    path = directory / "sessions" / "s.json"
    before = path.stat()
    session = workshop.load()
    assert session.metadata is not None
    workshop.store.save_session(session)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert workshop.text() == text


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_rewind_leaves_what_stays_verbatim(workshop: Workshop, text: str) -> None:
    workshop.put(text)
    message = UserMessage("to be dropped")
    workshop.store.append("s", message)
    grown = workshop.text()
    last = workshop.store.timeline("s")[-1].seq
    assert last is not None
    (dropped,) = workshop.store.rewind_session("s", to=last - 1)
    assert dropped.record.timestamp_text == message.timestamp_text
    record = ",\n    " + pretty({"content": message.content, "timestamp": message.timestamp_text}, indent=2)
    assert record in grown
    rewound = workshop.text()
    assert without_notes_and_update(rewound) == without_notes_and_update(grown.replace(record, ""))


@pytest.mark.parametrize("name", RESPELT)
def test_an_escaped_key_keeps_its_value_when_its_object_is_written_anew(workshop: Workshop, name: str) -> None:
    workshop.put(ODD[name])
    session = workshop.load()
    session.set_metadata("added", 1)
    workshop.store.save_session(session)
    said, expected = json.loads(workshop.text()), json.loads(ODD[name])
    assert said.pop("updated_at") != expected.pop("updated_at")
    assert said == expected | {"metadata": {**expected["metadata"], "added": 1}}
    rewound = workshop.store.fork_session("s", new_id="f")
    assert json.loads(workshop.text("f"))["metadata"] == {**expected["metadata"], "added": 1}
    assert rewound.metadata == {**expected["metadata"], "added": 1}


def without_notes_and_update(text: str) -> str:
    """A file without the lines of our notes (a rewind must note the next number) and without ``updated_at``."""
    text = re.sub(r',?\n    "statestore": \{.*?\n    \}', "", text, flags=re.DOTALL)
    text = re.sub(r"\{,?\n    ?", "{\n    ", text) if "statestore" in text else text
    text = text.replace(',\n  "metadata": {\n  }', "").replace(',\n  "metadata": {}', "")
    return re.sub(r'\n  "updated_at": .*', "", text)


@pytest.mark.parametrize("text", COPIED.values(), ids=COPIED)
def test_a_fork_copies_everything_but_who_it_is(workshop: Workshop, text: str) -> None:
    workshop.put(text)
    fork = workshop.store.fork_session("s", new_id="f")
    assert fork.parent_session_id == "s"
    own = {"id", "created_at", "updated_at", "parent_session_id"}
    copied, original = json.loads(workshop.text("f")), json.loads(text)
    assert {k: v for k, v in copied.items() if k not in own} == {k: v for k, v in original.items() if k not in own}
    for line in text.splitlines():
        if not re.match(rf'  "({"|".join(own)})": ', line):
            assert line.rstrip(",") in [found.rstrip(",") for found in workshop.text("f").splitlines()]
    assert workshop.text() == text


def test_offsets_and_digits_are_read_right(workshop: Workshop) -> None:
    workshop.put(ODD["offsets"])
    session = workshop.load()
    assert session.user_messages[0].timestamp.isoformat() == "2026-01-01T00:00:01+00:00"
    assert session.agent_responses[0].timestamp.isoformat() == "2026-01-01T00:00:02.500000+00:00"
    assert [entry.kind for entry in session.timeline] == ["user", "agent", "user"]
    workshop.put(ODD["odd numbers of digits"])
    session = workshop.load()
    assert session.user_messages[0].timestamp.isoformat() == "2026-01-01T00:00:01.500000+00:00"
    assert session.user_messages[1].timestamp.isoformat() == "2026-01-01T00:00:03.123456+00:00"
    workshop.put(pretty(USUAL).replace("00:00:03Z", "00:00:59.9999999Z"))
    assert workshop.load().user_messages[1].timestamp.isoformat() == "2026-01-01T00:00:59.999999+00:00"


# -- files that are laid out otherwise ----------------------------------------------------------------------------

LAYOUTS: dict[str, str] = {
    "minified": json.dumps(USUAL, separators=(",", ":")),
    "on one line": json.dumps(USUAL),
    "indented by tabs": json.dumps(USUAL, indent="\t"),
    "indented by one": json.dumps(USUAL, indent=1),
    "indented by one, with metadata named like fields": json.dumps(
        USUAL | {"metadata": {"title": "T", "project_id": "p"}}, indent=1
    ),
    "indented by four": json.dumps(USUAL, indent=4),
    "not indented": json.dumps(USUAL, indent=0),
    "no space after colons": json.dumps(USUAL, indent=2, separators=(",", ":")),
    "a space before colons": json.dumps(USUAL, indent=2, separators=(",", " : ")),
    "an empty line at the end": json.dumps(USUAL, indent=2) + "\n",
    "space all around": "\n\n \t" + json.dumps(USUAL, indent=2) + " \r\n\n",
    "lines that end in CRLF": json.dumps(USUAL, indent=2).replace("\n", "\r\n"),
    "CRLF and no lists": json.dumps(
        {k: v for k, v in USUAL.items() if k not in ("user_messages", "agent_responses")}, indent=2
    ).replace("\n", "\r\n"),
    "an empty list with a space in it": json.dumps(USUAL | {"agent_responses": []}, indent=2).replace("[]", "[ ]"),
    "a list on one line": json.dumps(USUAL | {"agent_responses": "X"}, indent=2).replace(
        '"X"', json.dumps(USUAL["agent_responses"])
    ),
}


@pytest.mark.parametrize("letter", [" ", "t"])
def test_a_moment_that_is_spelt_otherwise_never_goes_back(letter: str) -> None:
    late, early = f"2026-11-15{letter}23:59:58.123456Z", "2026-11-15T22:12:25.262381Z"
    assert later_of(late, early) == later_of(early, late) == late
    assert later_of(early, f"2026-11-15{letter}01:00:00.000001Z") == early


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_only_white_space_is_normalised(workshop: Workshop, text: str) -> None:
    check_only_white_space_is_normalised(workshop, text)


def check_only_white_space_is_normalised(workshop: Workshop, text: str) -> None:
    said = json.loads(text)
    workshop.put(text)
    session = workshop.load()
    assert [m.content for m in session.user_messages] == [m["content"] for m in said.get("user_messages", [])]
    assert [r.content for r in session.agent_responses] == [r["content"] for r in said.get("agent_responses", [])]
    assert session.metadata == said["metadata"]
    session.set_metadata("k", 1)
    message = session.add_user_message("three")
    response = session.add_agent_response("second")
    session.set_active_seed("seed")
    workshop.store.save_session(session)
    expected = dict(said)
    record = {"content": "three", "timestamp": message.timestamp_text}
    expected["user_messages"] = [*said.get("user_messages", []), record]
    nulls = dict.fromkeys(("session_id", "seed_id", "phase_reached", "evaluation_passed"))
    record = {"content": "second", **nulls, "timestamp": response.timestamp_text}
    expected["agent_responses"] = [*said.get("agent_responses", []), record]
    expected |= {"active_seed_id": "seed", "updated_at": session.updated_text, "metadata": said["metadata"] | {"k": 1}}
    assert json.loads(workshop.text()) == expected
    assert workshop.text() == pretty(json.loads(workshop.text()))


spaces = st.sampled_from(["", " ", "\n", "\n ", "\n  ", "\n    ", "\t", "\r\n", "\r\n  "])


@st.composite
def laid_out(draw: st.DrawFn, value: Any) -> str:
    """A value as JSON with white space wherever it may be."""
    if isinstance(value, dict) and value:
        pieces = [
            f"{draw(spaces)}{json.dumps(key)}{draw(spaces)}:{draw(spaces)}{draw(laid_out(item))}{draw(spaces)}"
            for key, item in value.items()
        ]
        return "{" + ",".join(pieces) + "}"
    if isinstance(value, list) and value:
        return "[" + ",".join(f"{draw(spaces)}{draw(laid_out(item))}{draw(spaces)}" for item in value) + "]"
    if value == {}:
        return "{" + draw(spaces) + "}"
    return "[" + draw(spaces) + "]" if value == [] else json.dumps(value)


# The layouts above are the small examples, so there is no need to look for smaller ones.
@settings(max_examples=40, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_white_space_anywhere_changes_nothing(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    metadata = data.draw(st.sampled_from([{}, {"id": "x"}, {"user_messages": [], "a": 1, "agent_responses": []}]))
    lists = data.draw(st.sampled_from([{}, {"user_messages": []}, {"agent_responses": []}]))
    text = data.draw(laid_out(USUAL | {"metadata": metadata} | lists))
    face = Face("plain")
    check_only_white_space_is_normalised(Workshop(face, tmp_path_factory.mktemp("layouts") / "state"), text)
    face.close()


# -- documents ----------------------------------------------------------------------------------------------------


def test_markdown_keeps_every_byte(store: StateStore) -> None:
    for text in ("one\r\ntwo\rthree\n", "", "\ufeffbom", "no newline", "\x00\x1b", "\u2028"):
        store.save_markdown("notes", "n", text)
        assert store.load_markdown("notes", "n") == text


def test_a_foreign_json_document_keeps_its_bytes_until_it_is_saved(workshop: Workshop, directory: Path) -> None:
    (directory / "notes").mkdir()
    path = directory / "notes" / "n.json"
    path.write_bytes(b'{"a":1E5 ,\r\n "b":123456789012345678901234567890}')
    document = workshop.store.get_document("notes", "n")
    assert document is not None
    assert document.body == path.read_bytes()
    assert workshop.store.load_json("notes", "n") == {"a": 1e5, "b": 123456789012345678901234567890}


# -- through copies -----------------------------------------------------------------------------------------------


def test_records_that_a_newer_program_wrote_keep_their_fields_through_an_edit(workshop: Workshop) -> None:
    workshop.put(ODD["unknown fields in records"])
    session = workshop.load()
    del session.user_messages[1]
    workshop.store.save_session(session)
    said = json.loads(workshop.text())
    assert said["user_messages"] == [{"x": 1, "content": "one", "timestamp": "2026-01-01T00:00:01Z", "y": {"z": []}}]
    assert said["agent_responses"][0]["cost"] == 0.25


def test_a_recreated_session_keeps_the_unknown_fields(workshop: Workshop) -> None:
    text = ODD["unknown fields at the top"]
    workshop.put(text)
    session = workshop.load()
    workshop.store.delete_session("s")
    session.add_agent_response(AgentResponse("again"))
    workshop.store.save_session(session, recreate=True)
    said = json.loads(workshop.text())
    assert list(said) == list(json.loads(text))
    assert said["later"] == {"nested": [1, {"deep": None}], "empty": {}}
    assert [r["content"] for r in said["agent_responses"]] == ["first", "again"]


def test_records_are_equal_whatever_else_stands_in_their_list(workshop: Workshop) -> None:
    workshop.put(ODD["unknown fields in records"])
    session = workshop.load()
    message = session.add_user_message("three")
    workshop.store.save_session(session)
    loaded, again = workshop.load(), workshop.load()
    assert loaded.user_messages == again.user_messages
    assert loaded.user_messages[-1] == message
    assert "_Verbatim" not in repr(loaded.user_messages)
