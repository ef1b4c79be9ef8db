"""Whom "I" means, when a text is compared with the texts of others."""

from __future__ import annotations

from semmem.concepts.likeness import changed, claim_keys, outlines


def test_what_somebody_says_of_himself_meets_what_others_say_of_him_by_name() -> None:
    of_himself, by_name = claim_keys("I live in Oslo.", "Ana"), claim_keys("Ana lives in Rome.", "Ben")
    of_another = claim_keys("I live in Rome.", "Ben")
    # the verb is a key of each of these short sentences; "ana", and "ana" with the verb, are keys of the first two
    assert len({*of_himself} & {*by_name}) == 3
    assert len({*of_himself} & {*of_another}) == 1
    change = changed(
        outlines("I live in Oslo.", "Ana"),
        outlines("Ana lives in Rome.", "Ben"),
        older_author="Ana",
        newer_author="Ben",
    )
    assert change is not None
    assert (change.old, change.new) == ("oslo", "rome")
