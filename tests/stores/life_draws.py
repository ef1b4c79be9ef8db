"""What is drawn by chance for the life of a memory: its fields, times and changes."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

TIMES = [datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2021, 2022, 2023)]
LATE = datetime(2120, 1, 1, tzinfo=UTC)

namespaces = st.sampled_from(["one", "two"])
numbers = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4])  # of an id; the first ones often
people = st.sampled_from([None, "Ada", "Bo"])
sessions = st.sampled_from([None, "s", "t"])
times = st.sampled_from(TIMES)

changes = st.fixed_dictionaries(
    {},
    optional={
        "text": st.just(""),  # a new one
        "session": sessions,
        "tags": st.sampled_from([(), ("owl",), ("owl", "fox")]),
        "importance": st.sampled_from([0.5, 0.9]),
        "valid_from": st.none() | times,
        "valid_to": st.none() | times | st.just(LATE),
    },
).filter(bool)
