"""Types of the mappings and keywords that calls take, for editors and type checkers. Pure.

Values are checked at run time too, so no type checker is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict

from semmem.model.memory_fields import FilterValues, Item
from semmem.model.recipe import ConversationSettings, Fusion, GraphSettings, LexicalSettings, RankConstant

__all__ = ["FilterValues", "Item", "RecipeChanges", "SettingValues"]


class SettingValues(TypedDict, total=False):
    """The settings that ``connect`` takes as keywords, beside those that it names; `semmem settings` describes them."""

    home: str | PathLike[str] | None
    model: str | None
    embedder_url: str | None
    embedder_model: str | None
    embedder_key: Any
    embedder_timeout_s: float
    embedder_question: str
    embedder_passage: str
    embedder_dimensions: int | None
    embedder_max_tokens: int
    reranker_url: str | None
    reranker_model: str | None
    reranker_key: Any
    reranker_timeout_s: float
    language: str
    spacy_pipeline: str | None
    triples: str | PathLike[str] | None
    llm_url: str | None
    llm_model: str | None
    llm_key: Any
    llm_cache: str | PathLike[str] | None
    llm_timeout_s: float
    key: Any
    on_contradiction: str
    name_older: bool
    agent_min_confidence: float | str
    hook_process_s: float
    hook_legs: str
    session_start: str
    oidc_issuer: str | None
    oidc_audience: str | None
    oidc_resource: str | None
    oidc_namespaces_claim: str
    oidc_right_claim: str
    shared_rate: bool
    read_url: str | None
    read_wait_s: float
    pool_size: int
    bulk_workers: int
    resident_mb: int
    saved_mb: int
    idle_stop_s: float
    start_timeout_s: float
    audit: bool
    keep_audit_days: float
    keep_answers_days: float
    keep_changes_days: float
    keep_forgotten_days: float
    keep_versions: int
    recall_log: bool
    agent: str | None
    count_accesses: bool
    keep_recall_log_days: float
    backup_before_migration: bool
    migrate: bool
    personal_namespace: str
    otel: bool
    log: Literal["none", "json"]
    credentials: Literal["warn", "redact", "refuse", "sensitive", "off"]
    config: str | PathLike[str] | None


class RecipeChanges(TypedDict, total=False):
    """Changes that ``semmem.recipe`` makes to a recipe; docs/reference.md says what each one means."""

    name: str
    weights: Mapping[str, float]
    rank_constants: Mapping[str, RankConstant]
    depths: Mapping[str, int]
    timeouts: Mapping[str, float]
    reserve: Mapping[str, int]
    prior: bool
    prior_floor: float | None
    recency_half_life: float | None
    recency_floor: float
    period_floor: float | None
    exact_bonus: float
    dedup: bool
    superseding: bool
    lexical: LexicalSettings | Mapping[str, Any]
    graph: GraphSettings | Mapping[str, Any]
    conversation: ConversationSettings | Mapping[str, Any] | bool | None
    fusion: Fusion
    regime_weights: Mapping[str, Mapping[str, float]]
    regime_reserve: Mapping[str, Mapping[str, int]]
    rerank: str | None
    rerank_depth: int
    rerank_regimes: Sequence[str]
    headroom: int
