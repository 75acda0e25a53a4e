"""A folder to let a command loose in, and a look at everything that lies there."""

import fnmatch
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

NOBODY = 65534


def snapshot(folder):
    """What lies below ``folder``: a dict from path (bytes) to kind, mode, owner and contents.

    Times of folders are left out, as a file that comes and goes again changes them.
    """
    found = {}
    root = os.fsencode(folder)
    queue = [b""]
    while queue:
        inside = queue.pop()
        with os.scandir(os.path.join(root, inside)) as entries:
            for entry in entries:
                path = os.path.join(inside, entry.name)
                about = entry.stat(follow_symlinks=False)
                kind, own = stat.S_IFMT(about.st_mode), (stat.S_IMODE(about.st_mode), about.st_uid)
                if kind == stat.S_IFDIR:
                    queue.append(path)
                    found[path] = ("folder", *own)
                elif kind == stat.S_IFLNK:
                    found[path] = ("link", os.readlink(entry.path))
                elif kind == stat.S_IFREG:
                    with open(entry.path, "rb") as file:
                        digest = hashlib.sha1(file.read()).digest()
                    found[path] = ("file", *own, about.st_mtime_ns, digest)
                else:
                    found[path] = (kind, *own, about.st_rdev)
    return found


def changes(before, after, allowed=()):
    """What is different and not ``allowed`` (patterns of paths), as a list of str.

    A temporary or hidden file that was not there before is never allowed.
    """
    said = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            continue
        name = path.decode("utf-8", "backslashreplace")
        verb = "is new" if path not in before else "is gone" if path not in after else "changed"
        last = os.path.basename(path)
        left = path not in before and (last.startswith(b".") or last.endswith(b".tmp"))
        if left or not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed):
            said.append(f"{name} {verb}")
    return said


def scratch(prefix):
    """A new folder, in memory if there is room: many small files are synced to the disk.

    Everybody may enter it, and device nodes work there.
    """
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    if place is not None:
        about = os.statvfs(place)
        if about.f_flag & os.ST_NODEV or about.f_bavail * about.f_frsize < 500e6:
            place = None
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    folder.chmod(0o755)
    return folder


class Sandbox:
    """A copy of a folder of samples that can be had again and again.

    The commands run in ``outer/box``, so that what they do in the folder above is seen as well.
    """

    def __init__(self, template, home):
        self.template, self.outer = Path(template), Path(home) / "outer"
        self.box = self.outer / "box"
        self._clean = False
        self._fresh()

    def _fresh(self):
        shutil.rmtree(self.outer, ignore_errors=True)
        self.outer.mkdir()
        shutil.copytree(self.template, self.box, symlinks=True)
        for name in ("home", "tmp"):
            (self.box / name).mkdir()
        self._pristine = snapshot(self.outer)
        self._clean = True

    def ready(self, setup=None, user=False):
        """Bring it into its first state, then let ``setup`` (a function of the path) change it.

        Returns
        -------
        dict
            The `snapshot` of that.
        """
        if not self._clean:
            self._fresh()
        if not user and setup is None:
            return self._pristine
        self._clean = False
        if user:
            os.lchown(self.outer, NOBODY, NOBODY)
            for path in [self.box, *self.box.rglob("*")]:
                os.lchown(path, NOBODY, NOBODY)
        if setup is not None:
            setup(self.box)
        return snapshot(self.outer)

    def after(self):
        """The `snapshot` after a command; one that changed anything makes for a fresh copy."""
        found = snapshot(self.outer)
        self._clean = self._clean and found == self._pristine
        return found
