"""HTTPS with the user's own certificate."""

import ssl

import pytest

from http_client import raw


@pytest.fixture
def tls_daemon(house, certificate):
    return house.start("sqlite", options=["--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1])])


def trusting(certificate, **versions):
    context = ssl.create_default_context(cafile=str(certificate[0]))
    for name, version in versions.items():
        setattr(context, name, version)
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_claim_over_tls(house, tls_daemon, certificate, version):
    client = house.client(tls_daemon, tls=trusting(certificate, minimum_version=version, maximum_version=version))
    held = client.claim("w", f"k{version}")
    assert held.status == 201
    assert client.say("confirm", held, result="x" * 60_000).status == 200
    assert client.claim("w", f"k{version}").json["result"] == "x" * 60_000


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_tls_is_refused(tls_daemon, certificate):
    context = trusting(certificate)
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        raw(tls_daemon.port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", tls=context)


def test_plain_http_and_rubbish_on_the_tls_port_do_no_harm(house, tls_daemon, certificate):
    for data in (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", bytes(1000), b"\x16\x03\x01\x40\x00" + bytes(100)):
        try:
            raw(tls_daemon.port, data)
        except (AssertionError, ConnectionError):
            pass  # what comes back is a TLS alert, not HTTP
    assert house.client(tls_daemon, tls=trusting(certificate)).get("/healthz").status == 200


def test_greeting_says_https(tls_daemon):
    assert f"https://127.0.0.1:{tls_daemon.port}/v1" in tls_daemon.said()


def test_certificate_and_key_go_together(house, certificate):
    other = house.make("sqlite", options=["--tls-cert", str(certificate[0])])
    other.launch()
    assert other.process.wait(timeout=120) == 64 and "--tls-key" in other.said()


def test_bad_certificate_is_refused_with_its_name(house, certificate, tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("no certificate")
    for cert, key in ((bad, certificate[1]), (certificate[0], bad), (tmp_path / "none", certificate[1])):
        other = house.make("sqlite", options=["--tls-cert", str(cert), "--tls-key", str(key)])
        other.launch()
        assert other.process.wait(timeout=120) != 0
        assert str(cert if cert is not certificate[0] else key) in other.said()
