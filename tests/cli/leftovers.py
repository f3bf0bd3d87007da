"""What agents left in the store that the tests look at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from statestore import AgentResponse, Session, StateStore, UserMessage

ANSWER = "# The 10:40\n\nIt is **the last one**:\n\n- quay 3\n- two seats"
ATTACK = "look \x1b[31mred\x1b]0;title\x07 and \x9b2J and \u202eexe.txt"
TITLES = {
    "tokyo-weather": "東京の天気はどうですか。とても長い題名なので、狭い端末では切られるはずです",
    "hebrew-greeting": "שלום עולם 123 מה שלומך היום ומה עושים מחר בבוקר מוקדם",
    "family-emoji": "👩‍👩‍👧 dinner 🎉 for the whole family, and for some friends who come by 🍜",
    "attack": ATTACK,
}


def keep(store: StateStore, user: str, session_id: str, asked: str, answered: str, *, days: float) -> None:
    """Store a session of one exchange that happened some days ago."""
    moment = datetime.now(UTC) - timedelta(days=days)
    session = Session(user, session_id)
    session.user_messages.append(UserMessage(asked, timestamp=moment))
    session.agent_responses.append(AgentResponse(answered, timestamp=moment))
    session.updated_at = moment
    store.save_session(session)
