"""Which commit code was at: of the repository that its files lie in, wherever that is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from platform_assets.records.code_version import DIRTY


class Commits:
    """Tells the commits of the code of several tables, which is mostly the same, and asks git nothing twice."""

    def __init__(self) -> None:
        self._git = shutil.which("git")
        self._said: dict[tuple[Path, tuple[str, ...]], str | None] = {}

    def of(self, files: Iterable[Path]) -> str:
        """The commit of the repository that tracks some files, marked where one of them is not as it has them.

        Files that git ignores or that lie in no repository, as installed packages do, say nothing. Where several
        repositories track some, their commits are joined by commas, in order of their folders. A link counts as what it
        leads to: the repository that the link lies in has the link alone, whatever the code is.

        Returns:
            Empty where no repository tracks any, or there is no git.
        """
        by_folder: defaultdict[Path, list[Path]] = defaultdict(list)
        for file in {file.resolve() for file in files}:
            by_folder[file.parent].append(file)
        by_repository: defaultdict[str, list[Path]] = defaultdict(list)
        for folder in sorted(by_folder) if self._git else ():
            if (root := self._asked(folder, "rev-parse", "--show-toplevel")) is not None:
                by_repository[root] += by_folder[folder]
        commits = (self._commit_in(Path(root), of_root) for root, of_root in sorted(by_repository.items()))
        return ", ".join(commit for commit in commits if commit)

    def _commit_in(self, root: Path, files: list[Path]) -> str | None:
        named = [str(file) for file in sorted(files)]
        if not self._asked(root, "ls-files", "--", *named):
            return None
        head = self._asked(root, "rev-parse", "HEAD")
        if not head:
            return None  # added, and nothing was ever committed
        # What is not tracked here, and not ignored, is part of the code and not of the commit.
        return head + DIRTY if self._asked(root, "status", "--porcelain", "--", *named) else head

    def _asked(self, folder: Path, *question: str) -> str | None:
        """What git says; None where it does not, as outside of a repository or in one that belongs to another user."""
        asked = folder, question
        if asked not in self._said:
            self._said[asked] = _said(self._git, folder, question)
        return self._said[asked]


def _said(git: str | None, folder: Path, question: Sequence[str]) -> str | None:
    if git is None or not folder.is_dir():
        return None
    # Where git itself started this, as in a hook, it has said which repository it means.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    asked = subprocess.run(
        [git, "--no-optional-locks", *question], cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 else None
