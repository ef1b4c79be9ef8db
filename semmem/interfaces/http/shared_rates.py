"""The limit of rate that all servers over one store share: one bucket of tokens for each client, in the store.

A server takes tokens from it in advance, more of them for a client that uses them up, so that few requests cost a round
trip. What it has taken counts for a second. So a client is never let in more often than one server would, and less
often by the few tokens that a server has taken and not used.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from semmem.interfaces.http.keys import going
from semmem.interfaces.http.limits import Limits, Rates
from semmem.model.errors import SemmemError
from semmem.model.store.serving import rates_unshared

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.model.store.serving import ServingStore

__all__ = ["SharedRates", "rates_of"]


@dataclass(slots=True)
class _Lease:
    """Tokens that this server has taken for a client; or how long the bucket stays empty."""

    tokens: int = 0
    size: int = 0
    until: float = 0.0
    empty_until: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class SharedRates(Rates):
    """The tokens of each client in a store.

    Where the store does not answer, the tokens of this server alone count for a while.
    """

    LASTS_S = 1.0
    """Seconds for which tokens that were taken count."""

    PATIENCE_S = 1.0
    """Seconds in which the store has to answer."""

    ALONE_S = 5.0
    """Seconds for which it is not asked after it did not."""

    def __init__(
        self,
        rate: float,
        burst: int,
        serving: ServingStore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(rate, burst, clock)
        self._serving = serving
        self._most = max(1, int(rate / 10))
        self._leases: OrderedDict[str, _Lease] = OrderedDict()
        self._alone_until = 0.0

    async def wait(self, client: str) -> float:
        """Count one request of ``client``; return 0, or the seconds to wait where it has sent too many."""
        if not self._rate:
            return 0.0
        lease = self._leases.setdefault(client, _Lease())
        self._leases.move_to_end(client)
        if len(self._leases) > self._MOST:
            self._leases.popitem(last=False)
        async with lease.lock:
            now = self._clock()
            if now < lease.empty_until:
                return lease.empty_until - now
            if lease.tokens < 1 or now >= lease.until:
                if now < self._alone_until or not await self._renew(client, lease, now):
                    return self.take(client)
                if lease.tokens < 1:
                    return lease.empty_until - now
            lease.tokens -= 1
            return 0.0

    async def _renew(self, client: str, lease: _Lease, now: float) -> bool:
        """Take tokens from the store, twice as many where the last ones were used up; return whether it answered."""
        used_up = lease.tokens < 1 and now < lease.until
        lease.size = min(self._most, 2 * lease.size) if used_up else 1
        digest = blake2b(client.encode(), digest_size=16).digest()
        ask = partial(self._serving.take_tokens, digest, lease.size, rate=self._rate, burst=self._burst)
        asking = going(None, ask)
        with suppress(SemmemError, TimeoutError):
            granted, wait = await asyncio.wait_for(asyncio.shield(asking), self.PATIENCE_S)
            lease.tokens, lease.until, lease.empty_until = granted, now + self.LASTS_S, now + wait
            return True
        self._alone_until = now + self.ALONE_S
        return False


def rates_of(limits: Limits, opened: Callable[[], Semmem]) -> Rates:
    """Return the rates of one server, or those that it shares with others over the store of ``opened``.

    Warns where the store gives no tokens now, such as to a user without rights on the table of buckets. Raises
    InvalidInput for a store that only one machine serves, and what opening it raises.
    """
    if not limits.shared:
        return Rates(limits.rate, limits.burst)
    store = opened().store
    if store.serving is None or store.kind == "SQLite":
        raise rates_unshared(store.kind)
    if limits.rate:
        try:
            store.serving.take_tokens(bytes(16), 0, rate=limits.rate, burst=limits.burst)
        except SemmemError as error:
            sentence = "The limit of rate is not shared until the store gives tokens, so this server counts by itself"
            warnings.warn(f"{sentence}: {error}", stacklevel=2)
    return SharedRates(limits.rate, limits.burst, store.serving)
