"""semel doctor: what is wrong and what to do, of a daemon that is well, of one that is not, and of none."""

import json
import os

import pytest

from semel_process import Postgres, run_cli, until

# What only the machine decides (a disk in memory, a test server that does not wait for its disk) is no promise of these tests.
MACHINE = {"durability", "disk", "clock"}


def examine(daemon, *words):
    done = run_cli("doctor", "--url", f"http://127.0.0.1:{daemon.port}", "--json", *words)
    assert done.returncode in (0, 1), done
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["problems"] else 0), done
    assert report["problems"] == sum(finding["grade"] == "problem" for finding in report["findings"])
    assert all(finding["fix"] for finding in report["findings"] if finding["grade"] == "problem")
    return report["findings"]


def told(findings, check, grade):
    return [finding["text"] for finding in findings if (finding["check"], finding["grade"]) == (check, grade)]


def test_a_house_that_is_well(house, storage):
    daemon = house.start(storage, policy="owner: dana\n")
    findings = examine(daemon)
    assert [finding for finding in findings if finding["grade"] != "ok" and finding["check"] not in MACHINE] == []
    assert {finding["check"] for finding in findings} >= {
        "database", "durability", "clock", "schema", "quarantine", "policy", "sources", "destinations", "secrets", "access",
        "effects", "exceptions", "unknown", "events", "keys",
    }
    if storage == "postgres":
        return  # it has no directory
    assert told(examine(daemon, "--data", str(daemon.data)), "data", "ok")
    os.chmod(daemon.data, 0o755)
    assert "mode 755" in told(examine(daemon, "--data", str(daemon.data)), "data", "warning")[0]


def test_what_is_wrong_is_said_with_what_to_do(house, storage, server, monkeypatch):
    monkeypatch.delenv("DOCTOR_HAS_NONE", raising=False)
    agent = {"provider": "http", "url": "https://agent.example", "secret": "env:DOCTOR_HAS_NONE"}
    policy = {"destinations": {"agent": agent}, "sources": {"form": {"preset": "json", "verify": "none"}, "tf": {"preset": "typeform", "secret": "env:DOCTOR_HAS_NONE", "window": "1h"}}}
    daemon = house.start(storage, policy=json.dumps(policy))
    client = house.client(daemon)
    assert client.post("/v1/sources/form/mute", {"for_ms": 3_600_000, "note": "too loud"}).status == 200
    held = client.claim("mail", "Ada@example.com")
    assert client.claim("mail", "ada@example.com ").status == 201 and client.say("fail", held, effect="unknown", error="?").status == 200
    (card,) = client.get("/v1/exceptions").json["data"]
    assert client.post(f"/v1/exceptions/{card['exception']}/assign", {"due": "2026-01-01T00:00:00Z"}).status == 200
    findings = examine(daemon)
    assert any("no owner" in text for text in told(findings, "policy", "warning"))
    assert any("'tf' has no secret" in text for text in told(findings, "sources", "problem"))
    assert any("/in/form" in text for text in told(findings, "sources", "warning"))
    assert any("shorter than twice" in text for text in told(findings, "sources", "warning"))
    assert any("'agent' cannot be called" in text for text in told(findings, "destinations", "problem"))
    assert told(findings, "events", "warning")[0].startswith("Source 'form' is muted by local until")
    assert told(findings, "exceptions", "problem") == ["1 exception is overdue, of 1 that are open."]
    assert any("'mail'" in text for text in told(findings, "keys", "problem"))
    shown = run_cli("doctor", "--url", f"http://127.0.0.1:{daemon.port}")
    assert shown.returncode == 1
    lines = shown.stdout.splitlines()
    assert lines.index("problems") < lines.index("warnings") < lines.index("ok") and "-> Decide about them: semel exceptions ls" in shown.stdout


def test_effects_that_are_stranded(house, storage):
    daemon = house.start(storage, policy=json.dumps({"owner": "dana", "destinations": {"crm": {"provider": "http", "url": "https://crm.example", "allow_private": True}}}))
    client = house.client(daemon)
    assert client.post("/v1/effects", {"destination": "crm", "key": "k", "payload": {}, "delay_ms": 3_600_000}).status == 202
    assert told(examine(daemon), "effects", "ok")
    assert client.policy("owner: dana").status == 200
    assert told(examine(daemon), "effects", "problem") == ["1 effect waits for destination 'crm', which is not in the policy."]


def test_it_is_for_admins_and_says_when_nobody_answers(house, monkeypatch):
    daemon = house.start("sqlite", command="serve")
    admin = (daemon.data / "admin.token").read_text().strip()
    client = house.client(daemon, token=admin)
    reader = client.post("/v1/tokens", {"name": "reader", "scopes": ["read"]}).json["token"]
    assert told(examine(daemon, "--data", str(daemon.data)), "database", "ok")
    monkeypatch.setenv("SEMEL_TOKEN", reader)
    assert run_cli("doctor", "--url", f"http://127.0.0.1:{daemon.port}").returncode == 77
    monkeypatch.setenv("SEMEL_TOKEN", admin)
    assert told(examine(daemon), "database", "ok")
    daemon.stop()
    assert "nothing answers" in told(examine(daemon), "daemon", "problem")[0]


@pytest.fixture
def own_postgres():
    cluster = Postgres()
    if cluster.bin is None:
        pytest.skip("PostgreSQL is not installed")
    cluster.create()
    yield cluster
    cluster.remove()


def test_a_database_that_does_not_answer_is_a_finding(house, own_postgres):
    daemon = house.start("postgres", policy="owner: dana\n", db=own_postgres.database())
    findings = examine(daemon)
    assert told(findings, "database", "ok") and "fsync = off" in told(findings, "durability", "problem")[0]  # a server for tests is told so
    own_postgres.stop("immediate")
    found = until(lambda: told(examine(daemon), "database", "problem"), "a problem with the database")
    assert any("cannot be" in text for text in found)
