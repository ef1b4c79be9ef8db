"""A chat loop whose model remembers: any endpoint that speaks OpenAI's Chat Completions, and the tools of semmem.

    pip install 'semmem[http,mcp]'
    OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=qwen3 python examples/chat_loop.py

The model decides when it recalls and when it remembers; the store is that of your settings (SEMMEM_URL).
"""

from __future__ import annotations

import os
import sys
from typing import Any

import httpx

import semmem
from semmem.interfaces.tools import run_call, tool_schemas

NAMESPACE = "chat"
SYSTEM = (
    "You have a memory that outlives this conversation. Before you answer, call memory_recall with the question in "
    "plain words; when you learn something that will be worth knowing later, call memory_remember with one sentence."
)
MOST_CALLS = 8


def ask(client: httpx.Client, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the model's next message."""
    body = {
        "model": os.environ.get("OPENAI_MODEL", "gpt-5-mini"),
        "messages": messages,
        "tools": tool_schemas("openai-chat", only=["memory_recall", "memory_remember", "memory_update"]),
    }
    response = client.post("chat/completions", json=body)
    response.raise_for_status()
    message: dict[str, Any] = response.json()["choices"][0]["message"]
    return message


def answer(client: httpx.Client, memory: semmem.Semmem, messages: list[dict[str, Any]]) -> str:
    """Let the model call its memory as often as it wants to, and return what it says then."""
    for _ in range(MOST_CALLS):
        message = ask(client, messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return str(message.get("content") or "")
        for call in calls:
            function = call["function"]
            result, _ = run_call(  # the model stays in this namespace, whatever it asks for
                memory, function["name"], function["arguments"], namespace=NAMESPACE, only_namespace=True, agent="chat"
            )
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return "I have asked my memory too often; please ask again."


def main() -> None:
    """Read questions, a line each, until the end of the input."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/") + "/"
    headers = {"authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"}
    with (
        semmem.connect() as memory,
        httpx.Client(base_url=url, headers=headers, timeout=120.0, trust_env=False) as client,
    ):
        for line in sys.stdin:
            if line.strip():
                messages.append({"role": "user", "content": line.strip()})
                print(answer(client, memory, messages), flush=True)


if __name__ == "__main__":
    try:
        main()
    except httpx.HTTPStatusError as error:
        sys.exit(f"The model's endpoint said: {error.response.status_code} {error.response.text[:300]}")
    except httpx.HTTPError as error:
        sys.exit(f"No model answers ({error}); set OPENAI_BASE_URL and OPENAI_MODEL, as this file's head shows.")
