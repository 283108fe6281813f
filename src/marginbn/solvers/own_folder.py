"""A folder in which nobody but this user and root can put a file.

What is read from a cache of machine code is run, so it is read from such a folder only.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from marginbn.files import PathLike


def own_folder(path: PathLike) -> Path:
    """The folder, made if need be, once it is sure that nobody else can put files there.

    It and everything above it must belong to this user or to root, and nobody else may write in
    it. Above it there may be a folder such as ``/tmp``, writable for all but sticky: there nobody
    can rename or remove what belongs to others. On systems without such owners nothing is checked.

    Raises
    ------
    PermissionError
        If others could change what is in the folder; the message says where and why.
    OSError
        If the folder cannot be made.
    """
    folder = Path(os.path.realpath(path))
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    if missing:
        _check_owners(missing[-1].parent, is_above=True)
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(place, 0o755)
    _check_owners(folder, is_above=False)
    return folder


def _check_owners(folder: Path, is_above: bool) -> None:
    if not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is no folder")
    for place in (folder, *folder.parents):
        reason = why_not_mine(os.stat(place), is_above)
        if reason:
            raise PermissionError(f"{str(place)!r} {reason}")
        is_above = True


def why_not_mine(status: os.stat_result, is_above: bool = False) -> str | None:
    """How somebody else could change a file or folder; None if only this user and root can.

    A mask of access control lists shows as the rights of the group, so these count as well.
    """
    if not hasattr(os, "geteuid"):
        return None
    if status.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (number {status.st_uid})"
    if is_above and status.st_mode & stat.S_ISVTX:
        return None
    if status.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid):
        return f"can be written by its group (number {status.st_gid})"
    return None


def _is_private_group(number: int) -> bool:
    """Whether a group has this user alone: many systems make one of the user's name."""
    try:
        import grp
        import pwd

        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except (ImportError, KeyError):
        return False
    if number == 0 or user.pw_gid != number:  # containers give group 0 to users without a name
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
