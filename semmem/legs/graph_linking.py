"""Link a question to the memories it names in one namespace: subjects, concepts, and rare names to anchor the walk.

A question may name a subject otherwise than its title does: Maurice of Nassau, a surname, a plural. Such a link is
proposed for a capitalised span that is no subject as it stands. Ambiguous forms are not linked, nor are names that a
person has set apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from semmem.concepts.aliases import overlap, surnames, variants
from semmem.concepts.names import OPENING, initials_key, title_is_name
from semmem.concepts.rules import NAME_WEIGHT, corrected_question
from semmem.legs.graph_names import Names
from semmem.legs.graph_walk import Mass, gather, rarity
from semmem.model.arrays import chosen
from semmem.model.exchange import Corrections, Kind, Postings, Trace, placed
from semmem.model.question import Name, QuestionConcepts
from semmem.model.recipe import GraphSettings
from semmem.model.store import Snapshot
from semmem.text.tokens import key, stem, stop_words, tokens

__all__ = ["LIKE", "Links", "WalkTrace", "by_initials", "likely_subjects", "link", "unlinked", "variant_keys"]

_WEIGHT_UNIT = 100
"""Postings store weights in hundredths."""

_INITIALS = 0.5
"""The weight of a subject that the question names by the initials of its title alone."""

_COMMON = 5
"""A single word in lower case links to a subject only when at most this many memories mention it."""

_MOSTLY_A_NAME = 0.7
"""A single word in lower case is a name when this share of the memories with its stem write it with a capital."""


@dataclass(slots=True)
class WalkTrace(Trace):
    """How a walk came about, for explanations: subject links, concepts of the question, restart, edges of each hop.

    ``ties_cut`` says that there were more relationships than the walk reads.
    """

    linked: dict[int, list[int]] = field(default_factory=dict)
    concepts: dict[int, list[int]] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    seeds: dict[int, str] = field(default_factory=dict)
    restart: dict[int, float] = field(default_factory=dict)
    hops: list[Any] = field(default_factory=list)
    ties_cut: bool = False

    @classmethod
    def of(cls, traces: Sequence[WalkTrace]) -> WalkTrace:
        """Return the traces of several namespaces as one; each row id gets the place of its namespace."""
        if len(traces) == 1:
            return traces[0]
        whole = cls(ties_cut=any(trace.ties_cut for trace in traces))
        for place, trace in enumerate(traces):
            whole.labels |= trace.labels
            for name in ("linked", "concepts", "seeds", "restart"):
                getattr(whole, name).update(
                    {placed(row_id, place): value for row_id, value in getattr(trace, name).items()}
                )
            whole.hops += [
                replace(h, source=placed(h.source, place), target=placed(h.target, place)) for h in trace.hops
            ]
        return whole


@dataclass(frozen=True, slots=True)
class Links:
    """Mass on the memories that the question names as subjects, that share its concepts, and that hold its rare names.

    ``singleton`` are memories that are the only one to mention a name of the question.
    """

    subjects: Mass
    concepts: Mass
    anchors: Mass
    named: bool
    corrections: Corrections
    singleton: frozenset[int] = frozenset()


def link(
    snapshot: Snapshot,
    namespace: str,
    stored: Names,
    question: QuestionConcepts,
    settings: GraphSettings,
    language: str,
    trace: WalkTrace,
) -> Links:
    """Look up the names and concepts of the question; three or four round trips, for its own keys alone.

    A capitalised span that is no subject as it stands costs two or three more (``other_names``).
    """
    corrections = stored.corrections
    question = corrected_question(question, corrections)
    variants = variant_keys(question) if settings.other_names else {}
    short = by_initials(question) if settings.other_names else {}
    weights = dict(zip(question.keys, question.weights, strict=True))
    called = {n.key for n in question.names} | variants.keys() | short.keys()
    names, shared = stored.postings_of((called, None), (weights, settings.max_df))
    by_key = dict(names.items())
    question = replace(question, names=tuple(name for name in question.names if name.key in by_key))
    mass, linked = _subjects(question, names, by_key, trace)

    trace.labels |= dict(zip(question.keys, question.labels, strict=True))
    stems = {k for k, kind in zip(question.keys, question.kinds, strict=True) if kind == Kind.STEM}
    if settings.other_names:
        likely = [(span, concept_key, 1.0) for concept_key, span in variants.items() if concept_key in by_key]
        likely = [candidate for candidate in likely if candidate[0] in unlinked(question, linked, corrections)]
        likely += likely_subjects(stored, question, linked, shared, language)
        more = stored.postings({concept_key for _, concept_key, _ in likely}) if likely else names
        linked |= _likely(likely, dict(more.items()), names.memories, mass, trace)
        _initialled(unlinked(question, linked, corrections), short, by_key, names.memories, mass, trace)
    subjects = gather(list(mass), list(mass.values()))
    titles = snapshot.titles(namespace, subjects.row_ids) if len(subjects) else {}
    named = any(title and title_is_name(title, language=language) for title in titles.values())
    stem_df = {k: len(e) for k, e in shared.items() if k in stems}
    lower_names = (
        {n.key: n for n in _written_small(question, by_key, stem_df, settings, language)} if settings.lower_case else {}
    )
    for name in question.names:
        if name.key in lower_names or (name.capitalised and name.key in linked):
            weights.setdefault(name.key, NAME_WEIGHT)
            trace.labels.setdefault(name.key, name.label)
    spans = {span.key for span in question.spans}
    name_keys = (
        {k for k, kind in zip(question.keys, question.kinds, strict=True) if kind == Kind.NAME}
        | set(lower_names)
        | linked
    )
    off = {kind for kind, on in ((Kind.STEM, settings.stems), (Kind.BIGRAM, settings.bigrams)) if not on}
    unused = {k for k, kind in zip(question.keys, question.kinds, strict=True) if kind in off}
    mentions = {k: chosen(e, e["mention"] > 0) for k, e in shared.items() if k not in unused}
    mentions |= {k: chosen(e, e["mention"] > 0) for k, e in by_key.items() if k in weights}
    row_ids, values, anchor_row_ids, anchor_values = [], [], [], []
    singleton = set[int]()
    for concept_key in sorted(mentions):
        entries = mentions[concept_key]
        if not 0 < len(entries) <= settings.max_df:
            continue
        mentioning = entries["ord"].tolist()
        if concept_key in spans or concept_key in lower_names:
            if len(mentioning) > 1:
                named = True
            else:
                singleton.update(mentioning)
        load = entries["mention"] * (rarity(shared.memories, len(mentioning)) / float(entries["mention"].sum()))
        row_ids += mentioning
        values += (load * weights[concept_key]).tolist()
        if concept_key in name_keys and len(mentioning) <= settings.anchor_df:
            anchor_row_ids += mentioning
            anchor_values += load.tolist()
        for row_id in mentioning:
            trace.concepts.setdefault(row_id, []).append(concept_key)
    return Links(
        subjects,
        gather(row_ids, values),
        gather(anchor_row_ids, anchor_values),
        named,
        corrections,
        frozenset(singleton),
    )


def _likely(
    likely: Sequence[tuple[Name, int, float]],
    by_key: dict[int, Any],
    memories: int,
    mass: dict[int, float],
    trace: WalkTrace,
) -> set[int]:
    """Add mass for the subjects that spans probably mean; return the keys of these subjects."""
    linked = set()
    for span, concept_key, alike in likely:
        entries = by_key.get(concept_key)
        if entries is None:
            continue
        about = chosen(entries, entries["subject"] > 0)
        if not len(about):
            continue
        linked.add(concept_key)
        rare = alike * rarity(memories, int((entries["mention"] > 0).sum()) or 1) / _WEIGHT_UNIT
        for row_id, weight in zip(about["ord"].tolist(), about["subject"].tolist(), strict=True):
            mass[row_id] = max(mass.get(row_id, 0.0), weight * rare)
            trace.linked.setdefault(row_id, []).append(concept_key)
        trace.labels.setdefault(concept_key, span.label)
    return linked


def _initialled(
    spans: Sequence[Name],
    short: Mapping[int, Name],
    by_key: Mapping[int, Any],
    memories: int,
    mass: dict[int, float],
    trace: WalkTrace,
) -> None:
    """Add mass for the memory whose title has the initials in a span; none where several titles have them."""
    for concept_key, span in short.items():
        entries = by_key.get(concept_key)
        if span in spans and entries is not None and len(entries) == 1:
            row_id = int(entries["ord"][0])
            mass[row_id] = max(mass.get(row_id, 0.0), _INITIALS * rarity(memories, 1))
            trace.linked.setdefault(row_id, []).append(concept_key)
            trace.labels.setdefault(concept_key, span.label)


def _subjects(
    question: QuestionConcepts, names: Postings, by_key: dict[int, Any], trace: WalkTrace
) -> tuple[dict[int, float], set[int]]:
    """Link names of the question to the memories about them: longest first, from left to right, ignoring case."""
    mass: dict[int, float] = {}
    positions: set[int] = set()
    linked: set[int] = set()
    for name in sorted(question.names, key=lambda n: (n.first, -n.size)):
        entries = by_key.get(name.key)
        if entries is None or not positions.isdisjoint(range(name.first, name.past)):
            continue
        about = chosen(entries, entries["subject"] > 0)
        if not len(about):
            continue
        positions.update(range(name.first, name.past))
        df = int((entries["mention"] > 0).sum())
        if name.size == 1 and not name.capitalised and df > _COMMON:
            continue
        linked.add(name.key)
        rare = rarity(names.memories, df) / _WEIGHT_UNIT
        for row_id, weight in zip(about["ord"].tolist(), about["subject"].tolist(), strict=True):
            mass[row_id] = max(mass.get(row_id, 0.0), weight * rare)
            trace.linked.setdefault(row_id, []).append(name.key)
        trace.labels[name.key] = name.label
    return mass, linked


def _written_small(
    question: QuestionConcepts, by_key: dict[int, Any], stem_df: dict[int, int], settings: GraphSettings, language: str
) -> list[Name]:
    """Return names that the question writes without capitals and that the namespace knows as names.

    Longest first, without overlaps. A single word counts only when memories nearly always write it with a capital.
    """
    positions: set[int] = set()
    names = []
    already = set(question.keys)
    for name in question.names:
        entries = by_key.get(name.key)
        if entries is None or not positions.isdisjoint(range(name.first, name.past)) or name.edge_stops:
            continue
        df = int((entries["mention"] > 0).sum())
        if not 0 < df <= settings.max_df:
            continue
        if name.key in already:
            positions.update(range(name.first, name.past))
            continue
        if name.size == 1:
            word = name.tokens[0]
            together = stem_df.get(key(Kind.STEM, (stem(word, language),)))
            singleton = df < 2 and not (entries["subject"] > 0).any() and not any(c.isdigit() for c in word)
            if word.isdigit() or singleton or together is None or df < _MOSTLY_A_NAME * together:
                continue
        positions.update(range(name.first, name.past))
        names.append(name)
    return names


LIKE = 0.7
"""The overlap (see ``aliases.overlap``) from which on two names that share two tokens are linked."""

_MOST_SPANS = 4

_MOST_MEMORIES = 100

_NAME, _STEM = int(Kind.NAME), int(Kind.STEM)

_OPENING = round(100 * OPENING)


def variant_keys(question: QuestionConcepts) -> dict[int, Name]:
    """Return the keys of variants of the question's capitalised spans, each with its span."""
    span_by_key: dict[int, Name] = {}
    for span in question.spans[: 2 * _MOST_SPANS]:
        for form in sorted(variants(span.tokens)):
            span_by_key.setdefault(key(_NAME, form), span)
    return span_by_key


def by_initials(question: QuestionConcepts) -> dict[int, Name]:
    """Return the keys of initials that the question may write in capitals, each with its span."""
    return {
        initials_key(span.tokens[0]): span
        for span in question.spans[: 2 * _MOST_SPANS]
        if len(span.tokens) == 1 and span.label.isupper()
    }


def unlinked(question: QuestionConcepts, linked: set[int], corrections: Corrections) -> list[Name]:
    """Return the capitalised spans of the question that overlap nothing linked yet."""
    positions = {place for name in question.names if name.key in linked for place in range(name.first, name.past)}
    return [
        span
        for span in question.spans
        if span.key not in corrections.apart and positions.isdisjoint(range(span.first, span.past))
    ][:_MOST_SPANS]


def likely_subjects(
    stored: Names,
    question: QuestionConcepts,
    linked: set[int],
    shared: Postings,
    language: str,
) -> list[tuple[Name, int, float]]:
    """Return (span, key of a subject, likeness in [0, 1]) for spans without a link; one round trip.

    Considers the memories that share rare words with a span: two words, or the one word of a surname.
    """
    spans = unlinked(question, linked, stored.corrections)
    entries = dict(shared.items())
    near: dict[Name, set[int]] = {}
    rare: dict[str, float] = {}
    for span in spans:
        content = [t for t in span.tokens if t not in stop_words(language)]
        counted: dict[int, int] = {}
        for token in content:
            mentions = entries.get(key(_STEM, (stem(token, language),)))
            if mentions is None:
                continue
            rare[token] = rarity(shared.memories, len(mentions))
            for row_id in mentions["ord"].tolist():
                counted[row_id] = counted.get(row_id, 0) + 1
        needed = 1 if len(content) == 1 else 2
        near[span] = {row_id for row_id, count in counted.items() if count >= needed}
    row_ids = set().union(*near.values()) if near else set()
    if not 0 < len(row_ids) <= _MOST_MEMORIES:
        return []
    about = _about(stored, row_ids, language)
    candidates = []
    for span in spans:
        names = {concept_key: name for row_id in near[span] for concept_key, name in about.get(row_id, {}).items()}
        if len(span.tokens) == 1:
            whole = surnames(names.values()).get(span.tokens)
            candidates += [
                (span, concept_key, 1.0)
                for concept_key, name in names.items()
                if whole and name[-len(whole) :] == whole
            ]
            continue
        for concept_key, name in names.items():
            alike = overlap(span.tokens, name, rare)
            if alike >= LIKE and len(set(span.tokens) & set(name) - stop_words(language)) >= 2:
                candidates.append((span, concept_key, alike))
    return sorted(candidates, key=lambda f: (f[0].first, -f[2], f[1]))


def _about(stored: Names, row_ids: set[int], language: str) -> Mapping[int, dict[int, tuple[str, ...]]]:
    """Return, for each memory, the names in its title as folded tokens; only names written with capitals.

    The name at the beginning of a text is not used: surnames from it misled the walk (untitled notes, recall@5 -0.01).
    """
    out: dict[int, dict[int, tuple[str, ...]]] = {}
    for row_id, concept_key, weight, label in stored.subject_names(sorted(row_ids)):
        if weight == _OPENING or concept_key in stored.corrections.apart:
            continue
        words = [word for word, _, _ in tokens(label, language)]
        if words and all(word.capital or word.stop or not word.folded.isalpha() for word in words):
            out.setdefault(row_id, {})[concept_key] = tuple(word.folded for word in words)
    return out
