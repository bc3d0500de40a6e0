"""MCP server of one episode, which a client plays with the tools ``look`` and ``move`` (extra ``mcp``)."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Annotated, Any

from pydantic import BaseModel, Field

from inquitree_gym import __version__
from inquitree_gym.errors import InquiTreeError, require
from inquitree_gym.integrations.session import EpisodeSession, check_move
from inquitree_gym.kinds import kind
from inquitree_gym.prompts import Prompts
from inquitree_gym.rollout import in_step_thread
from inquitree_gym.text_limits import MAX_ACTION_LENGTH

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import CallToolResult, TextContent, ToolAnnotations
except ModuleNotFoundError:
    require("mcp", "mcp")
    raise

TEMPLATE = "mcp_play"
"""Template of the prompt and of the server's instructions."""


class MCPView(BaseModel):
    """Structured content of both tools."""

    observation: str
    """The newest observation, which is the text content, too."""
    turn: int
    over: bool


def episode_server(session: EpisodeSession) -> MCPServer[Any]:
    """Return an MCP server for ``session``, which has begun.

    All clients play the same episode, since a connection over HTTP has no session that could key another one.
    """

    async def look() -> Annotated[CallToolResult, MCPView]:
        """Show the newest message again. Takes no turn."""
        return await in_step_thread(_view, session)

    async def move(
        text: Annotated[str, Field(description="The move, in your own words.", max_length=MAX_ACTION_LENGTH)],
    ) -> Annotated[CallToolResult, MCPView]:
        """Make the next move, which takes a turn, and show what follows."""
        try:
            with session.one_move():
                return await in_step_thread(_move, session, text)
        except InquiTreeError as error:
            raise ToolError(str(error)) from error

    looking = ToolAnnotations(title="Look again", read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    moving = ToolAnnotations(title="Make a move", read_only_hint=False, destructive_hint=False, open_world_hint=False)
    tools: list[Tool] = [
        _CheckedTool.from_function(look, annotations=looking),
        _CheckedTool.from_function(move, annotations=moving),
    ]
    first = session.episode.turns[:1]
    opening = first[0].observation if first else session.observation
    package = kind(session.task.kind).package
    rules = Prompts(names=(TEMPLATE,), package=package).render(TEMPLATE, opening=opening)
    server = MCPServer[Any]("inquitree-gym", instructions=rules, version=__version__, tools=tools, log_level="WARNING")

    @server.prompt(title="Play")
    def play() -> str:
        """Explain the rules and the tools."""
        return rules

    return server


class _CheckedTool(Tool):
    """Tool that refuses wrong arguments in one line. The SDK ignores unknown ones."""

    async def run(self, arguments: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        known = self.parameters["properties"]
        if unknown := sorted(arguments.keys() - known.keys()):
            takes = ", ".join(known) or "no arguments"
            raise ToolError(f"'{self.name}' takes {takes}; leave out {', '.join(unknown)}")
        try:
            moves = {name: check_move(arguments.get(name)) for name in known}
            return await super().run(moves, *args, **kwargs)
        except InquiTreeError as error:
            raise ToolError(str(error)) from error


def _move(session: EpisodeSession, text: str) -> CallToolResult:
    session.move(text)
    return _view(session)


def _view(session: EpisodeSession) -> CallToolResult:
    view = MCPView(observation=session.observation, turn=session.turn, over=session.over)
    content = TextContent(type="text", text=view.observation)
    return CallToolResult(content=[content], structured_content=view.model_dump())


def begin(session: EpisodeSession) -> None:
    """Begin ``session`` and keep what is printed meanwhile off the output stream, which the protocol needs."""
    with redirect_stdout(sys.stderr):
        session.begin()
