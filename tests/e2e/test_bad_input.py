"""Malformed, over-limit and hostile requests: each gets an honest 4xx or 5xx problem, and the daemon goes on as if nothing had been."""

import json
import socket

import pytest

import swarm
from http_client import raw, split_answers
from semel_process import until

FLOOD = 20_000
GROWTH_KIB_MAX = 48 * 1024


def http(method, path, body=b"", *headers, version="HTTP/1.1", host=b"Host: 127.0.0.1\r\n"):
    lines = b"".join(header + b"\r\n" for header in headers)
    length = b"" if any(header.lower().startswith((b"content-length", b"transfer-encoding")) for header in headers) else b"Content-Length: %d\r\n" % len(body)
    return f"{method} {path} {version}\r\n".encode("latin-1") + host + length + lines + b"\r\n" + body


def claim(body, *headers):
    return http("POST", "/v1/claims", body if isinstance(body, bytes) else json.dumps(body).encode(), *headers)


def field(name, value):
    """A claim that is good but for one field."""
    return claim({"workflow": "w", "key": "k", **{name: value}})


def say(what, body, intent="int_0000000000001"):
    return http("POST", f"/v1/claims/{intent}/{what}", body if isinstance(body, bytes) else json.dumps(body).encode())


def token(body):
    return http("POST", "/v1/tokens", json.dumps(body).encode())


WRONG_JSON = {
    "cut_off": b'{"workflow":"w"', "no_json": b"workflow=w&key=k", "trailing_comma": b'{"workflow":"w","key":"k",}',
    "two_values": b'{"workflow":"w","key":"k"} {}', "single_quotes": b"{'workflow':'w'}", "comment": b'{"workflow":"w" /* */}',
    "byte_order_mark": b'\xef\xbb\xbf{"workflow":"w","key":"k"}', "nan": b'{"workflow":"w","key":"k","lease_ms":NaN}',
    "leading_zero": b'{"workflow":"w","key":"k","lease_ms":01000}', "plus": b'{"workflow":"w","key":"k","lease_ms":+1}',
    "bad_escape": b'{"workflow":"w","key":"\\x41"}', "raw_control": b'{"workflow":"w","key":"a\nb"}',
    "lone_surrogate": b'{"workflow":"w","key":"\\ud800"}', "bad_utf8": b'{"workflow":"w","key":"\xff\xfe"}',
    "overlong_utf8": b'{"workflow":"w","key":"\xc0\xaf"}', "utf8_surrogate": b'{"workflow":"w","key":"\xed\xa0\x80"}',
    "utf16": '{"workflow":"w","key":"k"}'.encode("utf-16"), "duplicate_key": b'{"workflow":"w","key":"k","key":"k"}',
    "duplicate_deep": b'{"workflow":"w","key":"k","input":{"a":{"b":1,"b":1}}}', "duplicate_escaped": b'{"workflow":"w","key":"k","k\\u0065y":"x"}',
    "nested_1000": b'{"workflow":"w","key":"k","input":' + b"[" * 1000 + b"]" * 1000 + b"}", "open_100000": b"[" * 100_000,
    "array": b"[]", "string": b'"w"', "null": b"null", "number": b"1", "blank": b"   ", "nul_byte": b'{"workflow":"w","key":"k"}\0',
}

TABLE = [
    *[(f"json_{name}", claim(body), 400, "malformed", None) for name, body in WRONG_JSON.items()],
    ("too_many_members", claim(b'{"workflow":"w","key":"k","input":[' + b"0," * 20_000 + b"0]}"), 400, "malformed", None),
    # every field with a wrong type
    *[(f"{name}_{type(value).__name__}", field(name, value), 400, "invalid", name)
      for name, values in {
          "workflow": [1, None, [], {}, True], "key": [1, [], {}, False], "lease_ms": ["60", 1.5, [], True], "wait_ms": ["1", 0.5, {}],
          "keep": [30, ["30d"], True], "thread": [1, {}], "action": [1, []], "run": [1, {}], "two_phase": ["true", 1, []],
      }.items() for value in values],
    # out of bounds
    ("workflow_empty", field("workflow", ""), 400, "invalid", "workflow"),
    ("workflow_long", field("workflow", "w" * 129), 400, "invalid", "workflow"),
    ("workflow_control", field("workflow", "a\u0001"), 400, "invalid", "workflow"),
    ("workflow_nul", field("workflow", "a\0b"), 400, "invalid", "workflow"),
    ("workflow_missing", claim({"key": "k"}), 400, "invalid", "workflow"),
    ("empty_body", claim(b""), 400, "invalid", "workflow"),
    ("key_empty", field("key", ""), 400, "invalid", "key"),
    ("key_long", field("key", "k" * 2049), 400, "invalid", "key"),
    ("key_long_in_bytes", field("key", "é" * 1025), 400, "invalid", "key"),
    ("key_nul", field("key", "a\0b"), 400, "invalid", "key"),
    ("thread_long", field("thread", "t" * 257), 400, "invalid", "thread"),
    ("thread_control", field("thread", "\x7f"), 400, "invalid", "thread"),
    ("action_long", field("action", "a" * 129), 400, "invalid", "action"),
    ("run_long", field("run", "r" * 257), 400, "invalid", "run"),
    ("run_control", field("run", "a\tb"), 400, "invalid", "run"),
    ("lease_zero", field("lease_ms", 0), 400, "invalid", "lease_ms"),
    ("lease_negative", field("lease_ms", -1), 400, "invalid", "lease_ms"),
    ("lease_too_long", field("lease_ms", 86_400_001), 400, "invalid", "lease_ms"),
    ("lease_huge", field("lease_ms", 10**30), 400, "invalid", "lease_ms"),
    ("lease_exponent", claim(b'{"workflow":"w","key":"k","lease_ms":1e3}'), 400, "invalid", "lease_ms"),
    ("wait_negative", field("wait_ms", -5), 400, "invalid", "wait_ms"),
    ("wait_too_long", field("wait_ms", 300_001), 400, "invalid", "wait_ms"),
    ("keep_word", field("keep", "forever"), 400, "invalid", "keep"),
    ("keep_no_unit", field("keep", "30"), 400, "invalid", "keep"),
    ("keep_short", field("keep", "1ms"), 400, "invalid", "keep"),
    ("keep_long", field("keep", "401d"), 400, "invalid", "keep"),
    ("keep_overflow", field("keep", "99999999999999d"), 400, "invalid", "keep"),
    ("no_key", claim({"workflow": "w"}), 400, "key_required", None),
    # unknown fields
    ("unknown_field", field("colour", 1), 400, "invalid", "colour"),
    ("near_workflow", claim({"worflow": "w", "key": "k"}), 400, "invalid", "worflow"),
    ("near_lease", field("lease", 1000), 400, "invalid", "lease"),
    ("near_case", field("Key", "x"), 400, "invalid", "Key"),
    ("near_wait", field("waitms", 1), 400, "invalid", "waitms"),
    # what a holder says
    ("fence_missing", say("confirm", {}), 400, "invalid", "fence"),
    ("fence_text", say("confirm", {"fence": "1"}), 400, "invalid", "fence"),
    ("fence_fraction", say("sent", {"fence": 1.5}), 400, "invalid", "fence"),
    ("fence_negative", say("sent", {"fence": -1}), 400, "invalid", "fence"),
    ("fence_overflow", say("sent", {"fence": 2**63}), 400, "invalid", "fence"),
    ("fence_null", say("release", {"fence": None}), 400, "invalid", "fence"),
    ("confirm_unknown", say("confirm", {"fence": 1, "resutl": 1}), 400, "invalid", "resutl"),
    ("sent_result", say("sent", {"fence": 1, "result": 1}), 400, "invalid", "result"),
    ("effect_word", say("fail", {"fence": 1, "effect": "nome"}), 400, "invalid", "effect"),
    ("effect_type", say("fail", {"fence": 1, "effect": 1}), 400, "invalid", "effect"),
    ("final_type", say("fail", {"fence": 1, "final": "yes"}), 400, "invalid", "final"),
    ("error_type", say("fail", {"fence": 1, "error": 5}), 400, "invalid", "error"),
    ("error_long", say("fail", {"fence": 1, "error": "e" * 4097}), 400, "invalid", "error"),
    ("error_nul", say("fail", {"fence": 1, "error": "a\0"}), 400, "invalid", "error"),
    ("extend_zero", say("extend", {"fence": 1, "lease_ms": 0}), 400, "invalid", "lease_ms"),
    ("extend_type", say("extend", {"fence": 1, "lease_ms": "1s"}), 400, "invalid", "lease_ms"),
    ("confirm_bad_json", say("confirm", b'{"fence":1,"result":{"a":1,"a":2}}'), 400, "malformed", None),
    # ids
    *[(f"id_{number}", say("confirm", {"fence": 1}, intent=intent), 404, "not_found", None)
      for number, intent in enumerate(["x", "int_", "int_000000000000", "int_00000000000000", "dec_0000000000001", "int_000000000000u", "int_zzzzzzzzzzzzz",
                                       "INT_0000000000001", "1", "%00", "..", "int_000000000000%31%31", "a" * 4000])],
    ("get_bad_id", http("GET", "/v1/intents/nope"), 404, "not_found", None),
    ("token_bad_id", http("DELETE", "/v1/tokens/nope"), 404, "not_found", None),
    ("token_unknown_id", http("DELETE", "/v1/tokens/AAAAAAAAAAAA"), 404, "not_found", None),
    # query parameters
    *[(f"limit_{value}", http("GET", f"/v1/intents?limit={value}"), 400, "invalid", "limit") for value in ["0", "-1", "201", "x", "1.0", "", "99999999999999999999"]],
    ("after_bad", http("GET", "/v1/intents?after=abc"), 400, "invalid", "after"),
    ("after_other_kind", http("GET", "/v1/intents?after=dec_0000000000001"), 400, "invalid", "after"),
    ("state_bad", http("GET", "/v1/intents?state=done"), 400, "invalid", "state"),
    ("key_alone", http("GET", "/v1/intents?key=k"), 400, "invalid", "key"),
    ("query_unknown", http("GET", "/v1/intents?wrokflow=x"), 400, "invalid", "wrokflow"),
    ("query_escape", http("GET", "/v1/intents?workflow=%zz"), 400, "invalid", "workflow"),
    ("query_cut_escape", http("GET", "/v1/intents?workflow=%4"), 400, "invalid", "workflow"),
    ("query_utf8", http("GET", "/v1/intents?workflow=%ff"), 400, "invalid", "workflow"),
    ("query_nul", http("GET", "/v1/intents?workflow=a%00b"), 400, "invalid", "workflow"),
    ("query_long_name", http("GET", "/v1/intents?" + "x" * 7000 + "=1"), 400, "invalid", "x" * 7000),
    ("decisions_intent", http("GET", "/v1/decisions?intent=xyz"), 400, "invalid", "intent"),
    ("decisions_unknown", http("GET", "/v1/decisions?worklow=x"), 400, "invalid", "worklow"),
    # paths and methods
    ("no_path", http("GET", "/v2/claims"), 404, "not_found", None),
    ("double_slash", http("GET", "//v1/intents"), 404, "not_found", None),
    ("dots", http("GET", "/v1/../v1/intents"), 404, "not_found", None),
    ("method_get", http("GET", "/v1/claims"), 405, "method_not_allowed", None),
    ("method_delete", http("DELETE", "/v1/claims"), 405, "method_not_allowed", None),
    ("method_patch", http("PATCH", "/v1/policy"), 405, "method_not_allowed", None),
    ("method_options", http("OPTIONS", "/v1/intents"), 405, "method_not_allowed", None),
    ("method_unknown", http("BREW", "/v1/intents"), 405, "method_not_allowed", None),
    ("method_trace", http("TRACE", "/"), 405, "method_not_allowed", None),
    ("method_lower", http("get", "/v1/intents"), 405, "method_not_allowed", None),
    # tokens and policy
    ("token_no_scopes", token({"name": "a"}), 400, "invalid", "scopes"),
    ("token_empty_scopes", token({"name": "a", "scopes": []}), 400, "invalid", "scopes"),
    ("token_bad_scope", token({"name": "a", "scopes": ["root"]}), 400, "invalid", "scopes"),
    ("token_scope_type", token({"name": "a", "scopes": [1]}), 400, "invalid", "scopes"),
    ("token_scope_text", token({"name": "a", "scopes": "claim"}), 400, "invalid", "scopes"),
    ("token_no_name", token({"scopes": ["read"]}), 400, "invalid", "name"),
    ("token_long_name", token({"name": "n" * 65, "scopes": ["read"]}), 400, "invalid", "name"),
    ("token_control", token({"name": "a\nb", "scopes": ["read"]}), 400, "invalid", "name"),
    ("token_space_control", token({"name": "a", "space": "a\nb", "scopes": ["read"]}), 400, "invalid", "space"),
    ("token_expires", token({"name": "a", "scopes": ["read"], "expires": "10y"}), 400, "invalid", "expires"),
    ("token_expires_long", token({"name": "a", "scopes": ["read"], "expires": "400d"}), 400, "invalid", "expires"),
    ("policy_key", http("PUT", "/v1/policy", b"wrokflows: {}"), 422, "policy_invalid", None),
    ("policy_not_yaml", http("PUT", "/v1/policy", b"a: [b"), 422, "policy_invalid", None),
    ("policy_binary", http("PUT", "/v1/policy", bytes(range(256))), 422, "policy_invalid", None),
    ("policy_bomb", http("PUT", "/v1/policy", b"a: &a [x]\nb: [*a,*a]\n"), 422, "policy_invalid", None),
    ("policy_large", http("PUT", "/v1/policy", b"# " + b"x" * (256 * 1024)), 422, "policy_invalid", None),
    ("policy_deep", http("PUT", "/v1/policy", b"[" * 50_000), 422, "policy_invalid", None),
    # too large
    ("body_over_limit", claim(b'{"workflow":"w","key":"k","input":"' + b"x" * (1 << 20) + b'"}'), 413, "too_large", None),
    ("length_over_limit", claim(b"{", b"Content-Length: 99999999999"), 413, "too_large", None),
    ("chunks_over_limit", claim(b"10000\r\n" + b"x" * 0x10000 + b"\r\n" + (b"10000\r\n" + b"y" * 0x10000 + b"\r\n") * 17 + b"0\r\n\r\n", b"Transfer-Encoding: chunked"),
     413, "too_large", None),
]

# What no honest client sends: here a second request must never be read out of the first.
SHAPES = [
    ("both_lengths", claim(b"0\r\n\r\n", b"Content-Length: 5", b"Transfer-Encoding: chunked"), 400),
    ("two_lengths", claim(b"{}", b"Content-Length: 2", b"Content-Length: 3"), 400),
    ("two_same_lengths", claim(b"{}", b"Content-Length: 2", b"Content-Length: 2"), 400),
    ("length_list", claim(b"{}", b"Content-Length: 2, 2"), 400),
    ("length_plus", claim(b"{}", b"Content-Length: +2"), 400),
    ("length_minus", claim(b"{}", b"Content-Length: -2"), 400),
    ("length_hex", claim(b"{}", b"Content-Length: 0x2"), 400),
    ("length_empty", claim(b"{}", b"Content-Length:"), 400),
    ("length_overflow", claim(b"{}", b"Content-Length: 18446744073709551618"), 400),
    ("encoding_identity", claim(b"{}", b"Transfer-Encoding: identity"), 501),
    ("encoding_gzip", claim(b"{}", b"Transfer-Encoding: gzip, chunked"), 501),
    ("encoding_twice", claim(b"0\r\n\r\n", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"), 400),
    ("encoding_spelled", claim(b"0\r\n\r\n", b"Transfer-Encoding: xchunked"), 501),
    ("encoding_tab", claim(b"0\r\n\r\n", b"Transfer-Encoding : chunked"), 400),
    ("chunk_size_word", claim(b"zz\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"), 400),
    ("chunk_size_sign", claim(b"-2\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"), 400),
    ("chunk_size_0x", claim(b"0x2\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"), 400),
    ("chunk_size_large", claim(b"fffffffffffffffff\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"), (400, 413)),
    ("chunk_no_end", claim(b"2\r\n{}XX0\r\n\r\n", b"Transfer-Encoding: chunked"), 400),
    ("chunk_bare_lf", claim(b"2\n{}\n0\n\n", b"Transfer-Encoding: chunked"), 400),
    ("chunk_extension", claim(b"2;x=y\r\n{}\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"), 400),
    ("fold", http("GET", "/healthz", b"", b"X-A: a\r\n b"), 400),
    ("space_before_colon", http("GET", "/healthz", b"", b"X-A : a"), 400),
    ("no_colon", http("GET", "/healthz", b"", b"X-A"), 400),
    ("empty_name", http("GET", "/healthz", b"", b": a"), 400),
    ("nul_in_value", http("GET", "/healthz", b"", b"X-A: a\0b"), 400),
    ("cr_in_value", http("GET", "/healthz", b"", b"X-A: a\rb"), 400),
    ("bare_lf", b"GET /healthz HTTP/1.1\nHost: 127.0.0.1\n\n", 400),
    ("bare_lf_header", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\nX: y\r\n\r\n", 400),
    ("no_host", http("GET", "/healthz", host=b""), 400),
    ("two_hosts", http("GET", "/healthz", b"", b"Host: other"), 400),
    ("bad_host", http("GET", "/healthz", host=b"Host: a b\r\n"), 400),
    ("empty_host", http("GET", "/healthz", host=b"Host:\r\n"), 400),
    ("host_userinfo", http("GET", "/healthz", host=b"Host: user@127.0.0.1\r\n"), 400),
    ("absolute_target", http("GET", "http://127.0.0.1/healthz"), 400),
    ("star_target", http("OPTIONS", "*"), 400),
    ("target_raw_byte", http("GET", "/v1/intents?workflow=\xff"), 400),
    ("target_backslash", http("GET", "/v1\\intents"), 400),
    ("target_fragment", http("GET", "/healthz#a"), 400),
    ("long_line", http("GET", "/" + "a" * 9000), 414),
    ("large_head", http("GET", "/healthz", b"", *[b"X-%d: " % n + b"a" * 300 for n in range(80)]), 431),
    ("many_headers", http("GET", "/healthz", b"", *[b"X-%d: a" % n for n in range(120)]), 431),
    ("version_2", http("GET", "/healthz", version="HTTP/2.0"), 505),
    ("version_1_2", http("GET", "/healthz", version="HTTP/1.2"), 505),
    ("version_word", http("GET", "/healthz", version="HTTP/x"), 400),
    ("version_none", b"GET /healthz\r\n\r\n", 400),
    ("http2_preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("tls_hello", bytes.fromhex("16030100c8010000c40303") + b"\0" * 40, 400),
    ("binary", bytes(range(128, 256)), 400),
    ("leading_space", b" GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("two_spaces", b"GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("expect_other", claim(b"{}", b"Expect: the-unexpected"), 417),
    ("http10_chunked", http("POST", "/v1/claims", b"0\r\n\r\n", b"Transfer-Encoding: chunked", version="HTTP/1.0"), 400),
]

SLOW = {
    "head": b"POST /v1/claims HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "body": b"POST /v1/claims HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50000\r\n\r\n{",
    "chunks": b"POST /v1/claims HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
}


@pytest.fixture(scope="module")
def daemon(module_house):
    """One daemon takes all the bad input."""
    return module_house.start("sqlite", name="bad_input")


@pytest.fixture(scope="module", autouse=True)
def slow_connections(daemon):
    """Requests that stop in the middle, begun before the other tests so that nobody has to wait for the daemon's patience to end."""
    opened = {}
    for name, start in SLOW.items():
        opened[name] = socket.create_connection(("127.0.0.1", daemon.port), timeout=180)
        opened[name].sendall(start)
    yield opened
    for connection in opened.values():
        connection.close()


@pytest.fixture(autouse=True)
def still_there(daemon):
    """After each test the same process still answers. One that died fails its test and is replaced for the others."""
    pid = daemon.pid
    yield
    try:
        answers = raw(daemon.port, http("GET", "/healthz"))
    except ConnectionError:
        answers = []
    if [answer.status for answer in answers] == [200] and daemon.alive() and daemon.pid == pid:
        return
    last_words = daemon.said()[-1500:]
    daemon.end()
    daemon.start()
    pytest.fail(f"the daemon did not survive; its last words:\n{last_words}")


def assert_problem(answer, status, code=None):
    assert answer.status in (status if isinstance(status, tuple) else (status,)), answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json
    for name in ("type", "title", "detail", "code", "hint"):
        assert isinstance(body[name], str) and body[name], (name, body)
    assert body["status"] == answer.status
    assert code is None or body["code"] == code, body
    return body


@pytest.mark.parametrize("request_, status, code, name", [row[1:] for row in TABLE], ids=[row[0][:40] for row in TABLE])
def test_bad_request_gets_a_problem_that_names_the_field(daemon, request_, status, code, name):
    answers = raw(daemon.port, request_)
    assert len(answers) == 1
    body = assert_problem(answers[0], status, code)
    assert body.get("field") == name
    if name is not None and len(name) < 100:
        assert name in body["detail"]


@pytest.mark.parametrize("name, meant", [("worflow", "workflow"), ("lease_m", "lease_ms"), ("Key", "key"), ("waitms", "wait_ms"), ("tread", "thread")])
def test_unknown_field_gets_a_suggestion(daemon, name, meant):
    body = raw(daemon.port, claim({name: 1}))[0].json
    assert body["field"] == name and f'did you mean "{meant}"?' in body["detail"]


def test_unknown_query_parameter_gets_a_suggestion(daemon):
    body = raw(daemon.port, http("GET", "/v1/intents?wrokflow=x"))[0].json
    assert 'did you mean "workflow"?' in body["detail"]


def test_detail_is_readable(daemon):
    """A sentence is not closed twice."""
    for request_ in (claim({"worflow": 1}), http("GET", "/v1/intents?wrokflow=x"), http("GET", "/v1/intents?zzz=x")):
        detail = raw(daemon.port, request_)[0].json["detail"]
        assert not detail.endswith(("?.", "..")), detail


@pytest.mark.parametrize("request_, status", [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
@pytest.mark.parametrize("pieces", [1, 7])
def test_doubtful_shape_is_refused_and_the_connection_ends(daemon, request_, status, pieces):
    smuggled = http("GET", "/v1/openapi.json")
    answers = raw(daemon.port, request_ + smuggled, pieces=pieces)
    assert len(answers) == 1, "a second request was read out of the first"
    assert_problem(answers[0], status)
    assert answers[0].headers["Connection"] == "close"


def test_allow_header_names_the_methods(daemon):
    assert raw(daemon.port, http("GET", "/v1/claims"))[0].headers["Allow"] == "POST"
    assert sorted(raw(daemon.port, http("DELETE", "/v1/policy"))[0].headers["Allow"].split(", ")) == ["GET", "HEAD", "PUT"]


def test_old_and_unusual_but_right_requests_are_answered(daemon):
    ten = http("GET", "/healthz", host=b"", version="HTTP/1.0")
    assert [answer.status for answer in raw(daemon.port, ten, finish=False)] == [200]  # closes by itself
    chunked = claim(b'5\r\n{"wor\r\n1a\r\nkflow":"w","key":"chunks"}\r\n0\r\nX-T: a\r\n\r\n', b"Transfer-Encoding: chunked")
    assert [answer.status for answer in raw(daemon.port, chunked, pieces=len(chunked))] == [201]
    pipelined = b"".join(claim({"workflow": "w", "key": f"pipe{n}"}) for n in range(20)) + http("GET", "/healthz")
    assert [answer.status for answer in raw(daemon.port, pipelined)] == [201] * 20 + [200]
    assert [answer.status for answer in raw(daemon.port, b"\r\n" + http("GET", "/healthz"))] == [200]
    expecting = claim({"workflow": "w", "key": "expects"}, b"Expect: 100-continue")
    assert [answer.status for answer in raw(daemon.port, expecting, pieces=2)] == [201]


def test_request_that_is_cut_off_does_nothing(daemon):
    whole = claim({"workflow": "cut", "key": "k"})
    for size in range(1, len(whole)):
        if size % 7 == 0 or size > len(whole) - 3:
            assert raw(daemon.port, whole[:size]) == []
    listed = raw(daemon.port, http("GET", "/v1/intents?workflow=cut"))[0].json
    assert listed["data"] == []


def test_requests_on_the_same_connection_are_answered_after_a_refused_body(daemon):
    two = claim(b"nonsense") + claim({"workflow": "w", "key": "after nonsense"})
    assert [answer.status for answer in raw(daemon.port, two)] == [400, 201]


def test_flood_of_bad_requests_does_not_grow_the_process(daemon):
    bad = [row[1] for row in TABLE if row[2] in (400, 404, 405, 422) and len(row[1]) < 4000 and "unknown_id" not in row[0]]

    def one(count):
        for number in range(count):
            status, _ = yield bad[number % len(bad)]
            assert 400 <= status < 500

    def flood(count):
        clients = swarm.Swarm()
        for _ in range(10):
            clients.add(one(count // 10), daemon.port)
        clients.run()

    flood(2000)  # what grows once may grow
    before = daemon.resident_kib()
    flood(FLOOD)
    assert daemon.resident_kib() - before < GROWTH_KIB_MAX


def test_claims_of_clients_that_left_do_not_stay(daemon):
    """Also not until the end of the holder's lease: otherwise they would pile up behind the limit on connections."""
    held = claim({"workflow": "w", "key": "held", "lease_ms": 80_000_000, "wait_ms": 300_000})
    assert raw(daemon.port, held)[0].status == 201
    for number in range(100):
        connection = socket.create_connection(("127.0.0.1", daemon.port), timeout=10)
        connection.sendall(held if number % 2 else b"POST /v1/cl")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()

    def metric(name):
        text = raw(daemon.port, http("GET", "/metrics"))[0].raw.decode()
        return int(text.split(f"\n{name} ")[1].split("\n")[0])

    until(lambda: metric("semel_http_connections_open") <= 1 + len(SLOW), "the end of aborted connections")
    until(lambda: metric("semel_claims_waiting") == 0, "the end of claims whose client left")


def test_slow_requests_are_given_up(slow_connections):
    for name, connection in slow_connections.items():
        received = b""
        while block := connection.recv(65536):
            received += block
        answers, rest = split_answers(received)
        assert len(answers) == 1 and rest == b"", (name, received)
        assert assert_problem(answers[0], 408)["code"] == "timeout"
