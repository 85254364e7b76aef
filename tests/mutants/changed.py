"""The files that a change touches."""

import subprocess

from tests.mutants.targets import ROOT


def base() -> str | None:
    """The commit to compare with: where the branch left `origin/main`, or the one before `HEAD`.

    None if there is neither: a clone of depth one has no earlier commit, and an exported tree no history.
    """
    head = _git("rev-parse", "HEAD")
    for commit in (_git("merge-base", "HEAD", "origin/main"), _git("rev-parse", "--verify", "HEAD~1")):
        if commit and commit != head:
            return commit
    return None


def changed_since(commit: str) -> list[str]:
    """Paths, relative to the root, that differ from a commit: in later commits or uncommitted."""
    return (_git("diff", "--name-only", "--relative", commit) or "").splitlines()


def _git(*arguments: str) -> str | None:
    """What git answers, None if it refuses or there is no git."""
    try:
        answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
