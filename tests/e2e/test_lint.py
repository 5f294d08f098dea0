"""The linter on live traffic: keys that came over HTTP, and what the ledger remembers of them."""

import json
import random
import uuid

from semel_process import run_cli, until


DICE = random.Random(7)  # the same ids in every run: what a linter says of them must not be a matter of luck


def random_id():
    return str(uuid.UUID(int=DICE.getrandbits(128), version=4))


def lint(client, workflow, **query):
    answer = client.get(f"/v1/workflows/{workflow}/lint" + "".join(f"?{name}={value}" for name, value in query.items()))
    assert answer.status == 200, answer
    return answer.json


def codes(report, problem=True):
    return [finding["code"] for finding in report["findings"] if finding["problem"] == problem]


def test_random_keys_are_found_and_the_fix_would_have_caught_them(client):
    for lead in range(6):
        for attempt in range(2):
            given = {"lead_id": lead, "template": "intro", "request_id": random_id()}
            held = client.claim("followup", random_id(), input=given)
            assert held.status == 201 and client.say("confirm", held, result=1).status == 200
    report = lint(client, "followup")
    assert codes(report) == ["never_repeats", "random"] and report["sampled"] == report["with_input"] == 12 and report["complete"]
    assert report["proposal"] == {"key": "followup:{lead_id}:{template}", "ignore": ["request_id"], "caught": 6, "later": 0, "wrong": 0}
    assert all(finding["text"] and finding["fix"] for finding in report["findings"])
    # What is proposed is a policy that does it: the same traffic again, without keys, is twelve claims and six intents.
    assert client.policy('workflows: {again: {key: "followup:{lead_id}:{template}", ignore: [request_id]}}').status == 200
    answers = [client.claim("again", None, input={"lead_id": lead, "template": "intro", "request_id": random_id()})
               for lead in range(6) for attempt in range(2)]
    assert [answer.status for answer in answers] == [201, 409] * 6
    assert lint(client, "again")["findings"] == []


def test_a_key_that_is_too_broad_names_the_fields(client):
    for lead in range(6):
        held = client.claim("mail", f"lead_{lead}", input={"lead_id": lead, "template": "intro"})
        client.say("confirm", held, result=1)
        assert client.claim("mail", f"lead_{lead}", input={"lead_id": lead, "template": "second"}).code == "key_reused"
    until(lambda: [finding["count"] for finding in lint(client, "mail")["findings"]] == [6], "the count of refused claims")
    report = lint(client, "mail")
    assert codes(report) == ["too_broad"]
    assert report["findings"][0]["fields"] == ["template"] and report["findings"][0]["count"] == 6
    assert report["proposal"]["key"] == "mail:{lead_id}:{template}"


def test_spelling_and_no_input(client):
    for key in ("Ada@example.com", "ada@example.com "):
        client.claim("signup", key)
    report = lint(client, "signup", since="1h")
    assert codes(report) == ["near_equal"] and codes(report, problem=False) == ["no_input"]
    assert sorted(report["findings"][0]["examples"]) == ["Ada@example.com", "ada@example.com "]


def test_good_keys_and_other_workflows(client):
    for day in range(10, 20):
        client.claim("digest", f"digest:2026-11-{day}", input={"report": "daily"})
    assert lint(client, "digest")["findings"] == [] and lint(client, "digest")["proposal"] is None
    assert lint(client, "nothing")["sampled"] == 0
    assert client.get("/v1/workflows").json["data"] == [{"workflow": "digest", "intents": 10}]
    assert client.get("/v1/workflows/digest/lint?since=soon").status == 400
    assert client.get("/v1/workflows/digest/lint?sinse=1d").status == 400


def test_the_command(client, semel):
    for attempt in range(6):
        client.claim("job", random_id(), input={"order_id": attempt // 3})
    client.claim("fine", "order-1", input={"order_id": 1})
    words = ["keys", "lint", "--url", f"http://127.0.0.1:{semel.port}"]
    told = run_cli(*words)
    assert told.returncode == 65, told.stderr
    assert "fine: 1 keys, nothing to complain about" in told.stdout
    assert 'try      key: "job:{order_id}"' in told.stdout and "caught 4 duplicates" in told.stdout
    machine = run_cli(*words, "--json", "--workflow", "job")
    assert json.loads(machine.stdout)["proposal"]["caught"] == 4
    assert run_cli(*words, "--workflow", "fine").returncode == 0
