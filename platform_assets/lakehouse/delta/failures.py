"""What deltalake says of the operating system, or of an object store, in their own terms."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from platform_assets.lakehouse.storage.location import Location
from platform_assets.places import is_object_store

_OS_ERROR = re.compile(r"\(os error (\d+)\)")


@contextmanager
def errors_numbered(table_path: Location) -> Iterator[None]:
    """Errors of the operating system, a full disk for example, with their number; deltalake only puts them in words.

    Raises:
        LakeError: an object store refused a request, or did not answer.
    """
    if is_object_store(str(table_path)):
        from platform_assets.lakehouse.storage.answers import told_by_others  # which a lake on a disk does without

        with told_by_others(str(table_path)):
            yield
        return
    try:
        yield
    except OSError as error:
        said = _OS_ERROR.search(str(error))
        if error.errno is not None or said is None:
            raise
        number = int(said[1])
        raise OSError(number, os.strerror(number), str(table_path)) from error
