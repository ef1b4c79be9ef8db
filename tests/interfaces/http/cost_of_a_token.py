"""The time for a token beside a key: ``python -m tests.interfaces.http.cost_of_a_token``; adr/0095 has the numbers."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semmem.interfaces.http.keys import Keys, found
from tests.identity import Identity, identity_server
from tests.interfaces.http.test_tokens import tokens_of

CALLS = 2_000


def microseconds(call: Callable[[], Any]) -> str:
    """Return the median of many calls, and their 95th percentile."""
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e6)
    return f"{statistics.median(times):.0f} µs (95 %: {statistics.quantiles(times, n=20)[-1]:.0f})"


def measure(identity: Identity, alg: str) -> str:
    """Return the time for a token that is signed by ``alg``."""
    tokens, token = tokens_of(identity), identity.token(alg=alg)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(tokens.find(token))
    try:
        return microseconds(lambda: loop.run_until_complete(tokens.find(token)))
    finally:
        loop.close()


def main() -> None:
    """Print the time for a key and for a token of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        keys = Keys(Path(folder) / "keys.json")
        _, text = keys.add("laptop")
        by_id = {key.id: key for key in keys.list()}
        print("key", microseconds(lambda: found(by_id, f"Bearer {text}")))
    with identity_server() as identity:
        print("RS256", measure(identity, "RS256"))
        identity.rotate(kind="EC", size="P-256")
        print("ES256", measure(identity, "ES256"))


if __name__ == "__main__":
    main()
