"""A provider that follows a script instead of a model: for demonstrations, tests and replays.

It speaks every dialect over real HTTP and says in every answer that it is scripted. It checks what a
client sent back against the script, and refuses to go on, with the difference, where that does not fit.
"""

from agent.scripted.conversation import Call, Conversation, Expected, Failure, Turn, load_conversation
from agent.scripted.replay import ReplayProvider
from agent.scripted.server import ScriptedProvider

__all__ = [
    "Call",
    "Conversation",
    "Expected",
    "Failure",
    "ReplayProvider",
    "ScriptedProvider",
    "Turn",
    "load_conversation",
]
