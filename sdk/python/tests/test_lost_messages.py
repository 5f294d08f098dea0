"""Whatever message is lost on the way, the act happens once, and the caller gets its result without a person's help."""

import contextlib
import json
import re
import subprocess
import time

import pytest
from lossy import Lossy, address

from semel import InProgress, NoEffect, Unreachable

CALLS = ["claim", "sent", "confirm"]


@contextlib.contextmanager
def lossy(semel, **lose):
    proxy = Lossy(address(semel.url), {int(n[1:]): how for n, how in lose.items()})
    yield proxy
    proxy.close()


@pytest.mark.parametrize("how", ["request", "answer", "half"])
@pytest.mark.parametrize("at", range(3), ids=CALLS)
def test_one_lost_message(semel, both, at, how):
    acts = []
    with lossy(semel, **{f"n{at}": how}) as proxy:
        client = both.client(proxy.url, wait=0)
        result = both.held(client, lambda claim: acts.append(1) or {"n": len(acts)}, "job:1")
        again = both.held(both.client(semel.url), lambda claim: acts.append(1), "job:1")
    assert result == again == {"n": 1} and acts == [1]
    assert [intent["state"] for intent in semel.intents()] == ["confirmed"]
    assert semel.intents()[0]["fence"] == 1


@pytest.mark.parametrize("at", range(6))
def test_two_lost_answers_in_a_row(semel, both, at):
    acts = []
    with lossy(semel, **{f"n{at}": "answer", f"n{at + 1}": "answer"}) as proxy:
        assert both.held(both.client(proxy.url), lambda claim: acts.append(1) or "done", "job:1") == "done"
    assert acts == [1] and semel.intents()[0]["state"] == "confirmed"


def test_a_claim_whose_answer_was_lost_is_given_the_same_answer(semel, both):
    """The claim is given, its answer lost; the repetition has the same nonce, so it is not locked out by itself."""
    with lossy(semel, n0="answer") as proxy:
        held = both.call(both.client(proxy.url), "ask", "job", "1", two_phase=True)
        assert held.fence == 1
        assert [line.split(" HTTP")[0] for line in proxy.seen] == ["POST /v1/claims", "POST /v1/claims"]
        assert both.call(both.client(proxy.url), "confirm", held, 1)["state"] == "confirmed"


def test_the_claim_of_another_is_not_taken_for_our_own(semel, both):
    other = semel.client()
    held = other.ask("job", "1", action="the same")
    with lossy(semel, n0="answer") as proxy:
        with pytest.raises(InProgress):
            both.call(both.client(proxy.url), "ask", "job", "1", action="the same")
    assert other.confirm(held)["state"] == "confirmed"


def test_a_lost_claim_that_lapsed_is_asked_for_again(semel, both):
    """Nothing was said to be sent, so there is nothing to doubt."""
    with lossy(semel, n0="answer", n1="request", n2="request", n3="request") as proxy:
        held = both.call(both.client(proxy.url), "ask", "job", "1", lease=0.05, wait=5, two_phase=True)
        assert held.fence == 2


def address_in(log):
    """Where a daemon listens, when it has said so."""
    end = time.monotonic() + 120
    while not (found := re.search(r"(https?://127.0.0.1:[0-9]+)/v1", log.read_text())):
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.01)
    return found.group(1)


@contextlib.contextmanager
def serve(binary, directory):
    """A daemon that asks for tokens, and a token that may only claim."""
    log = directory / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen([binary, "serve", "--data", str(directory / "data"), "--listen", "127.0.0.1:0"], stdout=out, stderr=out)
    try:
        url = address_in(log)
        words = [binary, "token", "create", "--url", url, "--data", str(directory / "data"), "--name", "t", "--scopes", "claim"]
        yield url, subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    finally:
        process.kill()
        process.wait()


def test_when_nothing_answers_nothing_is_done(both):
    acts = []
    client = both.client("http://127.0.0.1:1", patience=0.2)
    with pytest.raises(Unreachable) as away:
        both.held(client, lambda claim: acts.append(1), "job:1")
    assert acts == [] and "127.0.0.1:1" in str(away.value)


def test_a_result_that_semel_could_not_be_told_is_in_the_exception(semel, both):
    with pytest.raises(Unreachable) as away:
        both.held(both.client(semel.url, patience=0.2), lambda claim: semel.kill() or {"charge": "ch_1"}, "job:1")
    assert away.value.result == {"charge": "ch_1"}


def test_semel_is_restarted_while_the_function_runs(semel, both):
    assert both.held(both.client(semel.url), lambda claim: (semel.kill(), semel.start()) and "done", "job:1") == "done"
    assert semel.intents()[0]["state"] == "confirmed"


def test_something_else_answers(both):
    import http.server
    import threading

    class Wrong(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_error(404)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Wrong)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(Unreachable, match="not semel"):
        both.call(both.client("http://127.0.0.1:%d" % server.server_address[1], patience=0.1), "ask", "job", "1")
    server.shutdown()


def test_the_server_is_overloaded_for_a_moment(semel, both):
    """503 is repeated, also for a claim; the first one is answered by hand here."""
    import http.server
    import threading
    import urllib.request

    left = [2]

    class Busy(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            left[0] -= 1
            if left[0] >= 0:
                status, answer = 503, json.dumps({"code": "busy", "title": "Too many connections"}).encode()
            else:
                with urllib.request.urlopen(urllib.request.Request(semel.url + self.path, body)) as reply:
                    status, answer = reply.status, reply.read()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    assert both.held(both.client("http://127.0.0.1:%d" % server.server_address[1]), lambda claim: 7, "job:1") == 7
    server.shutdown()


def test_no_effect_after_a_lost_sent(semel, both):
    def refuse(claim):
        raise NoEffect("the card was declined", final=True)

    with lossy(semel, n1="answer") as proxy:
        with pytest.raises(NoEffect):
            both.held(both.client(proxy.url), refuse, "job:1")
    assert semel.intents()[0]["state"] == "refused"
