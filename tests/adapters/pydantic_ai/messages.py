"""Messages to be kept: what users, models and tools say."""

from __future__ import annotations

from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

QUESTION = "Which ferry arrives before noon?"


def asked(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(text)])


def answered(text: str) -> ModelMessage:
    return ModelResponse(parts=[TextPart(text)], model_name="scripted")


def exchange(number: int) -> list[ModelMessage]:
    return [asked(f"question {number}"), answered(f"answer {number}")]


def dialogue() -> list[ModelMessage]:
    """A turn with a tool."""
    call = ToolCallPart("timetable", {"before": "12:00"}, tool_call_id="call_1")
    return [
        ModelRequest(parts=[SystemPromptPart("Be short."), UserPromptPart(QUESTION)], instructions="Speak plainly."),
        ModelResponse(parts=[ThinkingPart("A timetable helps."), TextPart("Let me look."), call]),
        ModelRequest(parts=[ToolReturnPart("timetable", "10:40, 11:15", tool_call_id="call_1")]),
        ModelResponse(parts=[ToolCallPart("book", '{"ferry": "10:40"}', tool_call_id="call_2")]),
        ModelRequest(parts=[ToolReturnPart("book", "Which seat?", tool_call_id="call_2", outcome="retried")]),
        answered("The 10:40."),
        ModelRequest(
            parts=[UserPromptPart(["And this pier?", BinaryContent(b"\x89PDF", media_type="application/pdf")])]
        ),
    ]


def texts(conversation: Conversation | None) -> list[str]:
    assert conversation is not None
    return [str(getattr(message.parts[0], "content", "")) for message in conversation.messages]
