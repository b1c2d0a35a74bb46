"""The service: durable builds and agent runs behind HTTP, MCP and the command line."""
