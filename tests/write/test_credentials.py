"""Credentials that are found in texts, and texts that look a little like them. None of these was ever valid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.write.screening import Credential, credentials, entropy, redacted

FOUND = [
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "private key"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
    ("key AKIA" + "Q7XZ2MPLW4T9RS5B" + " is ours", "aws access key"),
    ("use ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8" + ".", "github token"),
    ("glpat-" + "x9Yt3_Qw8rT5uI2oP4aS", "gitlab token"),
    ("sk-ant-" + "api03-x9Yt3Qw8rT5uI2oP4aSd", "anthropic key"),
    ("sk-proj-" + "x9Yt3Qw8rT5uI2oP4aSdx9Yt3Qw8rT5uI2", "openai key"),
    ("sk_live_" + "x9Yt3Qw8rT5uI2oP4aSd", "stripe key"),
    ("xoxb-" + "1234567890-abcdefghij", "slack token"),
    ("AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "google key"),
    ("hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345", "huggingface token"),
    ("npm_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "npm token"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhb", "json web token"),
    ("postgresql://ada:h3ron-blue@db.example.org/app", "password in url"),
    ("The wifi password is heron-blue-42.", "password"),
    ("password: Tr0ub4dor&3", "password"),
    ("DB_PASSWORD=hunter22", "password"),
    ("the api key for the gateway is 9f8e7d6c5b", "password"),
    ("my PIN is 4711", "password"),
    ("token xT9vLq2RmB7wZk4NpJ8sHc3Y is new", "random string"),
    ('{"password": "hunter22", "user": "ada"}', "password"),
    ("clientSecret=abc-12345", "password"),
    ("SECRET_KEY = 'h3ron-blue-and-more'", "password"),
    ("AWS_SECRET_ACCESS_KEY=" + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "password"),
    ("Server=x;User Id=sa;Password=Str0ng;Encrypt=yes", "password"),
    ('passphrase: "correct horse battery staple"', "password"),
    ("Das Passwort lautet h3ron-blau.", "password"),
    ("La contraseña es h3ron-azul.", "password"),
    ("Le mot de passe est h3ron-bleu.", "password"),
    ("redis://:h3ron-blue@cache:6379/0", "password in url"),
    ("postgresql://ada:h3r@n@db/app", "password in url"),
    ("Authorization: Bearer abcdefghij0123456789", "bearer token"),
    ("Authorization: Basic YWRhOmhlcm9u", "basic authorization"),
    ("mysql --password hunter22 -h db", "password option"),
    ("curl -u ada:hunter22 https://example.org", "password of curl"),
    ("glrt-" + "x9Yt3_Qw8rT5uI2oP4aS", "gitlab token"),
    ("xapp-" + "1-A012-345-abcdef", "slack token"),
    ("https://hooks.slack.com/services/" + "T00000000/B00000000/abcdefghijkl", "webhook"),
    ("whsec_" + "x9Yt3Qw8rT5uI2oP4aSd", "stripe key"),
    ("sk-svcacct-" + "x9Yt3Qw8rT5uI2oP4aSdx9Yt3Qw8rT5uI2", "openai key"),
    ("GOCSPX-" + "x9Yt3Qw8rT5uI2oP4aSd", "google key"),
    ("dop_v1_" + "0123456789abcdef0123456789abcdef", "service token"),
    ("semmem_0123abcd_" + "x9Yt3Qw8rT5uI2oP4aSdx9Yt3Qw8rT5uI2", "service token"),
    ("123456789:AA" + "abcdefghijklmnopqrstuvwxyz0123456", "telegram token"),
]  # fmt: skip

CLEAN = [
    "To add a secret: `sops secrets/prod.yaml`, then commit.",
    "The password of the office was changed yesterday.",
    "The password is on the note behind the radio.",
    "I forgot my password again.",
    "What is the secret of good bread? Time.",
    "The token is missing in the header.",
    "password: see the vault",
    "password=$DB_PASSWORD",
    "postgresql://ada:$PASSWORD@db.example.org/app",
    "postgresql://db.example.org:5432/app",
    "https://example.org/a/very/long/path/with-many-words/and-2026-numbers/InIt",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "id 01a2031b-2730-7df7-b5eb-ffc9e93b7491",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "test_the_storm_of_processes_and_kills_loses_nothing",
    "ThisIsALongCamelCaseClassNameFactoryBean2",
    "AbstractSingletonProxyFactoryBeanImplementation",
    "semmem/stores/postgres/connection.py",
    "the-quick-brown-fox-jumps-over-13-lazy-dogs",
    "Donaudampfschifffahrtsgesellschaftskapitän 1",
    "Call me at +49 40 1234567 or 555-0199.",
    "KES-926, INC-2026-0417 and RFC 9110",
    "token = get_token()",
    "password=settings.password",
    "connect(password: str | None = None, token: SecretStr)",
    "class PPDocLayoutV2MultiscaleDeformableAttention(Module)",
    "the bearer of this letter, and the bearer token in the header",
    "sk-a-very-long-name-of-a-class-in-a-stylesheet",
    "mysql --password prompt",
    "password: [removed]",
]


@pytest.mark.parametrize(("text", "kind"), FOUND)
def test_a_credential_is_found_with_its_kind(text: str, kind: str) -> None:
    assert [one.kind for one in credentials(text)] == [kind]


@pytest.mark.parametrize("text", CLEAN)
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert credentials(text) == []


def test_the_place_is_that_of_the_credential_and_no_two_overlap() -> None:
    text = "First ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8" + ", then the password: h3ron-blue."
    first, second = credentials(text)
    assert text[first.start : first.end].startswith("ghp_a1B2")
    assert second == Credential("password", text.index("h3ron"), text.index("h3ron") + len("h3ron-blue"))


def test_entropy_is_counted_in_bits_a_character() -> None:
    assert entropy("aaaa") == 0
    assert entropy("abcd") == 2  # four signs, each a quarter: log2(4)
    assert entropy("aab") == pytest.approx(0.9183, abs=1e-4)  # 2/3 log2(3/2) + 1/3 log2(3)


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    for one in credentials(text):
        assert 0 <= one.start < one.end <= len(text)


def test_a_private_key_ends_with_its_last_line_or_with_the_first_line_that_holds_a_blank() -> None:
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    assert redacted(f"{begin}\nMIIE\nabc=\n{end}\nThe rest.") == (f"{begin}…[removed]\nThe rest.", 1)
    long = "\n".join(["MIIE" * 16] * 200)  # an RSA key of 16,384 bits is about as long
    assert redacted(f"{begin}\n{long}\n{end}\nThe rest.") == (f"{begin}…[removed]\nThe rest.", 1)
    assert redacted(f"{begin}\nDEK-Info: AES\nMIIE\nThe rest is here.") == (f"{begin}…[removed]\nThe rest is here.", 1)


def test_of_a_url_the_password_alone_is_removed() -> None:
    url = "postgresql://ada:h3ron-blue@db.example.org/app"
    assert redacted(f"Open {url} now.") == ("Open postgresql://ada:[removed]@db.example.org/app now.", 1)


@given(st.lists(st.sampled_from([text for text, _ in FOUND] + CLEAN), max_size=4))
def test_what_is_redacted_twice_is_redacted_once(texts: list[str]) -> None:
    once, _ = redacted("\n".join(texts))
    assert redacted(once) == (once, 0)
