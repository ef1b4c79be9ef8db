"""Kill the three nodes of a store by turns while processes write, recall and forget through each; count what is lost.

python -m tests.stores.postgres.nodes_killed [KILLS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.stores.postgres.nodes import Cluster, NodeStores, three_nodes
from tests.stores.storm import Counts, Storm, nodes_place

__all__ = ["killed"]


def killed(cluster: Cluster, urls: tuple[str, ...], folder: Path, *, kills: int, processes: int = 6) -> Counts:
    """Return what came of so many kills, the nodes by turns."""
    return Storm(nodes_place(cluster, urls), folder, processes=processes).rage(kills, ["server"] * kills)


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with three_nodes() as cluster, NodeStores(cluster).one() as urls, tempfile.TemporaryDirectory() as folder:
        counts = killed(cluster, urls, Path(folder), kills=kills)
        print(counts, *counts.foreign[:20], sep="\n", flush=True)


if __name__ == "__main__":
    main()
