"""The periods that questions name, each with its first day and the first day after it, worked out with a calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.text.languages import LANGUAGES
from semmem.text.periods import periods_of

NOW = datetime(2026, 11, 26, 18, 30)  # a Thursday

ENGLISH = {
    "What did we decide today?": ("2026-11-26", "2026-11-27"),
    "What did I promise this morning?": ("2026-11-26", "2026-11-27"),
    "Who called yesterday?": ("2026-11-25", "2026-11-26"),
    "Who called last night?": ("2026-11-25", "2026-11-26"),
    "Who called the day before yesterday?": ("2026-11-24", "2026-11-25"),
    "What came up this week?": ("2026-11-23", "2026-11-30"),
    "What did I do last week?": ("2026-11-16", "2026-11-23"),
    "What did I do the week before last?": ("2026-11-09", "2026-11-16"),
    "Where were we last weekend?": ("2026-11-21", "2026-11-23"),
    "What was shipped this month?": ("2026-11-01", "2026-12-01"),
    "What was shipped last month?": ("2026-10-01", "2026-11-01"),
    "How did we do last quarter?": ("2026-07-01", "2026-10-01"),
    "Where did John travel last year?": ("2025-01-01", "2026-01-01"),
    "What did she say three weeks ago?": ("2026-11-02", "2026-11-09"),
    "What broke 10 days ago?": ("2026-11-16", "2026-11-17"),
    "Who joined two months ago?": ("2026-09-01", "2026-10-01"),
    "Where did I live a year ago?": ("2025-01-01", "2026-01-01"),
    "What failed 3 hours ago?": ("2026-11-26T15:00", "2026-11-26T16:00"),
    "What changed in the past three weeks?": ("2026-11-05", "2026-11-27"),
    "What changed over the last month?": ("2026-10-26", "2026-11-27"),
    "Who was responsible back in February?": ("2026-02-01", "2026-03-01"),
    "What was planned in December?": ("2025-12-01", "2026-01-01"),
    "What did we buy last March?": ("2026-03-01", "2026-04-01"),
    "What happened in August 2023?": ("2023-08-01", "2023-09-01"),
    "Who came on March 5?": ("2026-03-05", "2026-03-06"),
    "Who came on 3 June, 2023?": ("2023-06-03", "2023-06-04"),
    "Who came on the 3rd of June?": ("2026-06-03", "2026-06-04"),
    "What was said on the 5th?": ("2026-11-05", "2026-11-06"),
    "What was said on the 31st?": ("2026-10-31", "2026-11-01"),
    "What was said on 2024-02-29?": ("2024-02-29", "2024-03-01"),
    "What was said on Monday?": ("2026-11-23", "2026-11-24"),
    "What was said on Thursday?": ("2026-11-26", "2026-11-27"),
    "What was said last Thursday?": ("2026-11-19", "2026-11-20"),
    "What has changed since last Monday?": ("2026-11-23", None),
    "What did we agree before Christmas?": (None, "2025-12-24"),
    "What did we agree after Easter?": ("2026-04-07", None),
    "What was the rule until Friday?": (None, "2026-11-21"),
    "Which compiler did we use before April?": (None, "2026-04-01"),
    "Where did we go two summers ago?": ("2025-06-01", "2025-09-01"),
    "Where did we go last summer?": ("2026-06-01", "2026-09-01"),
    "Where did we go in the summer of 2022?": ("2022-06-01", "2022-09-01"),
    "What happened in winter?": ("2025-12-01", "2026-03-01"),
    "What was built between May and July?": ("2026-05-01", "2026-08-01"),
    "Which puppy did she get two weeks before August 11, 2023?": ("2023-07-24", "2023-07-31"),
    "What did he do the week before August 3, 2023?": ("2023-07-24", "2023-07-31"),
    "Where was she last weekend before April 10, 2023?": ("2023-04-08", "2023-04-10"),
    "What did we spend in 2024?": ("2024-01-01", "2025-01-01"),
}

GERMAN = {
    "Was haben wir heute beschlossen?": ("2026-11-26", "2026-11-27"),
    "Wer hat gestern Abend angerufen?": ("2026-11-25", "2026-11-26"),
    "Wer hat vorgestern angerufen?": ("2026-11-24", "2026-11-25"),
    "Was war letzte Woche los?": ("2026-11-16", "2026-11-23"),
    "Was war vorletzte Woche los?": ("2026-11-09", "2026-11-16"),
    "Was steht diesen Monat an?": ("2026-11-01", "2026-12-01"),
    "Was war im vergangenen Jahr?": ("2025-01-01", "2026-01-01"),
    "Was sagte sie vor drei Wochen?": ("2026-11-02", "2026-11-09"),
    "Was war in den letzten zwei Wochen?": ("2026-11-12", "2026-11-27"),
    "Was haben wir im März gekauft?": ("2026-03-01", "2026-04-01"),
    "Was war am 5. März 2024?": ("2024-03-05", "2024-03-06"),
    "Was war am 05.03.2024?": ("2024-03-05", "2024-03-06"),
    "Wer kam am 5. vorbei?": ("2026-11-05", "2026-11-06"),
    "Was galt vor Weihnachten?": (None, "2025-12-24"),
    "Was gilt seit Montag?": ("2026-11-23", None),
    "Wo waren wir letzten Sommer?": ("2026-06-01", "2026-09-01"),
    "Wo waren wir vorletzten Sommer?": ("2025-06-01", "2025-09-01"),
    "Wo waren wir vor zwei Sommern?": ("2025-06-01", "2025-09-01"),
    "Was war zwischen Mai und Juli?": ("2026-05-01", "2026-08-01"),
    "Was war zwei Wochen vor Ostern?": ("2026-03-16", "2026-03-23"),
}

SPANISH = {
    "¿Qué decidimos ayer?": ("2026-11-25", "2026-11-26"),
    "¿Quién llamó anteayer?": ("2026-11-24", "2026-11-25"),
    "¿Qué hice la semana pasada?": ("2026-11-16", "2026-11-23"),
    "¿Qué hay este mes?": ("2026-11-01", "2026-12-01"),
    "¿Dónde estuve el año pasado?": ("2025-01-01", "2026-01-01"),
    "¿Qué dijo hace tres semanas?": ("2026-11-02", "2026-11-09"),
    "¿Qué pasó en los últimos diez días?": ("2026-11-16", "2026-11-27"),
    "¿Qué compramos en marzo de 2023?": ("2023-03-01", "2023-04-01"),
    "¿Quién vino el 5 de marzo?": ("2026-03-05", "2026-03-06"),
    "¿Quién vino el lunes?": ("2026-11-23", "2026-11-24"),
    "¿Qué acordamos antes de Navidad?": (None, "2025-12-24"),
    "¿Qué ha cambiado desde octubre?": ("2026-10-01", None),
    "¿Adónde fuimos el verano pasado?": ("2026-06-01", "2026-09-01"),
    "¿Adónde fuimos hace dos veranos?": ("2025-06-01", "2025-09-01"),
}

FRENCH = {
    "Qu'avons-nous décidé hier soir ?": ("2026-11-25", "2026-11-26"),
    "Qui a appelé avant-hier ?": ("2026-11-24", "2026-11-25"),
    "Qu'ai-je fait la semaine dernière ?": ("2026-11-16", "2026-11-23"),
    "Qu'y a-t-il ce mois-ci ?": ("2026-11-01", "2026-12-01"),
    "Où étais-je l'an dernier ?": ("2025-01-01", "2026-01-01"),
    "Qu'a-t-elle dit il y a trois semaines ?": ("2026-11-02", "2026-11-09"),
    "Qu'est-ce qui a changé ces trois dernières semaines ?": ("2026-11-05", "2026-11-27"),
    "Qu'a-t-on acheté en août 2023 ?": ("2023-08-01", "2023-09-01"),
    "Qui est venu le 5 mars ?": ("2026-03-05", "2026-03-06"),
    "Qui est venu lundi dernier ?": ("2026-11-23", "2026-11-24"),
    "Qu'a-t-on convenu avant Noël ?": (None, "2025-12-24"),
    "Qu'est-ce qui a changé depuis octobre ?": ("2026-10-01", None),
    "Où étions-nous l’été dernier ?": ("2026-06-01", "2026-09-01"),
    "Où étions-nous il y a deux étés ?": ("2025-06-01", "2025-09-01"),
}

NO_PERIOD = [
    "Who leads the team?",
    "May I march to the sun?",
    "What has changed since the release?",
    "How long may a request take in 3 weeks?",
    "On which days does the on-call phone change hands?",
    "Which library speaks Api-Version 2023-02-14 of the store?",
    "What is the last day of the trip?",
    "Wer leitet den Einkauf?",
    "¿Quién dirige el equipo?",
    "Qui a été là ?",
    "",
]

EXPRESSIONS = {**ENGLISH, **GERMAN, **SPANISH, **FRENCH}


def bounds(question: str, now: datetime = NOW) -> tuple[str | None, ...]:
    """Return the start and the end of the only period of a question, as days where they are midnights."""
    (period,) = periods_of(question, now)
    times = [
        None if at is None else at.replace(tzinfo=None).isoformat(timespec="minutes")
        for at in (period.start, period.end)
    ]
    return tuple(at and at.removesuffix("T00:00") for at in times)


@pytest.mark.parametrize("question", EXPRESSIONS)
def test_a_question_names_its_period(question: str) -> None:
    assert bounds(question) == EXPRESSIONS[question]


@pytest.mark.parametrize("question", NO_PERIOD)
def test_a_question_without_a_period_names_none(question: str) -> None:
    assert periods_of(question, NOW) == ()


@pytest.mark.parametrize(
    ("question", "now", "expected"),
    [
        ("last week", "2026-11-23", ("2026-11-16", "2026-11-23")),  # a Monday: the week before begins 7 days earlier
        ("last week", "2026-11-22", ("2026-11-09", "2026-11-16")),  # a Sunday is still in the week of its Monday
        ("last weekend", "2026-11-22", ("2026-11-14", "2026-11-16")),
        ("last Monday", "2026-11-23", ("2026-11-16", "2026-11-17")),
        ("last month", "2026-03-31", ("2026-02-01", "2026-03-01")),
        ("in the past month", "2026-03-31", ("2026-02-28", "2026-04-01")),  # February has no 31st
        ("last month", "2026-01-01", ("2025-12-01", "2026-01-01")),
        ("yesterday", "2026-01-01", ("2025-12-31", "2026-01-01")),
        ("yesterday", "2024-03-01", ("2024-02-29", "2024-03-01")),
        ("a year ago", "2024-02-29", ("2023-01-01", "2024-01-01")),
        ("in the past two years", "2024-02-29", ("2022-02-28", "2024-03-01")),
        ("on February 29", "2026-11-26", ("2024-02-29", "2024-03-01")),  # the last year that has one
        ("on the 31st", "2026-03-01", ("2026-01-31", "2026-02-01")),
        ("in March", "2026-03-01", ("2026-03-01", "2026-04-01")),
        ("last March", "2026-03-31", ("2025-03-01", "2025-04-01")),  # this one is not over
        ("this winter", "2026-01-15", ("2025-12-01", "2026-03-01")),
        ("before Easter", "2024-05-01", (None, "2024-03-29")),
        ("on New Year's Eve", "2026-01-01", ("2025-12-31", "2026-01-01")),
    ],
)
def test_months_years_and_weeks_end_where_the_calendar_says(question: str, now: str, expected: tuple[str, str]) -> None:
    assert bounds(question, datetime.fromisoformat(now)) == expected


@pytest.mark.parametrize(
    ("zone", "now", "hours", "start"),
    [
        ("Europe/Berlin", "2026-03-30T09:00", 23, "2026-03-28T23:00"),  # the clock goes forward on 29 March
        ("Europe/Berlin", "2026-10-26T09:00", 25, "2026-10-24T22:00"),  # and back on 25 October
        ("America/New_York", "2026-11-02T00:30", 25, "2026-11-01T04:00"),
        ("UTC", "2026-03-30T09:00", 24, "2026-03-29T00:00"),
    ],
)
def test_a_day_begins_and_ends_at_midnight_in_the_zone_of_the_question(
    zone: str, now: str, hours: int, start: str
) -> None:
    (period,) = periods_of("yesterday", datetime.fromisoformat(now).replace(tzinfo=ZoneInfo(zone)))
    first, past = period.bounds
    assert (past - first) / 3600 == hours
    assert datetime.fromtimestamp(first, UTC).isoformat()[:16] == start


def test_of_several_periods_each_is_named_in_the_order_of_the_question() -> None:
    said = [str(one) for one in periods_of("Was it in May, or in June 2024?", NOW)]
    assert said == [
        '"May" (from 2026-05-01 to before 2026-06-01)',
        '"June 2024" (from 2024-06-01 to before 2024-07-01)',
    ]
    assert [str(one) for one in periods_of("since Monday or before 2025", NOW)] == [
        '"since Monday" (from 2026-11-23)',
        '"before 2025" (to before 2025-01-01)',
    ]


ENDS = [
    ("since Christmas", datetime.max, []),
    ("after Easter", datetime.max, []),
    ("on the 31st", datetime.max, []),
    ("3 hours ago", datetime.min, []),
    ("on Monday", datetime.min, ["Monday"]),
    ("3 hours ago", datetime.max, ["3 hours ago"]),
    ("last year", datetime.min, []),
    ("last week", datetime(1, 1, 8), ["last week"]),
]


@pytest.mark.parametrize(("question", "now", "words"), ENDS)
def test_at_the_ends_of_the_calendar_a_question_names_what_lies_in_it(
    question: str, now: datetime, words: list[str]
) -> None:
    found = periods_of(f"What was it {question}?", now)
    assert [one.words for one in found] == words
    assert all(start < end for start, end in (one.bounds for one in found))


@given(st.text(max_size=80), st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)))
def test_any_text_at_any_time_has_an_answer(text: str, now: datetime) -> None:
    for period in periods_of(text, now):
        assert period.words in text


@given(st.sampled_from(sorted(EXPRESSIONS)), st.datetimes(datetime(1980, 1, 1), datetime(2200, 1, 1)))
def test_a_period_ends_after_it_has_begun(question: str, now: datetime) -> None:
    for period in periods_of(question, now):
        assert period.start is None or period.end is None or period.start < period.end


@given(st.datetimes(datetime(1980, 1, 1), datetime(2200, 1, 1)), st.integers(0, 100))
def test_the_weeks_and_months_ago_follow_each_other_without_a_gap(now: datetime, number: int) -> None:
    for unit in ("days", "weeks", "months", "quarters", "years"):
        (earlier,), (later,) = (periods_of(f"{n} {unit} ago", now) for n in (number + 1, number))
        assert earlier.end == later.start
    (today,) = periods_of("0 days ago", now)
    assert today.start is not None
    assert today.start <= now < today.start + timedelta(days=1)


@given(st.lists(st.sampled_from(sorted(EXPRESSIONS)), max_size=4).map(" ".join))
def test_periods_do_not_overlap_in_the_question(question: str) -> None:
    at = 0
    for period in periods_of(question, NOW):
        at = question.index(period.words, at) + len(period.words)


def test_each_language_has_a_table_of_its_own() -> None:
    assert LANGUAGES == ("english", "german", "spanish", "french")
    assert len(EXPRESSIONS) >= 60
