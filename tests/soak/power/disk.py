"""What a power cut may leave behind: the model of the disk, which is unkinder than any file system that is in use.

- Data of a file since its last fsync is lost, kept, cut at a sector, or lacks one, which then has its old bytes, or
  zeros if it had none; its new size may be there without it.
- A name that was made, moved or removed is lost or kept, each on its own, until its directory is flushed. To flush a
  file does not keep its name, and a name may be there while the data is not.
- Of a file that was moved both names may be left. That neither is left happens only if the directory it left was
  flushed, and the one it went to was not.
- What was flushed is there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from soak.power.events import Content, Event, Filling, Link, Naming, Node, Sync, Touch, Truncate, Unlink, Write
from soak.power.remains import after_all, products, some_of, ways_to_keep, ways_to_remain

Names = dict[Node, dict[str, Node]]
Tree = dict[str, tuple[Node, Content | None]]
"""What lies where: nodes by path, with the content of files."""


@dataclass
class Disk:
    """What is surely on the disk, and what is under way to it."""

    names: Names = field(default_factory=dict[Node, dict[str, Node]])
    contents: dict[Node, Content] = field(default_factory=dict[Node, Content])
    dull: set[Node] = field(default_factory=set[Node])
    """Directories whose names mean nothing: of these, too, chance keeps some."""
    naming: list[tuple[int, Naming]] = field(default_factory=list[tuple[int, Naming]])
    """Changes of names that are not flushed, by the moment they were made."""
    filling: dict[Node, list[Filling]] = field(default_factory=dict[Node, list[Filling]])

    def take(self, moment: int, event: Event) -> None:
        """Something happens."""
        match event:
            case Link() | Unlink():
                self.naming.append((moment, event))
            case Write() | Truncate() | Touch():
                self.filling.setdefault(event.node, []).append(event)
            case Sync(node) if node.is_directory:
                for _, change in self.naming:
                    if change.directory is node:
                        _rename(self.names, change)
                self.naming = [(then, change) for then, change in self.naming if change.directory is not node]
            case Sync(node):
                for change in self.filling.pop(node, ()):
                    self.contents[node] = self.contents.get(node, Content()).after(change)

    # -- the states it may be left in

    def everything(self, root: Node) -> Tree:
        """The disk as programs see it while there is power."""
        whole = {node: after_all(self.contents.get(node, Content()), changes) for node, changes in self.filling.items()}
        return self._tree(root, [change for _, change in self.naming], whole)

    def states(self, root: Node, since: int, chance: random.Random, *, most: int) -> list[Tree]:
        """States that a cut may leave now, none of them twice. Of what is older than ``since``, chance keeps some.

        All of them if few changes are under way; or else ``most``, with those in which all is lost or kept.
        """
        trees: dict[object, Tree] = {}
        for kept in some_of(self._kept_names(since, chance), chance, most):
            for tree in self._filled(root, kept, chance, most):
                trees.setdefault(key_of(tree), tree)
        return some_of(list(trees.values()), chance, most)

    def _kept_names(self, since: int, chance: random.Random) -> list[list[Naming]]:
        is_old = [moment < since or change.directory in self.dull for moment, change in self.naming]
        old = [change for (_, change), is_so in zip(self.naming, is_old, strict=True) if is_so]
        young = [change for (_, change), is_so in zip(self.naming, is_old, strict=True) if not is_so]
        some = [change for change in old if chance.random() < 0.5]
        choices = [
            [change for change, is_kept in zip(young, kept, strict=True) if is_kept]
            for kept in ways_to_keep(len(young), chance)
        ]
        return [self._in_order(older + kept) for older in ((old, some, []) if old else ([],)) for kept in choices]

    def _in_order(self, kept: list[Naming]) -> list[Naming]:
        """The same as they happened; but a file that was moved keeps its old name if it has not got its new one."""
        chosen = set(kept)
        lost = {change for _, change in self.naming} - chosen
        return [
            change
            for _, change in self.naming
            if change in chosen and not (isinstance(change, Unlink) and change.after in lost)
        ]

    def _filled(self, root: Node, kept: list[Naming], chance: random.Random, most: int) -> Iterator[Tree]:
        """Trees with these names, and with what may be in the files that are not flushed."""
        bare = self._tree(root, kept, {})
        dirty = list(dict.fromkeys(node for _, (node, _) in sorted(bare.items(), key=_path) if node in self.filling))
        remains = [ways_to_remain(self.contents.get(node, Content()), self.filling[node], chance) for node in dirty]
        for ways in some_of(products(remains, chance), chance, most):
            chosen = {node: way() for node, way in zip(dirty, ways, strict=True)}
            yield {path: (node, chosen.get(node, content)) for path, (node, content) in bare.items()}

    def _tree(self, root: Node, kept: Sequence[Naming], contents: dict[Node, Content]) -> Tree:
        names = {node: dict(entries) for node, entries in self.names.items()}
        for change in kept:
            _rename(names, change)
        tree: Tree = {}
        waiting = [("", root)]
        while waiting:
            path, directory = waiting.pop()
            for name, node in names.get(directory, {}).items():
                where = f"{path}{name}"
                if node.is_directory:
                    tree[where] = node, None
                    waiting.append((f"{where}/", node))
                else:
                    tree[where] = node, contents.get(node) or self.contents.get(node, Content())
        return tree


def key_of(tree: Tree) -> object:
    """What makes a state another one: names and bytes."""
    return frozenset((path, content and content.body) for path, (_, content) in tree.items())


def _rename(names: Names, change: Naming) -> None:
    entries = names.setdefault(change.directory, {})
    if isinstance(change, Link):
        entries[change.name] = change.node
    else:
        entries.pop(change.name, None)


def _path(item: tuple[str, object]) -> str:
    return item[0]
