"""Answers of object stores as errors with a remedy, without quoting the request.

Amazon's protocol and Azure's use other words, and for a listing the library reports every refusal as one kind of
failure, in which only the store's words differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from platform_assets.lakehouse.errors import LakeError, UnusableNameError

_CODE, _MESSAGE = re.compile(r"<Code>([^<]+)</Code>"), re.compile(r"<Message>([^<]+)</Message>")
_NOT_ALLOWED = (PermissionDeniedError, UnauthenticatedError)
_REFUSED = re.compile(
    r"status code[\s:]+40[13] |\(code: 40[13]\)|Invalid Access Key|<Code>(Expired|Invalid)Token</Code>"
)
_OTHER_TIME = re.compile(r"<Code>RequestTimeTooSkewed</Code>")
_DRAWN = re.compile(r"\x1b\[\d+m|↳")
"""How deltalake draws what led to what."""
_UNUSABLE = re.compile(r'invalid path: (?:Error parsing )?Path "([^"]*)"')
"""How the library passes on a name between whose slashes is nothing, or a dot or two."""
_OF_A_STORE = "Error performing "
"""How the library's messages about a failed request begin."""
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_VARIABLES = {
    "s3": ("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION", "AWS_ENDPOINT_URL, AWS_REGION"),
    "abfss": ("AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_ENDPOINT"),
}
"""Of a kind of store, where credentials are set, and where the place is that answers."""


@contextmanager
def refusals_explained(address: str) -> Iterator[None]:
    """Explain refusals of a store in this block as errors for people.

    Arrow and deltalake report refusals as errors of a file system.

    Raises:
        LakeError: access is denied, the bucket does not exist, or the store does not answer.
        AlreadyExistsError, PreconditionError, NotFoundError: as obstore raises them.
    """
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        if lacks_bucket(error):
            raise no_bucket(address) from None
        raise
    except (AlreadyExistsError, FileExistsError, PreconditionError):
        raise
    except (BaseError, OSError) as error:
        if not isinstance(error, BaseError) and _OF_A_STORE not in str(error):
            raise
        raise failure(error, address) from None


def failure(error: Exception, address: str) -> LakeError:
    """Explain a refused or unanswered request; the error is not chained, because it may quote anything."""
    credentials, place = _VARIABLES[address.partition(":")[0]]
    text = _plain(error)
    if lacks_bucket(error):
        return no_bucket(address)
    if unusable := _UNUSABLE.search(text):
        return UnusableNameError(
            f"What is below {address} cannot be listed: an object is called {unusable[1]}.",
            "Rename or remove it: a part of a name between two slashes must not be empty, `.` or `..`.",
        )
    if _OTHER_TIME.search(text):
        return LakeError(
            f"{address} may not be read or written: {_said(error)}.",
            "Set the clock of this machine: requests are signed with the time, and the store refuses a wrong one.",
        )
    if isinstance(error, _NOT_ALLOWED) or _REFUSED.search(text):
        return LakeError(
            f"{address} may not be read or written: {_said(error)}.",
            f"Set the credentials of the store ({credentials}), or give them the right to list, read, write and "
            "delete there.",
        )
    return LakeError(
        f"The object store does not answer for {address}: {_said(error)}.",
        f"Check that the bucket exists and that the store can be reached ({place}); then run the same again.",
    )


def lacks_bucket(error: Exception) -> bool:
    """Return whether an error says that the bucket is missing, not only the object. A HEAD request cannot tell."""
    return any(code in str(error) for code in _NO_BUCKET)


def no_bucket(address: str) -> LakeError:
    """Return the error for a bucket (Azure: container) that does not exist."""
    return LakeError(
        f"There is no bucket {'/'.join(address.split('/')[:3])} in this object store.",
        "Make it first, or name another one in PLATFORM_LAKE or PLATFORM_LANDING.",
    )


def _plain(error: Exception) -> str:
    return " ".join(_DRAWN.sub(" ", str(error)).partition("Debug source:")[0].split())


def _said(error: Exception) -> str:
    """Return a store's answer, or that there was none, without the request and its times."""
    text = _plain(error)
    if code := _CODE.search(text):
        said = _MESSAGE.search(text)
        # Azure adds by what number it knows the request
        return f"the store says {code[1]}" + (f": {said[1].partition(' RequestId:')[0].rstrip('.')}" if said else "")
    return text.rpartition(" - ")[2].rstrip(".: ") or type(error).__name__
