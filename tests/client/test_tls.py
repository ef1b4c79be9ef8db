"""Which certificates a client accepts, and the sentence where a connection by TLS does not come about."""

from __future__ import annotations

import ssl

import pytest

from semmem.client.http_transport import _accepted, _without_tls


def test_certificates_are_read_for_https_and_not_for_plain_http() -> None:
    assert _accepted("http").cert_store_stats()["x509_ca"] == 0
    assert _accepted("https").cert_store_stats()["x509_ca"] > 0
    assert _accepted("https").verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)",
            "The certificate of https://a is not accepted (self-signed certificate); if it is yours, let SSL_CERT_FILE "
            "name the file of the authority that signed it.",
        ),
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)",
            "The certificate of https://a is not accepted (certificate has expired); it has to be put right there.",
        ),
        (
            "[SSL: TLSV1_ALERT_INTERNAL_ERROR] tlsv1 alert internal error (_ssl.c:1006)",
            "No TLS connection with https://a comes about (tlsv1 alert internal error); look at the server, or the "
            "proxy before it.",
        ),
    ],
)
def test_a_connection_that_openssl_refuses_is_told_in_its_words_without_the_line_of_its_code(
    told: str, sentence: str
) -> None:
    assert _without_tls("https://a", told) == sentence
