"""Sessions of the Claude Agent SDK in a statestore: `StateStoreSessions` for `ClaudeAgentOptions(session_store=…)`.

`sessions` is the contract; `summaries` is what makes its listings cheap.
"""

from statestore.adapters.requirements import check_version, unavailable

try:
    import claude_agent_sdk  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it there?
except ImportError as error:
    raise unavailable("claude-agent-sdk") from error
check_version("claude-agent-sdk")

from statestore.adapters.claude_agent_sdk.sessions import StateStoreSessions  # noqa: E402 - only if the SDK is there

__all__ = ["StateStoreSessions"]
