"""Looking at all documents, and at the categories that list them: many in one round trip."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from statestore.engines.inspecting import KEPT, faults_of_document
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.mending import REPAIR, Finding, document_due, document_entries
from statestore.engines.valkey.scripts import CHECK_DOCUMENTS, texts_in
from statestore.stored import DOCUMENT_KINDS, Problem

_DOCUMENTS: Final = 1_000
_CATEGORIES: Final = 100
"""How many are looked at at once."""
_SCRIPTS: Final = 20
_BYTES: Final = 200_000
"""How many categories are asked for their documents at once, and about how many bytes each of them gives back."""
_MEMBERS: Final = 5_000
"""How many entries are read at once."""


class _Place(NamedTuple):
    """Where a document is."""

    category: str
    name: str
    kind: str

    @property
    def shown(self) -> str:
        """How it is told of."""
        return f"{self.category}/{self.name}.{self.kind}"


async def survey_documents(caller: Caller, keys: Keys) -> AsyncIterator[Finding]:
    """All that is wrong with documents, and with how they are listed."""
    places: list[_Place] = []
    categories: list[str] = []
    async for key in caller.scan(keys.any_document):
        category = keys.category_in(key)
        if category is None:
            continue
        base = keys.category(category)
        kind, _, name = key[len(base) + 1 :].partition(":")
        if key == base:
            categories.append(category)
        elif kind in DOCUMENT_KINDS:
            places.append(_Place(category, name, kind))
        if len(places) == _DOCUMENTS:
            async for finding in _survey_page(caller, keys, places):
                yield finding
            places = []
        if len(categories) == _CATEGORIES:
            async for finding in _survey_categories(caller, keys, categories):
                yield finding
            categories = []
    async for finding in _survey_page(caller, keys, places):
        yield finding
    async for finding in _survey_categories(caller, keys, categories):
        yield finding


async def _survey_page(caller: Caller, keys: Keys, page: Sequence[_Place]) -> AsyncIterator[Finding]:
    """Look at some documents: those of some categories at once, and of each as many as fit into memory."""
    places_in: dict[str, list[_Place]] = {}
    for place in page:
        places_in.setdefault(place.category, []).append(place)
    scores = await caller.call_with_refusals([("ZSCORE", keys.categories, category) for category in places_in])
    unlisted = {category for category, score in zip(places_in, scores, strict=True) if score is None}
    waiting = list(places_in.values())
    while waiting:
        looked, waiting = waiting[:_SCRIPTS], waiting[_SCRIPTS:]
        for places, (marks, lengths, joined) in zip(looked, await _look(caller, keys, looked), strict=True):
            for place, mark, body in zip(places, marks.decode(), texts_in(lengths, joined), strict=False):
                if mark == "f":
                    yield Finding(Problem(place.shown, "it cannot be read: somebody else wrote its key", KEPT))
                elif mark != "g":
                    is_listed = mark == "l" and place.category not in unlisted
                    async for finding in _survey_document(caller, keys, place, body, is_listed=is_listed):
                        yield finding
            if len(marks) < len(places):
                waiting.append(places[len(marks) :])


async def _look(caller: Caller, keys: Keys, looked: Sequence[Sequence[_Place]]) -> list[Any]:
    """What there is of the first ones of some documents, by category."""
    bases = [keys.category(places[0].category) for places in looked]
    members = [[f"{place.name}\0{place.kind}" for place in places] for places in looked]
    calls = [((base,), (base, _BYTES, *found)) for base, found in zip(bases, members, strict=True)]
    return [caller.granted(reply) for reply in await caller.run_each(CHECK_DOCUMENTS, calls, besides=[])]


async def _survey_document(
    caller: Caller, keys: Keys, place: _Place, body: bytes, *, is_listed: bool
) -> AsyncIterator[Finding]:
    for what in faults_of_document(*place, body):
        yield Finding(Problem(place.shown, what, KEPT))
    if not is_listed and await _is_missing(caller, keys, place):
        problem = Problem(place.shown, "it is missing in listings", REPAIR)
        find_due = partial(document_due, caller, keys, *place)
        yield Finding(problem, to_add=document_entries(keys, *place), find_due=find_due)


async def _is_missing(caller: Caller, keys: Keys, place: _Place) -> bool:
    """Whether a document is there, and not listed, or its category is not."""
    looks = [("ZSCORE", index, entry) for index, entry in document_entries(keys, *place)]
    *scores, is_there = await caller.call_with_refusals([*looks, ("EXISTS", keys.document(*place))])
    return None in scores and bool(is_there)


async def _survey_categories(caller: Caller, keys: Keys, page: Sequence[str]) -> AsyncIterator[Finding]:
    """Look at what some categories have; those that have much are gone on with."""
    starts = dict.fromkeys(page, b"-")
    while starts:
        most = _MEMBERS // len(starts)
        replies = await caller.call_with_refusals(
            [("ZRANGEBYLEX", keys.category(it), start, "+", "LIMIT", 0, most) for it, start in starts.items()]
        )
        members: dict[str, list[bytes]] = {}
        for category, reply in zip(starts, replies, strict=True):
            error = caller.explained(reply)
            if error is not None:
                yield Finding(Problem(f"category {category}", f"it cannot be read: {error}", KEPT))
            elif reply:
                members[category] = reply
        async for finding in _survey_members(caller, keys, members):
            yield finding
        starts = {category: b"(" + found[-1] for category, found in members.items() if len(found) == most}


async def _survey_members(caller: Caller, keys: Keys, members: dict[str, list[bytes]]) -> AsyncIterator[Finding]:
    """Entries of documents that are gone."""
    places_in = {category: [_place_in(category, member) for member in found] for category, found in members.items()}
    counts = await caller.call_all([("EXISTS", *(keys.document(*it) for it in found)) for found in places_in.values()])
    for (category, places), count in zip(places_in.items(), counts, strict=True):
        if count < len(places):
            async for finding in _find_gone(caller, keys, places, members[category]):
                yield finding


async def _find_gone(
    caller: Caller, keys: Keys, places: Sequence[_Place], members: Sequence[bytes]
) -> AsyncIterator[Finding]:
    """Which of some entries of a category are of documents that are gone."""
    are_there = await caller.call_all([("EXISTS", keys.document(*place)) for place in places])
    for place, member, is_there in zip(places, members, are_there, strict=True):
        base = keys.category(place.category)
        look_again = [("EXISTS", keys.document(*place)), ("ZSCORE", base, member)]
        if not is_there and await caller.call_all(look_again) == [0, b"0"]:
            problem = Problem(place.shown, "it is listed, and not there", REPAIR)
            find_due = partial(document_due, caller, keys, *place)
            yield Finding(problem, to_remove=[(base, member)], find_due=find_due)


def _place_in(category: str, member: bytes) -> _Place:
    name, _, kind = member.decode(errors="replace").partition("\0")
    return _Place(category, name, kind)
