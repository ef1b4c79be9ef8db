"""Patience for whoever is asked by a hook or a command, as tests/patience.py says."""

from __future__ import annotations

from semmem.interfaces import local_socket, mem0, wrap
from semmem.interfaces.coding_agents import asking, listening, source
from tests.patience import PATIENCE_S

local_socket._CONNECT_S = local_socket._HERE_S = listening._CLIENT_S = listening._END_S = source._WITHIN_S = PATIENCE_S
wrap._PATIENCE = mem0._PATIENCE_S = PATIENCE_S
asking._WITHIN_S = {event: max(seconds, PATIENCE_S) for event, seconds in asking._WITHIN_S.items()}
