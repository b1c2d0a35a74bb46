"""An MCP server over stdio that does harm: pages without end, results without measure, death in mid-call."""

import json
import os
import sys
from typing import Any

TOOLS = ("file", "huge", "die")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Give the result of a request, None where the method is not known."""
    match method:
        case "initialize":
            about = {"name": "hostile", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            return {"tools": tools, **({"nextCursor": "more"} if "endless" in sys.argv else {})}
        case "tools/call":
            if params["name"] == "die":
                os._exit(1)
            return {"content": [{"type": "text", "text": "x" * 5_000_000}]}
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params") or {})
        body = {"error": {"code": -32601, "message": "unknown"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}), flush=True)
