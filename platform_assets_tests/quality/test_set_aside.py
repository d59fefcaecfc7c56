"""Much of a day in quarantine, or of a file refused, is warned of; by that day or file alone, and never held."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from platform_assets.contracts import Checks
from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.quality.set_aside import quarantine_finding

DAY = date(2017, 5, 2)


def figures(keys: int, quarantined: int) -> dict[str, int]:
    return {"keys": keys, "keys_quarantined": quarantined}


def test_a_day_of_which_hardly_anything_is_good_is_warned_of_with_both_numbers() -> None:
    finding = quarantine_finding(SILVER_TRANSACTIONS, DAY, figures(832, 831))
    assert finding is not None
    assert not finding.blocks
    assert finding.message == (
        "silver.transactions on 2017-05-02: of 831 of 832 keys every row is in quarantine, more than 10 %; "
        "`platform-assets read quarantine.transactions --day 2017-05-02` shows them"
    )


@pytest.mark.parametrize(
    ("percent", "keys", "bad", "warns"),
    [(10, 10, 1, False), (10, 1000, 101, True), (0, 1000, 1, True), (0, 0, 0, False), (100, 5, 5, False)],
)
def test_the_limit_is_the_contract_s_and_may_be_reached(percent: int, keys: int, bad: int, *, warns: bool) -> None:
    contract = replace(SILVER_TRANSACTIONS, checks=Checks(aside_percent=percent))
    assert (quarantine_finding(contract, DAY, figures(keys, bad)) is not None) is warns


def test_nothing_is_said_of_days_whose_keys_were_not_counted() -> None:
    assert quarantine_finding(SILVER_TRANSACTIONS, DAY, {"quarantined": 831}) is None
