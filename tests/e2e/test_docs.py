"""The documents are true: their console blocks are run as they stand, their links lead somewhere.

A block behind a line `<!-- run -->` is run; one document is one session with one daemon. A YAML block that begins with `# semel.yaml` becomes the
policy. `<!-- run: crm act_then_drop -->` also tells the destination's fake what to do with the next call. Destinations keep what the document
says of them except for their address. What differs from run to run (ids, times) is compared by its form, and an id that the document names later
is the one that was printed at its place. SEMEL_DOCS_UPDATE=1 writes what was printed into the documents."""

import datetime
import json
import os
import re
import subprocess
import time
import urllib.request

import pytest

import providers
from semel_process import REPO, binary, not_at_midnight, until

DOCUMENTS = ["README.md", "docs/using/effects.md", "docs/using/forward.md", "docs/using/exceptions.md", "docs/using/models.md", "docs/using/inbox.md", "docs/using/leads.md"]
BLOCK = re.compile(r"^<!-- run(?:: (?P<fault>[^\n]*?))? -->\n+```(?P<kind>console|yaml)\n(?P<text>.*?)^```$", re.M | re.S)
FAKES = {"stripe": "stripe", "crm": "generic", "slack": "slack", "openai": "openai", "local": "openai", "agent": "generic"}
ID = re.compile(r"\b(?:int|eff|exc|evt|thr|lead|rec|edg)_[0-9a-z]{13}\b")
URL = "http://127.0.0.1:7363"
CHANGING = [
    (ID, "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"\b(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\b"), "CLOCK"),  # what is due tomorrow has its day before it, whatever the hour of this run
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} CLOCK GMT"), "DATE"),
    (re.compile(r"\breq_[0-9a-z_]+"), "REQUEST"),
    (re.compile(r"\b\d+ s ago"), "AGO"),
    (re.compile(r"\bcame \d+ s before"), "BEFORE"),
    (re.compile(r"\b\d+ ms\b"), "MS"),
    (re.compile(r'"retry_after_ms":\d+'), "RETRY"),
    (re.compile(r"Retry-After: \d+"), "RETRY"),
    (re.compile(r'"created": \d{10}'), "CREATED"),
]


def form(text):
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return [re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines()]


def steps(text):
    """[(command, what it prints)]"""
    parts = re.split(r"^\$ ", text, flags=re.M)
    assert parts[0].strip() == "", "a console block begins with a command"
    for part in parts[1:]:
        lines = part.splitlines(keepends=True)
        count = 1
        while lines[count - 1].rstrip("\n").endswith("\\"):
            count += 1
        yield "".join(lines[:count]).rstrip("\n"), "".join(lines[count:])


class Session:
    def __init__(self, house, directory):
        self.house, self.directory, self.daemon = house, directory, None
        self.fakes, self.ids = {}, {}
        (directory / "bin").mkdir()
        (directory / "bin" / "semel").symlink_to(binary())
        (directory / "send-digest.sh").write_text("#!/bin/sh\necho sent 214 mails\n")
        (directory / "send-the-mail").write_text("#!/bin/sh\n")
        for name in ("send-digest.sh", "send-the-mail"):
            (directory / name).chmod(0o755)

    def start(self):
        self.daemon = self.daemon or self.house.start("sqlite", name="docs")
        self.url = f"http://127.0.0.1:{self.daemon.port}"

    def end(self):
        for fake in self.fakes.values():
            fake.stop()

    def apply(self, text):
        def moved(line):
            name = line.group(1)
            fake = self.fakes.setdefault(name, providers.start(FAKES[name]))
            rest = re.sub(r' url: "[^"]*",?', "", " " + line.group(2))
            return f'  {name}: {{url: "{fake.url}", allow_private: true,{rest}'

        policy = re.sub(r"^  (%s): \{(.*)$" % "|".join(FAKES), moved, text, flags=re.M)
        (self.directory / "semel.yaml").write_text(policy)
        self.start()
        assert self.run("semel policy apply semel.yaml").startswith("policy")

    def idle(self):
        soon = (datetime.datetime.utcnow() + datetime.timedelta(seconds=30)).isoformat()
        with urllib.request.urlopen(f"{self.url}/v1/effects?limit=200") as answer:
            effects = json.load(answer)["data"]
        with urllib.request.urlopen(f"{self.url}/readyz") as answer:
            assert not json.load(answer)["events_failing"]
        with urllib.request.urlopen(f"{self.url}/v1/events?verdict=waiting") as answer:
            if json.load(answer)["data"]:
                return False
        return all(one["step"] in ("person", "finished") or one["attended"] or (one["due_at"] or "") > soon for one in effects)

    def run(self, command):
        self.start()
        until(self.idle, "an outbox that has come to rest")
        environment = {**os.environ, "PATH": f"{self.directory}/bin:{os.environ['PATH']}", "SEMEL_URL": self.url, "XDG_STATE_HOME": str(self.directory)}
        done = subprocess.run(["bash", "-c", command.replace(URL, self.url)], cwd=self.directory, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        return done.stdout.decode().replace(self.url, URL).replace("\r", "")

    def fault(self, words):
        name, *faults = words.split()
        self.fakes[name].script(faults)

    def block(self, found):
        if found["fault"]:
            self.fault(found["fault"])
        if found["kind"] == "yaml":
            self.apply(found["text"])
            return found["text"]
        written = ""
        for command, said in steps(found["text"]):
            actual = ID.sub(lambda id: self.ids.get(id.group(), id.group()), command)
            printed = self.run(actual)
            if command.startswith("semel why"):  # duplicates are written into the story up to a second later
                end = time.monotonic() + (2 if UPDATE else 60)
                while (UPDATE or form(printed) != form(said)) and time.monotonic() < end:
                    time.sleep(0.1)
                    printed = self.run(actual)
            self.ids.update(zip(ID.findall(said), ID.findall(printed)))
            end = "" if not printed or printed.endswith("\n") else "\n"
            written += f"$ {actual}\n{printed}{end}"
            if not UPDATE:
                assert form(printed) == form(said), f"{command}\n{printed}"
        return written


UPDATE = bool(os.environ.get("SEMEL_DOCS_UPDATE"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_the_document_shows_is_what_happens(house, tmp_path, monkeypatch, name):
    for word in ("STRIPE_KEY", "SLACK_TOKEN", "OPENAI_KEY", "FORM_SECRET"):
        monkeypatch.setenv(word, "a-secret")
    not_at_midnight()
    path, session = REPO / name, Session(house, tmp_path)
    text = path.read_text()
    found = list(BLOCK.finditer(text))
    assert found, "nothing to run"
    try:
        parts, at = [], 0
        for block in found:
            parts += [text[at:block.start("text")], session.block(block)]
            at = block.end("text")
    finally:
        session.end()
    if UPDATE:
        path.write_text("".join(parts) + text[at:])


# ---- links ----


def markdown():
    listed = subprocess.run(["git", "-C", str(REPO), "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split() if (REPO / name).is_file()]


def anchors(text):
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", head).lower()).replace(" ", "-") for head in heads}


def test_every_link_leads_somewhere():
    wrong = []
    for name in markdown():
        text = (REPO / name).read_text()
        prose = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            to = ((REPO / name).parent / file).resolve() if file else REPO / name
            if not to.exists() or (anchor and anchor not in anchors(to.read_text())):
                wrong.append(f"{name}: {target}")
    assert not wrong, "\n".join(wrong)


def test_problem_table_has_every_problem():
    codes = re.findall(r'^    \{"([a-z_]+)", [45]\d\d, RETRY_', (REPO / "src/api/problem.c").read_text(), re.M)
    page = (REPO / "docs/reference/api.md").read_text()
    assert [code for code in codes if f"| `{code}` |" not in page] == []


def test_every_route_and_metric_is_told_of():
    page = (REPO / "docs/reference/api.md").read_text()
    routes = re.findall(r'\{HTTP_[A-Z]+, "([^"]+)", SCOPE', (REPO / "src/api/routes.c").read_text())
    assert [path for path in routes if path.replace("/*", "") not in page and path.replace("{token}", "{id}") not in page] == []
    running = (REPO / "docs/operating/running.md").read_text()
    metrics = set(re.findall(r'"(semel_[a-z_]+)"', (REPO / "src/api/metrics.c").read_text()))
    assert len(metrics) > 15
    short = {name for name in metrics if name.startswith("semel_http_connections")}
    assert [name for name in sorted(metrics - short) if f"`{name}" not in running] == []
