"""Known answers for the statistics: by hand, and in simulation with a planted effect."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.statistics.significance import (
    Paired,
    corrected,
    enough,
    family,
    flip_interval,
    holm,
    minimum_detectable,
    paired,
    permutation_p,
    questions_needed,
)
from eval.statistics.verdict import Standing, judge


def test_the_difference_and_its_wins_ties_and_losses() -> None:
    at = paired([0, 0.5, 1, 1], [1, 0.5, 1, 0.5])
    # differences 1, 0, 0, -0.5: mean .125
    assert (at.n, at.base, at.mean, at.delta) == (4, 0.625, 0.75, 0.125)
    assert (at.won, at.tied, at.lost) == (1, 2, 1)


def test_values_that_differ_by_rounding_only_are_tied() -> None:
    at = paired([0.1 + 0.2] * 8, [0.3] * 8)
    assert (at.tied, at.delta, at.p) == (8, 0.0, 1.0)


def test_an_interval_without_width_is_none() -> None:
    at = paired([0.5] * 40, [0.5] * 40)
    # nobody differs; rule of three: sqrt(3/40) = .27386; 39 degrees of freedom: 2.93572 * that / sqrt(40)
    assert (at.delta, at.low, at.high, at.p) == (0.0, None, None, 1.0)
    assert at.mde == pytest.approx(0.127121, abs=1e-5)
    same = paired([0.25] * 40, [0.5] * 40)
    assert (same.delta, same.low, same.high) == (0.25, None, None)


def test_below_eight_units_there_is_neither_interval_nor_p_value_and_below_twenty_the_interval_is_approximate() -> None:
    seven, eight = paired([0.0] * 7, [1.0] * 7), paired([0.0] * 8, [1.0] * 7 + [0.5])
    assert (seven.low, seven.high, seven.p, seven.p_holm, seven.mde) == (None, None, None, None, None)
    assert (seven.delta, seven.units, seven.each, seven.tested) == (1.0, 7, (1.0,) * 7, False)
    # of 2^8 arrangements of signs two are as extreme
    assert eight.p == 2 / 256
    assert (eight.tested, eight.approximate) == (True, True)
    assert not paired([0.0] * 20, [1.0] * 20).approximate


def test_the_interval_of_eight_units_by_hand() -> None:
    # p < .05 takes at most 6 of 256 arrangements a side: the observed one and the flips of 5 subsets, so each end is
    # the sixth of the means of subsets in order. From below: 0, 1, .5 (of 0 and 1), 2, 1 (0 and 2), 1 (0, 1 and 2),
    # 1.5 (1 and 2), 3, 1.5 (0 and 3)...: in order 0, .5, 1, 1, 1, 4/3 (0, 1, 3); by symmetry 7 - 4/3 from above.
    at = paired([0.0] * 8, [0, 1, 2, 3, 4, 5, 6, 7])
    assert (at.low, at.high) == (pytest.approx(4 / 3), pytest.approx(7 - 4 / 3))


def test_the_interval_is_what_the_test_does_not_reject() -> None:
    rng = np.random.default_rng(6)
    sizes = rng.integers(1, 6, 12).astype(float)
    sums = sizes * rng.choice([-0.5, 0.0, 0.25, 0.5, 1.0], 12)
    low, high = flip_interval(sums, sizes)
    assert permutation_p(sums - sizes * (low - 1e-6)) < 0.05 <= permutation_p(sums - sizes * (low + 1e-6))
    assert permutation_p(sums - sizes * (high + 1e-6)) < 0.05 <= permutation_p(sums - sizes * (high - 1e-6))


def test_the_p_value_is_that_of_scipy() -> None:
    rng = np.random.default_rng(7)
    for units in (8, 12, 40):
        sums = rng.integers(1, 5, units) * rng.choice([-0.5, 0.0, 0.25, 1.0], units)
        theirs = scipy.stats.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=20_000, rng=1)
        assert permutation_p(sums, samples=20_000) == pytest.approx(theirs.pvalue, abs=0 if units < 14 else 0.01)


def test_the_p_value_is_that_of_the_wild_cluster_bootstrap() -> None:
    # wildboottest 0.3.2, bootstrap 11, null imposed, Rademacher weights, all 256 of them (adr/0060)
    rng = np.random.default_rng(1)
    sizes = np.full(8, 4)
    values = np.repeat(rng.normal(0.12, 0.2, 8), sizes) + rng.normal(0, 0.2, 32)
    labels = list(np.repeat(np.arange(8), sizes))
    assert paired(np.zeros(32), values, clusters=labels).p == 0.015625


def test_the_questions_of_one_conversation_are_drawn_together() -> None:
    rng = np.random.default_rng(2)
    base = np.zeros(400)
    each = np.repeat(rng.choice([-0.5, 0.5], 8), 50)  # what one question of a conversation gains, all of them gain
    labels = [f"c{i}" for i in range(8) for _ in range(50)]
    alone, together = paired(base, each), paired(base, each, clusters=labels)
    assert (alone.units, together.units) == (400, 8)
    assert alone.low is not None
    assert together.low is not None
    # eight draws, not four hundred: the interval is about sqrt(50) = 7.07 times as wide
    width = (together.high - together.low) / (alone.high - alone.low)  # type: ignore[operator]
    assert 5.5 < width < 10
    # and the factor of 7 degrees of freedom is 3.69346, that of 399 is 2.81427
    wider = math.sqrt(50 * 399 / 400 * 8 / 7) * 3.69346 / 2.81427
    assert together.mde / alone.mde == pytest.approx(wider, rel=1e-4)  # type: ignore[operator]
    assert together.p > 5 * alone.p  # type: ignore[operator]


def test_clusters_of_one_question_each_change_nothing() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random(30), rng.random(30)
    assert paired(a, b, clusters=list(range(30)), seed=3) == paired(a, b, seed=3)


def test_a_cluster_counts_by_its_questions_and_not_as_one_of_them() -> None:
    # two clusters of 1 and 3 questions: the mean is over four questions, (1 + 0 + 0 + 0) / 4
    at = paired([0, 0, 0, 0], [1, 0, 0, 0], clusters=["a", "b", "b", "b"])
    assert (at.delta, at.each) == (0.25, (1.0, 0.0))
    with pytest.raises(ValueError, match="one label a question: 1 labels, 2 questions"):
        paired([0, 0], [1, 1], clusters=["a"])


def test_holm_leaves_out_what_was_not_tested() -> None:
    few, many = paired([0.0] * 3, [1.0] * 3), paired([0.0] * 9, [1.0] * 8 + [0.5])
    adjusted = corrected({"few": few, "many": many})
    assert adjusted["few"].p_holm is None
    assert adjusted["many"].p_holm == many.p  # one test, so nothing to correct for


def test_draws_are_enough_for_the_least_p_of_a_large_family() -> None:
    assert (enough(1), enough(200), enough(800)) == (10_000, 10_000, 40_000)
    assert 800 / (enough(800) + 1) < 0.05


def test_the_effect_that_a_family_could_have_shown_is_larger_than_that_of_one_test() -> None:
    rng = np.random.default_rng(5)
    base = rng.random(60)
    others = {name: base + rng.choice([-0.5, 0.0, 0.5], 60) for name in "abcd"}
    one, of_four = paired(base, others["a"]), family(base, others)["a"]
    # the factors of 59 degrees of freedom at .05/4 and at .05
    assert of_four.mde / one.mde == pytest.approx(3.48633 / 2.88914, rel=1e-4)  # type: ignore[operator]


def test_p_is_never_zero() -> None:
    assert permutation_p(np.ones(64), samples=99) == 1 / 100


def test_holm_by_hand() -> None:
    # sorted .005 .01 .03 .04; times 4 3 2 1 = .02 .03 .06 .04, then never falling: .02 .03 .06 .06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_permutation_p_of_six_wins_in_a_row() -> None:
    # 2 of the 2^6 = 64 sign patterns are as extreme: .03125, within sampling error of 10,000 draws
    assert permutation_p(np.ones(6)) == pytest.approx(2 / 64, abs=0.006)


def test_the_permutation_p_agrees_with_enumerating_every_sign_pattern() -> None:
    difference = np.array([0.5, 0.5, -0.25, 1.0, 0.0, 0.2, -0.1, 0.3])
    sums = [
        abs(sum(s * d for s, d in zip(signs, difference, strict=True)))
        for signs in itertools.product((1, -1), repeat=8)
    ]
    exact = sum(s >= abs(difference.sum()) - 1e-9 for s in sums) / len(sums)
    assert permutation_p(difference, samples=20_000) == pytest.approx(exact, abs=0.012)


def test_the_interval_of_coin_flips_is_the_binomial_one() -> None:
    # 100 questions, 30 won by 1, 70 tied: sd = sqrt(.3 * .7 / 100) = .0458, so .3 -+ 1.96 * .0458 = .210 ... .390
    at = paired(np.zeros(100), np.repeat([1.0, 0.0], [30, 70]))
    assert at.low == pytest.approx(0.21, abs=0.011)
    assert at.high == pytest.approx(0.39, abs=0.011)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random(40), rng.random(40)
    assert paired(a, b, seed=5) == paired(a, b, seed=5)
    assert paired(a, b, seed=5).low != paired(a, b, seed=6).low


def test_the_minimum_detectable_effect_by_hand() -> None:
    # 50 differences of +1 and 50 of -1: s = sqrt(100/99) = 1.00504; the factor of 99 degrees 2.85326; * s / 10
    assert minimum_detectable(np.repeat([1.0, -1.0], 50)) == pytest.approx(0.286763, abs=1e-5)


def test_the_spread_is_around_the_mean_and_not_around_zero() -> None:
    # half gain 1, half nothing: mean .5, s = sqrt(100 * .25 / 99) = .502519; 2.85326 * s / 10 = .143382
    assert minimum_detectable(np.repeat([1.0, 0.0], 50)) == pytest.approx(0.143382, abs=1e-5)


def test_no_difference_at_all_is_not_infinite_precision() -> None:
    # rule of three: s <= sqrt(3/100) = .173205; 2.85326 * .0173205 = .049420
    assert minimum_detectable(np.zeros(100)) == pytest.approx(0.049420, abs=1e-5)


def test_what_the_least_p_of_few_units_cannot_reach_is_not_detectable() -> None:
    difference = np.array([1.0, 0.5] * 4)
    assert minimum_detectable(difference) is not None  # the least p of 8 units is 2/256 = .0078
    assert minimum_detectable(difference, alpha=0.05 / 7) is None  # .0071
    at = paired(np.zeros(8), difference, alpha=0.05 / 7)
    assert (at.mde, at.p) == (None, 2 / 256)


def test_an_effect_above_one_is_not_detectable_since_no_measure_can_differ_by_more() -> None:
    # fifteen clusters, one of which has 79 of 93 questions: 1.06 degrees of freedom, a factor of 30 standard errors
    base, clusters = np.full(93, 0.5), [0] * 79 + list(range(1, 15))
    other = base + np.where(np.arange(93) < 79, 0.1, -0.5)
    at = paired(base, other, clusters=clusters)
    assert (at.units, at.mde) == (15, None)
    assert minimum_detectable(other - base, clusters=clusters, most=np.inf) > 1  # type: ignore[operator]
    verdict = judge(Standing(10), at, metric="R@10")
    assert verdict.kind == "described only"
    assert "needed" not in verdict.sentence


def test_four_times_the_questions_a_little_more_than_halve_what_can_be_seen() -> None:
    difference = np.repeat([1.0, -1.0], 50)
    now = minimum_detectable(difference)
    # s = 1.00504, the effect .143382; the factor of 389 degrees is 2.81461: (2.81461 s / .143382)^2 = 389.2
    assert questions_needed(difference, now / 2) == 390  # type: ignore[operator]
    assert questions_needed(difference, 5) == 8  # never fewer than an interval needs
    with pytest.raises(ValueError, match="above 0"):
        questions_needed(difference, 0)


def test_unpaired_lengths_and_no_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="one value a question"):
        paired([1, 2], [1])
    with pytest.raises(ValueError, match="no question"):
        paired([], [])


VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=30)


@settings(max_examples=40, deadline=None)
@given(VALUES, st.randoms(use_true_random=False))
def test_swapping_the_conditions_turns_the_sign_and_nothing_else(base: list[float], random: object) -> None:
    other = list(base)
    random.shuffle(other)  # type: ignore[attr-defined]
    forth, back = paired(base, other, samples=500), paired(other, base, samples=500)
    assert forth.delta == pytest.approx(-back.delta)
    assert (forth.won, forth.tied, forth.lost) == (back.lost, back.tied, back.won)
    assert forth.p == back.p
    assert forth.mde == (None if back.mde is None else pytest.approx(back.mde))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), st.integers(1, 9)), min_size=8, max_size=20))
def test_an_interval_ends_within_the_measure_since_no_end_lies_beyond_the_mean_of_every_cluster(
    clusters: list[tuple[float, int]],
) -> None:
    means, sizes = (np.array(numbers, dtype=float) for numbers in zip(*clusters, strict=True))
    low, high = flip_interval(means * sizes, sizes, samples=500)
    assert means.min() - 1e-12 <= low <= high <= means.max() + 1e-12


@given(st.lists(st.floats(0.0001, 1.0), min_size=1, max_size=12))
def test_a_corrected_p_is_never_below_the_raw_one_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(c >= p for c, p in zip(adjusted, p_values, strict=True))
    by_raw = [c for _, c in sorted(zip(p_values, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)


# --- simulation: what the numbers promise is what happens ------------------------------------------------------------


def questions(rng: np.random.Generator, n: int, gain: float, churn: float) -> tuple[np.ndarray, np.ndarray]:
    """Return base and condition: per question the condition gains .5 with ``churn + gain``, loses it with ``churn``.

    The true mean difference is .5 * gain.
    """
    draw = rng.random(n)
    step = np.where(draw < churn + gain, 0.5, np.where(draw > 1 - churn, -0.5, 0.0))
    base = np.full(n, 0.5)
    return base, base + step


def test_a_planted_effect_of_the_detectable_size_is_found_at_the_stated_power() -> None:
    # variance of a step = .25 (gain + 2 churn) - (.5 gain)^2; the effect .5 gain sought is 2.80158 sqrt(variance / n)
    n, churn = 200, 0.1
    gain = 0.0
    for _ in range(50):  # fixed point: the spread depends a little on the effect
        gain = 2 * 2.80158 * math.sqrt((0.25 * (gain + 2 * churn) - (0.5 * gain) ** 2) / n)
    rng = np.random.default_rng(11)
    runs = 400
    significant = sum(paired(*questions(rng, n, gain, churn), samples=400, seed=i).p < 0.05 for i in range(runs))
    # 80 % of 400 is 320, standard error 8; the discrete test is a little conservative.
    assert 0.74 <= significant / runs <= 0.86


def test_an_effect_half_that_size_is_mostly_missed() -> None:
    rng = np.random.default_rng(12)
    significant = sum(paired(*questions(rng, 200, 0.055, 0.1), samples=300, seed=i).p < 0.05 for i in range(200))
    assert 0.1 <= significant / 200 <= 0.5


@pytest.mark.slow
def test_false_positives_stay_under_five_percent_after_holm() -> None:
    rng = np.random.default_rng(13)
    runs, wrong = 400, 0
    for i in range(runs):
        base = rng.random(80).round(1)
        others = {}
        for name in "abcde":
            step = np.where(rng.random(80) < 0.3, rng.choice([-0.5, 0.5], 80), 0.0)
            others[name] = base + step
        compared = family(base, others, samples=400, seed=i)
        wrong += any(at.p_holm < 0.05 for at in compared.values())
    # Under the null Holm bounds the chance of any false positive by .05: 20 of 400, standard error 4.4.
    assert wrong / runs < 0.05


def test_the_interval_covers_the_true_difference_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(14)
    runs, covered = 300, 0
    for i in range(runs):
        at: Paired = paired(*questions(rng, 150, 0.1, 0.1), samples=500, seed=i)
        covered += at.low <= 0.05 <= at.high
    assert 0.90 <= covered / runs <= 0.99
