"""What is left of a stage whose work failed: the error is that of the work, whatever becomes of the stage."""

from __future__ import annotations

import pytest

from platform_assets.engine.publishing import discarded_on_error
from platform_assets.lakehouse.errors import LakeError


@pytest.mark.parametrize(
    ("left", "told"),
    [
        (OSError(28, "No space left on device"), "The stage could not be removed: [Errno 28] No space left on device."),
        (LakeError("The store does not answer.", "Try."), "The stage could not be removed: The store does not answer."),
    ],
)
def test_that_a_stage_cannot_be_removed_is_a_note_and_not_in_place_of_what_failed(left: Exception, told: str) -> None:
    def discard() -> None:
        raise left

    with pytest.raises(ValueError, match="what failed") as caught, discarded_on_error("The stage", discard):
        raise ValueError("what failed")
    assert caught.value.__notes__ == [told]
