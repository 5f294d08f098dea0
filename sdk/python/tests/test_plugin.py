"""The pytest plugin, used as a project would use it."""

import pathlib
import smtplib

import pytest

from semel import current, once
from semel.testing import Crash, CrashReport, step

HERE = pathlib.Path(__file__).resolve().parents[1]
PLUGIN = ["-p", "semel.pytest_plugin", "-p", "no:cacheprovider"]


@pytest.fixture
def project(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    return pytester


def test_a_project_tests_its_tool(project):
    project.makepyfile("""
        from semel import once

        def test_it_happens_once(semel, effects, run_twice):
            @once("charge:{order}")
            def charge(order):
                return effects.happen("/charges", body={"order": order})

            assert run_twice(charge, "o1") == [{"id": "eff_1"}] * 3
            assert effects.happened == 1 and effects.requests[0].what == "POST /charges"
            assert semel.intents(state="confirmed")[0]["key"] == "charge:o1"

        async def coroutine():
            return 1

        def test_coroutines_too(run_twice):
            assert run_twice(coroutine) == [1, 1, 1]

        def test_each_test_has_a_semel_of_its_own(semel):
            assert semel.intents() == []
    """)
    project.runpytest_subprocess(*PLUGIN, "--semel-repeat=3").assert_outcomes(passed=3)


def test_without_a_binary_the_tests_are_skipped(project, monkeypatch):
    monkeypatch.delenv("SEMEL_BIN")
    monkeypatch.setenv("PATH", "/nonexistent")
    project.makepyfile("def test_it(semel): pass\ndef test_crash(crash_at_every_step): pass")
    project.runpytest_subprocess(*PLUGIN).assert_outcomes(skipped=2)


def test_the_entry_point_names_the_plugin():
    text = (HERE / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nsemel = "semel.pytest_plugin"' in text


# ---- a crash at every step ----

LEASE = 2.0  # the machine may be slow between two steps
BEFORE_THE_ACT = ["before claim", "after claim", "before sent", "after sent"]


def test_killed_at_every_step_it_happens_once_or_is_unknown(crash_at_every_step, effects):
    @once("charge:{order}")
    def charge(order):
        answer = effects.happen("/charges")
        step("between two statements")
        return answer

    report = crash_at_every_step(charge, "o1", lease=LEASE)
    report.assert_once()
    names = [crash.step for crash in report.crashes]
    assert names == [*BEFORE_THE_ACT, "between two statements", "before confirm", "after confirm"]
    effects_of = {crash.step: (crash.effects, crash.outcome.split(" ")[1]) for crash in report.crashes}
    assert effects_of["before claim"] == effects_of["after claim"] == effects_of["before sent"] == (1, "{'id':")
    assert effects_of["after sent"] == (0, "OutcomeUnknown:")  # nobody can tell that it had not begun
    assert effects_of["before confirm"] == (1, "OutcomeUnknown:")
    assert effects_of["after confirm"] == (1, "{'id':")
    assert "killed after sent" in str(report)


def test_killed_at_every_step_with_a_destination_that_deduplicates(crash_at_every_step, effects):
    @once("charge:{order}", on_crash="retry")
    async def charge(order):
        return effects.happen("/charges", key=current().downstream_key)

    report = crash_at_every_step(charge, "o1", lease=LEASE)
    report.assert_once()
    assert [(crash.effects, crash.value) for crash in report.crashes] == [(1, {"id": "eff_1"})] * 4


def test_killed_at_every_step_a_policy_applies(crash_at_every_step, effects):
    @once("charge:{order}")
    def charge(order):
        return effects.happen("/charges", key=current().downstream_key)

    report = crash_at_every_step(charge, "o1", lease=LEASE, policy="workflows:\n  charge:\n    capability: idempotent\n    window: 1h\n")
    report.assert_once()
    assert {crash.effects for crash in report.crashes} == {1}


def test_a_function_that_is_not_safe_is_found_out(crash_at_every_step, effects):
    def charge(order):
        effects.happen("/charges")
        step("after the charge")

    report = crash_at_every_step(charge, "o1", lease=LEASE)
    assert report.most == 2
    with pytest.raises(AssertionError, match="effects 2"):
        report.assert_once()
    with pytest.raises(AssertionError):
        CrashReport([Crash("s", 1, "raised KeyError: 1")]).assert_once()


def test_the_effects_fixture_takes_mail(effects):
    for _ in range(2):
        with smtplib.SMTP(*effects.smtp) as smtp:
            smtp.sendmail("me@x", ["a@b.c", "d@e.f"], "Message-ID: <m1@x>\r\nSubject: hi\r\n\r\nHello\r\n")
    assert len(effects.mails) == 2 and effects.happened == 1
    assert effects.mails[0].what == "a@b.c, d@e.f" and "Hello" in effects.mails[0].body
    effects.reset()
    assert effects.happened == 0
