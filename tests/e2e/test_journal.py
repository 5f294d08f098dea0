"""The checker of stories has to catch what it is there for."""

import pytest

from journal import Journal, check_story

CLAIM = {"kind": "claim", "fence": 1, "state": "claimed", "reason": "first"}
SENT = {"kind": "sent", "fence": 1, "state": "sent", "reason": "before_the_act"}
LAPSE = {"kind": "lapse", "fence": 1, "state": "pending", "reason": "lapsed_before_sent"}
NO_EFFECT = {"kind": "fail", "fence": 1, "state": "pending", "reason": "no_effect"}
AGAIN = {"kind": "claim", "fence": 2, "state": "claimed", "reason": "again"}


def test_good_stories_pass():
    check_story("i", [CLAIM, LAPSE, AGAIN], [1, 2], set())
    check_story("i", [CLAIM, SENT, NO_EFFECT, AGAIN], [1, 2], {("i", 1)})


@pytest.mark.parametrize("rows, fences, sent", [
    ([CLAIM, AGAIN], [1, 2], set()),  # two holders at once
    ([CLAIM, SENT, LAPSE, AGAIN], [1, 2], {("i", 1)}),  # given on after it was sent
    ([CLAIM, LAPSE, AGAIN], [1, 2], {("i", 1)}),  # an acknowledged `sent` is missing
    ([CLAIM], [1, 2], set()),  # an acknowledged claim is missing
    ([CLAIM, LAPSE, {**AGAIN, "fence": 1}], [1], set()),  # the fence did not grow
    ([CLAIM, SENT, {**LAPSE, "reason": "lapsed_after_sent_may_repeat"}, AGAIN], [1, 2], set()),
    ([CLAIM, {**LAPSE, "state": "unknown"}, AGAIN], [1, 2], set()),
])
def test_bad_stories_are_caught(rows, fences, sent):
    with pytest.raises(AssertionError):
        check_story("i", rows, fences, sent)


def test_two_holders_of_one_fence_are_caught():
    journal = Journal()
    journal.proceeded = [("k", "i", 1), ("k", "i", 1)]
    with pytest.raises(AssertionError):
        journal.verify(port=0)
