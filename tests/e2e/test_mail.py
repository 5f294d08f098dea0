"""Mail in: by SMTP, by LMTP, from files and from stdin. Whichever way a mail takes, and however often, its source's destination gets it once; and it is
acknowledged only when it is kept."""

import email.policy
import json
import re
import shutil
import smtplib
import socket
import ssl
import subprocess
from email.message import EmailMessage

import pytest

from plain_server import reply
from semel_process import binary, until

POLICY = """version: 1
destinations:
  agent: {{provider: http, url: "{url}", allow_private: true, capability: idempotent, key_header: Idempotency-Key, window: 24h, timeout: 10s, backoff: 50ms}}
sources:
  mail: {{preset: mail, verify: none, forward: agent, as: event, addresses: [leads@shop.example, "*@in.shop.example"]}}
  support: {{preset: mail, verify: none, forward: agent, as: original}}
  hooks: {{preset: json, verify: none}}
"""


def mail(number, text=None, **headers):
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = f"Jane <jane{number}@example.com>", "leads@shop.example", "Re: Chairs"
    message["Message-ID"] = f"<m{number}@example.com>"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text or f"Do you have chair number {number} in red?\n\nOn Mon, Nov 16, 2026 at 10:00 AM Shop <leads@shop.example> wrote:\n> Which chair?\n")
    return message


def wire(message):
    """As it goes over the wire: Python sends bytes as they are."""
    return message.as_bytes(policy=email.policy.SMTP)


class Post:
    """A daemon that takes mail, and the agent behind it."""

    def __init__(self, house, server, tmp_path, storage):
        self.agent = server(lambda head, body: reply())
        self.daemon = house.make(storage, policy=POLICY.format(url=self.agent.url), options=["--smtp", "127.0.0.1:0", "--lmtp", f"unix:{tmp_path}/lmtp.sock"])
        self.socket = str(tmp_path / "lmtp.sock")
        self.start()

    def start(self):
        self.daemon.start()
        self.url = f"http://127.0.0.1:{self.daemon.port}"
        self.port = int(re.findall(r"SMTP on 127\.0\.0\.1:(\d+)", self.daemon.said())[-1])

    def smtp(self):
        return smtplib.SMTP("127.0.0.1", self.port, local_hostname="client.example", timeout=120)

    def lmtp(self):
        return smtplib.LMTP(self.socket, local_hostname="client.example")

    def cli(self, *words, **options):
        return subprocess.run([binary(), "receive", "mail", "--url", self.url, *words], capture_output=True, timeout=120, **options)

    def bodies(self, count):
        until(lambda: len(self.agent.requests) >= count, f"{count} calls to the agent")
        return [body for _, _, body in self.agent.requests]


@pytest.fixture
def post(house, server, tmp_path):
    return Post(house, server, tmp_path, "sqlite")


def test_a_mail_takes_four_ways_and_arrives_once(house, server, tmp_path, storage):
    post = Post(house, server, tmp_path, storage)
    raw = wire(mail(1))
    with post.smtp() as smtp:
        assert smtp.sendmail("jane1@example.com", ["leads@shop.example"], raw) == {}
    with post.lmtp() as lmtp:
        for to in ("anything@in.shop.example", "mail@other.example"):
            assert lmtp.sendmail("jane1@example.com", [to], raw) == {}
    assert post.cli(input=raw).stdout == b"1 taken, 0 refused\n"
    box = tmp_path / "box"
    box.write_bytes(b"From jane1 Mon Nov 16 10:00:00 2026\n" + raw + b"\nFrom jane2 Mon Nov 16 10:00:00 2026\n" + mail(2).as_bytes() + b"\n")
    done = post.cli("--mbox", str(box))
    assert (done.returncode, done.stdout) == (0, b"2 taken, 0 refused: 1 accepted, 1 suppressed, 0 held\n")
    events = [json.loads(body) for body in post.bodies(2)]
    assert sorted(text for text in (find(event, "text") for event in events)) == ["Do you have chair number 1 in red?", "Do you have chair number 2 in red?"]
    assert {find(event, "key") for event in events} == {"mail:m1@example.com", "mail:m2@example.com"}


def find(value, name):
    """The member of that name, wherever it stands."""
    if isinstance(value, dict):
        if name in value:
            return value[name]
        value = list(value.values())
    for item in value if isinstance(value, list) else []:
        found = find(item, name)
        if found is not None:
            return found
    return None


def test_what_was_acknowledged_survives_a_kill(post):
    for number in range(5):
        with post.smtp() as smtp:
            smtp.sendmail("jane@example.com", ["leads@shop.example"], wire(mail(number)))
        post.daemon.kill()
        post.start()
    wanted = {f"mail:m{number}@example.com" for number in range(5)}
    until(lambda: {find(json.loads(body), "key") for body in post.bodies(5)} == wanted, "each of the five")


def test_the_original_is_forwarded_with_its_trace(post):
    with post.lmtp() as lmtp:
        lmtp.sendmail("jane@example.com", ["support@any.example"], wire(mail(7, "Is it in?\n")))
    body = post.bodies(1)[0]
    assert body.startswith(b"Return-Path: <jane@example.com>\r\nReceived: from client.example (unix) by ")
    assert b"Message-ID: <m7@example.com>\r\n" in body and body.endswith(b"Is it in?\r\n")


def test_nothing_is_relayed_and_each_recipient_has_its_answer(post):
    with post.lmtp() as lmtp:
        lmtp.ehlo()
        lmtp.mail("jane@example.com")
        assert [lmtp.rcpt(to)[0] for to in ("leads@shop.example", "nobody@elsewhere.example", "hooks@shop.example", "support@x.example")] == [250, 550, 550, 250]
        lmtp.putcmd("data")
        assert lmtp.getreply()[0] == 354
        lmtp.send(mail(1).as_bytes().replace(b"\n", b"\r\n") + b".\r\n")
        assert [lmtp.getreply()[0], lmtp.getreply()[0]] == [250, 250]


def test_mails_are_counted(house, post):
    with post.smtp() as smtp:
        smtp.sendmail("jane@example.com", ["leads@shop.example"], wire(mail(1)))
        with pytest.raises(smtplib.SMTPDataError):
            smtp.sendmail("jane@example.com", ["leads@shop.example"], b"Content-Type: a\r\n" * 300 + b"\r\nx\r\n")
    figures = house.client(post.daemon).get("/metrics").raw.decode()
    for line in ('mails_total{protocol="smtp",outcome="kept"} 1', 'mails_total{protocol="smtp",outcome="not_kept"} 1', 'mails_total{protocol="lmtp",outcome="kept"} 0',
                 'mail_connections_total{protocol="smtp",outcome="accepted"} 1'):
        assert f"semel_{line}\n" in figures


def test_what_is_no_mail_is_refused_for_good(post):
    with post.smtp() as smtp, pytest.raises(smtplib.SMTPDataError) as refused:
        smtp.sendmail("jane@example.com", ["leads@shop.example"], b"Content-Type: a\r\n" * 300 + b"\r\nx\r\n")
    assert refused.value.smtp_code == 554
    done = post.cli(input=b"\n\nno header\n")
    assert done.returncode == 65 and b"no header" in done.stderr


def test_smuggled_mails_are_not_seen(post):
    """What one server takes for the text of a mail must not be another mail to this one (CVE-2023-51764 and its like)."""
    for ending in (b"\n.\n", b"\n.\r\n", b"\r\n.\n", b"\r.\r", b"\r\n.\r", b"\r.\r\n"):
        with socket.create_connection(("127.0.0.1", post.port), timeout=120) as sock:
            sock.sendall(b"EHLO c\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<leads@shop.example>\r\nDATA\r\n")
            said = b""
            while b"354 " not in said:
                said += sock.recv(4096)
            sock.sendall(b"Subject: outer\r\n\r\nouter" + ending + b"MAIL FROM:<evil@b.example>\r\nRCPT TO:<leads@shop.example>\r\nDATA\r\nSubject: inner\r\n\r\ninner\r\n.\r\n")
            said = b""
            while block := sock.recv(4096):
                said += block
            assert said.startswith(b"521 5.5.2") and said.count(b"\r\n") == 1
    with post.smtp() as smtp:
        smtp.sendmail("jane@example.com", ["leads@shop.example"], wire(mail(9)))
    assert [find(json.loads(body), "key") for body in post.bodies(1)] == ["mail:m9@example.com"]


def test_a_machine_is_not_answered(post):
    with post.smtp() as smtp:
        smtp.sendmail("", ["leads@shop.example"], wire(mail(1)))  # a bounce has no sender
        smtp.sendmail("jane@example.com", ["leads@shop.example"], wire(mail(2, Auto_Submitted="auto-replied")))
        smtp.sendmail("jane@example.com", ["leads@shop.example"], wire(mail(3)))
    assert [find(json.loads(body), "key") for body in post.bodies(1)] == ["mail:m3@example.com"]


def test_a_form_and_its_sender_are_told_apart(post):
    message = mail(1, "Name: Jane\nMessage: What does the blue one cost?\n", Reply_To="Jane <jane@home.example>")
    message.replace_header("From", "Shop website <wordpress@shop.example>")
    with post.smtp() as smtp:
        smtp.send_message(message, "wordpress@shop.example", ["leads@shop.example"])
    event = json.loads(post.bodies(1)[0])
    senders = [identity["value"] for identity in find(event, "identities") if identity["sender"]]
    assert senders == ["jane@home.example"]


@pytest.mark.parametrize("way", ["lmtp", "cli"])
def test_attachments_may_be_large(post, way):
    message = mail(1, "See the picture.\n")
    message.add_attachment(bytes(5 << 20), maintype="image", subtype="png", filename="a.png")
    if way == "cli":
        assert post.cli(input=message.as_bytes()).returncode == 0
    else:
        with post.lmtp() as lmtp:
            lmtp.sendmail("jane@example.com", ["leads@shop.example"], wire(message))
    assert find(json.loads(post.bodies(1)[0]), "text") == "See the picture."


def test_swaks_is_understood(post):
    if shutil.which("swaks") is None:
        pytest.skip("swaks is not installed")
    for options in (["--server", f"127.0.0.1:{post.port}"], ["--server", f"127.0.0.1:{post.port}", "--pipeline"], ["--protocol", "LMTP", "--socket", post.socket]):
        done = subprocess.run(["swaks", "--to", "leads@shop.example", "--from", "jane@example.com", "--header", "Message-ID: <swaks@example.com>", "--body", "Is the green one in?", *options],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    assert [find(json.loads(body), "text") for body in post.bodies(1)] == ["Is the green one in?"]


# Files


def maildir(path, *numbers):
    for folder in ("new", "cur", "tmp"):
        (path / folder).mkdir(parents=True)
    for number in numbers:
        (path / "new" / f"170000{number}.x.host").write_bytes(mail(number).as_bytes())
    return path


def test_a_maildir_is_left_alone_unless_it_is_told_otherwise(post, tmp_path):
    box = maildir(tmp_path / "Maildir", 1, 2)
    (box / "cur" / "1600003.x.host:2,S").write_bytes(mail(3).as_bytes())
    done = post.cli("--maildir", str(box))
    assert (done.returncode, done.stdout.startswith(b"3 taken, 0 refused")) == (0, True)
    assert len(list((box / "new").iterdir())) == 2
    done = post.cli("--maildir", str(box), "--move")
    assert (done.returncode, done.stdout.startswith(b"2 taken, 0 refused")) == (0, True)
    assert sorted(path.name for path in (box / "cur").iterdir()) == ["1600003.x.host:2,S", "1700001.x.host:2,", "1700002.x.host:2,"]
    assert not list((box / "new").iterdir())
    assert len({find(json.loads(body), "key") for body in post.bodies(3)}) == 3 == len(post.agent.requests)


def test_mails_that_are_not_taken_are_named_and_the_others_are_taken(post, tmp_path):
    box = maildir(tmp_path / "Maildir", 1, 2)
    bad = box / "new" / "1600000.x.host"
    bad.write_bytes(b"\nno header\n")
    done = post.cli("--maildir", str(box), "--move", "--json")
    assert done.returncode == 65 and str(bad).encode() in done.stderr
    summary = json.loads(done.stdout)
    assert (summary["taken"], summary["refused"]) == (2, 1)
    assert bad.exists() and len(list((box / "new").iterdir())) == 1


def test_what_is_no_fault_of_the_mail_is_tried_later(post, tmp_path):
    raw = mail(1).as_bytes()
    box = maildir(tmp_path / "Maildir", 1, 2)
    assert post.cli("--source", "missing", input=raw).returncode == 75
    assert post.cli("--source", "missing", "--maildir", str(box)).returncode == 78
    post.daemon.stop()
    done = post.cli(input=raw)
    assert done.returncode == 75 and b"nothing answers" in done.stderr
    assert post.cli("--maildir", str(box), "--move").returncode == 75
    assert len(list((box / "new").iterdir())) == 2


def test_the_envelope_line_of_a_pipe_is_no_header(post):
    assert post.cli(input=b"From jane@example.com  Mon Nov 16 10:00:00 2026\n" + mail(1).as_bytes()).returncode == 0
    assert [find(json.loads(body), "key") for body in post.bodies(1)] == ["mail:m1@example.com"]


def test_the_sources_own_secret_opens_the_door(house, monkeypatch):
    monkeypatch.setenv("LEADS_TOKEN", "a-secret-of-the-source")
    daemon = house.start(policy="version: 1\nsources:\n  leads: {preset: mail, verify: [bearer], secret: env:LEADS_TOKEN}\n", command="serve")
    words = [binary(), "receive", "mail", "--source", "leads", "--url", f"http://127.0.0.1:{daemon.port}"]
    for token, code in (("a-secret-of-the-source", 0), ("another", 75)):
        monkeypatch.setenv("SEMEL_TOKEN", token)
        done = subprocess.run(words, input=mail(1).as_bytes(), capture_output=True, timeout=120)
        assert done.returncode == code, done.stderr


def test_up_takes_mail_on_loopback_only():
    for option in ("--smtp", "--lmtp"):
        done = subprocess.run([binary(), "up", option, "0.0.0.0:0"], capture_output=True, timeout=120)
        assert done.returncode == 64


# ---- TLS and login ----


class SecurePost(Post):
    """A daemon with tokens, that takes mail under TLS."""

    def __init__(self, house, server, certificate, *options):
        self.agent = server(lambda head, body: reply())
        self.certificate = certificate
        tls = ["--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1])]
        self.daemon = house.make("sqlite", command="serve", policy=POLICY.format(url=self.agent.url),
                                 options=["--smtp", "127.0.0.1:0", "--smtps", "127.0.0.1:0", *tls, *options])
        self.start()
        self.secure_port = int(re.findall(r"SMTPS on 127\.0\.0\.1:(\d+)", self.daemon.said())[-1])
        self.admin = (self.daemon.data / "admin.token").read_text().strip()
        self.context = ssl.create_default_context(cafile=str(certificate[0]))
        self.client = house.client(self.daemon, token=self.admin, tls=self.context)

    def token(self, *scopes):
        made = self.client.post("/v1/tokens", {"name": "mailer", "scopes": list(scopes)})
        assert made.status == 201, made
        return made.json["token"]


@pytest.fixture
def secure(house, server, certificate):
    return lambda *options: SecurePost(house, server, certificate, *options)


def test_python_sends_by_starttls_and_by_smtps_and_logs_in(secure):
    post = secure("--smtp-login")
    token = post.token("claim")
    with post.smtp() as smtp:
        smtp.ehlo()
        assert smtp.has_extn("starttls")
        with pytest.raises(smtplib.SMTPSenderRefused) as refused:
            smtp.sendmail("jane1@example.com", ["leads@shop.example"], wire(mail(1)))
        assert refused.value.smtp_code == 530
        smtp.starttls(context=post.context)
        smtp.ehlo()
        assert smtp.esmtp_features["auth"].split() == ["PLAIN", "LOGIN"] and not smtp.has_extn("starttls")
        for wrong in ("sml_wrong", token[:-1] + ("x" if token[-1] != "x" else "y"), post.token("read")):
            with pytest.raises(smtplib.SMTPAuthenticationError):
                smtp.login("mailer", wrong)
        smtp.login("mailer", token)
        assert smtp.sendmail("jane1@example.com", ["leads@shop.example"], wire(mail(1))) == {}
    with smtplib.SMTP_SSL("127.0.0.1", post.secure_port, context=post.context, timeout=30) as smtp:
        smtp.ehlo()
        smtp.user, smtp.password = "mailer", token
        smtp.auth("LOGIN", smtp.auth_login)
        large = mail(2, text="\r\n".join(f"Line {n} of a long mail about chairs and tables" for n in range(60_000)))
        assert smtp.sendmail("jane2@example.com", ["leads@shop.example"], wire(large)) == {}
    bodies = [json.loads(body) for body in post.bodies(2)]
    assert sorted(body["content"]["key"] for body in bodies) == ["mail:m1@example.com", "mail:m2@example.com"]
    raw = [post.client.get(f"/v1/events/{body['event']}?raw=1").json["raw"]["body"] for body in bodies]
    assert all(" with ESMTPSA;" in text for text in raw)


def test_many_mails_in_one_connection_under_tls(secure):
    post = secure()
    with smtplib.SMTP_SSL("127.0.0.1", post.secure_port, context=post.context, timeout=30) as smtp:
        for number in range(20):
            assert smtp.sendmail(f"jane{number}@example.com", ["leads@shop.example"], wire(mail(number))) == {}
    assert len(post.bodies(20)) == 20


def test_curl_and_swaks_send_under_tls(secure, tmp_path):
    post = secure("--smtp-login")
    token = post.token("claim")
    (tmp_path / "mail").write_bytes(wire(mail(1)))
    for number, url in ((1, f"smtps://localhost:{post.secure_port}"), (2, f"smtp://localhost:{post.port}")):
        (tmp_path / "mail").write_bytes(wire(mail(number)))
        subprocess.run(["curl", "-sS", "--ssl-reqd", "--cacert", post.certificate[0], "--user", f"mailer:{token}", "--mail-from", "jane@example.com",
                        "--mail-rcpt", "leads@shop.example", "--upload-file", tmp_path / "mail", url], check=True, timeout=60, capture_output=True)
    if shutil.which("swaks"):
        for number, words in ((3, ["--tls", "--auth", "LOGIN", "--port", str(post.port)]), (4, ["--tls-on-connect", "--auth", "PLAIN", "--port", str(post.secure_port)])):
            (tmp_path / "mail").write_bytes(wire(mail(number)))
            done = subprocess.run(["swaks", "--server", "127.0.0.1", "--from", "jane@example.com", "--to", "leads@shop.example", "--auth-user", "mailer",
                                   "--auth-password", token, "--data", f"@{tmp_path}/mail", *words], timeout=60, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout
    want = 4 if shutil.which("swaks") else 2
    assert sorted(json.loads(body)["content"]["key"] for body in post.bodies(want)) == [f"mail:m{n}@example.com" for n in range(1, want + 1)]


def test_clear_text_behind_starttls_is_not_obeyed(secure):
    """CVE-2011-0411: a command that was smuggled in before TLS must not count behind it."""
    post = secure()
    with socket.create_connection(("127.0.0.1", post.port), timeout=30) as plain:
        plain.recv(1000)
        plain.sendall(b"EHLO c.example\r\n")
        plain.recv(1000)
        plain.sendall(b"STARTTLS\r\nEHLO c.example\r\n")
        said = b""
        while piece := plain.recv(1000):
            said += piece
    assert b"503 5.5.1" in said


def test_without_a_certificate_nothing_is_offered_and_what_cannot_be_is_refused_at_the_start(post):
    with post.smtp() as smtp:
        smtp.ehlo()
        assert not smtp.has_extn("starttls") and not smtp.has_extn("auth")
    for words, why in ((["serve", "--smtps", "127.0.0.1:0"], "--tls-cert"), (["up", "--smtp-login"], "semel serve")):
        done = subprocess.run([binary(), *words, "--data", "/nonexistent/x"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 64 and why in done.stderr
