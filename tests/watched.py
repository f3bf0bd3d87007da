"""What a watcher is told who comes back late to a store in which much went on."""

from __future__ import annotations

from typing import cast

from statestore.conformance.changes import appended, created, user
from statestore.engine import Watches
from statestore.opening import engine_for


async def check_who_is_far_behind_gets_what_is_theirs_at_once(url: str) -> None:
    """One page has it, however many changes of others lie before it and after."""
    engine = engine_for(url)
    await engine.open()
    watching = cast("Watches", engine)
    await engine.commit([created("busy"), created("quiet", user_id="bob")])
    start = await watching.change_cursor()
    for _ in range(30):
        await engine.commit([appended("busy", user("something else"))])
    await engine.commit([appended("quiet", user("at last"))])
    await engine.commit([appended("busy", user("something else"))])
    for session_id, user_id in (("quiet", None), (None, "bob"), ("quiet", "bob")):
        page = await watching.read_changes(start, session_id=session_id, user_id=user_id, limit=10)
        assert [(notice.session_id, notice.seq) for notice in page.notices] == [("quiet", 1)]
        assert page.cursor == await watching.change_cursor()
    await engine.close()
