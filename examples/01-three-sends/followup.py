"""An agent's tool that sends a follow-up. It is called three times; then it fails after the send, and is called again."""

import json
import os
import urllib.request

from semel import current, once

WORLD = os.environ["WORLD_URL"]


answers_are_lost = False


class AnswerLost(Exception):
    """The provider got it, but we did not hear so."""


def send_mail(lead_id, template, key):
    body = json.dumps({"to": lead_id, "template": template}).encode()
    request = urllib.request.Request(f"{WORLD}/mail/{template}", body, {"Idempotency-Key": key}, method="POST")
    with urllib.request.urlopen(request) as reply:
        answer = json.load(reply)
    if answers_are_lost:
        raise AnswerLost
    return answer


@once("followup:{lead_id}:{template}:{day}")
def send_followup(lead_id, template, day):
    return send_mail(lead_id, template, current().downstream_key)


@once("reminder:{lead_id}:{day}", on_crash="retry")  # the provider deduplicates on our key, so trying again does no harm
def send_reminder(lead_id, day):
    return send_mail(lead_id, "reminder", current().downstream_key)


def main():
    global answers_are_lost
    sent = [send_followup(lead_id="lead_8821", template="intro", day="2026-11-16") for _ in range(3)]
    assert sent[0] == sent[1] == sent[2]
    print("three sends:", sent[0])

    answers_are_lost = True
    try:
        send_reminder(lead_id="lead_8821", day="2026-11-16")
    except AnswerLost:
        print("the answer to the first reminder was lost")
    answers_are_lost = False
    print("fail after send:", send_reminder(lead_id="lead_8821", day="2026-11-16"))


main()
