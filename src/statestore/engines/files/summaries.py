"""What a listing tells of a session file, worked out from the file itself."""

from __future__ import annotations

import msgspec

from statestore.engines.files.image import SessionImage
from statestore.labels import labels_in, opening_of, project_of, title_of
from statestore.stored import SessionSummary


def summary_of(image: SessionImage) -> SessionSummary:
    """The summary of a session file that was understood."""
    text = image.text
    metadata = msgspec.json.decode(text.metadata)
    users = text.records.decoded().users
    labels = labels_in(metadata, metadata) | {
        "opening": opening_of(users[0].content) if users else None,
        "project_id": text.fields.project_id,
    }
    messages, responses, events = text.counts
    return SessionSummary(
        id=text.id,
        user_id=text.fields.user_id,
        message_count=messages,
        created_text=text.fields.created,
        updated_text=text.fields.updated,
        response_count=responses,
        event_count=events,
        active_seed_id=text.fields.active_seed_id,
        active_persona_id=text.fields.active_persona_id,
        project_id=project_of(labels),
        parent_session_id=text.fields.parent_session_id,
        title=title_of(labels),
        size=image.identity.size,
        version=str(image.version),
    )
