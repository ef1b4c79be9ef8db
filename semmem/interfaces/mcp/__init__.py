"""The interface for agents that speak MCP: tools and resources over stdio or Streamable HTTP."""
