"""LangGraph's ``BaseStore`` over a semmem store: ``SemmemStore.from_conn_string(url, index={…})``."""

from __future__ import annotations

from semmem.model.errors import MissingExtra

try:
    from semmem.interfaces.langgraph.store import SemmemStore
except ModuleNotFoundError as error:
    raise MissingExtra("LangGraph's store needs: pip install 'semmem[langgraph]'") from error

__all__ = ["SemmemStore"]
