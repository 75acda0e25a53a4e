"""Groups of pairs whose titles are hard negatives of each other's queries."""

import numpy as np

from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.copying import copy_row
from sentemb.kernels.dropout import mixed

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
# Titles that are drawn for a group, per pair that is wanted.
_TRIES = 3


@kernel
def group_pairs(grouped, groups, order, queries, titles, n_titles, hard_titles, size, key):
    """Put pairs into groups: a pair, and pairs whose titles are hard negatives of its query.

    The first pair of a group is the first in ``order`` that has no group yet. Titles are drawn from
    the list of its query; the first pair of such a title that has no group joins, unless the group
    has the title already. A group stays smaller than ``size`` where this fails too often. The
    number of groups is returned.

    grouped, groups : (n_pairs,) int64, written: the pairs, group after group, and the number of the
        group of each
    order : (n_pairs,) int64, a permutation of the pairs
    queries, titles : (n_pairs,) int32, the query and the clicked title of each pair
    hard_titles : (n_queries, m) int32, hard negatives of every query, -1 where there are fewer
    size : the most pairs of a group, at least 1
    key : uint64, decides what is drawn
    """
    n_pairs, m = order.size, hard_titles.shape[1]
    # The pairs of every title, in the given order, and the first that may have no group.
    starts = np.zeros(n_titles + 1, np.int64)
    for title in titles:
        starts[title + 1] += 1
    for title in range(n_titles):  # np.cumsum would compile for 0.2 s
        starts[title + 1] += starts[title]
    free = starts[:-1].copy()
    of_titles = np.empty(n_pairs, np.int64)
    for pair in order:
        of_titles[free[titles[pair]]] = pair
        free[titles[pair]] += 1
    copy_row(free, starts)
    is_taken = np.zeros(n_pairs, np.bool_)
    state = key
    count = n_groups = 0
    for leader in order:
        if is_taken[leader]:
            continue
        is_taken[leader] = True
        first = count
        grouped[count], groups[count] = leader, n_groups
        count += 1
        tries = _TRIES * size
        while count - first < size and tries > 0:
            tries -= 1
            state += _INCREMENT
            title = hard_titles[queries[leader], np.int64(mixed(state) >> np.uint64(1)) % m]
            if title < 0:
                continue
            while free[title] < starts[title + 1] and is_taken[of_titles[free[title]]]:
                free[title] += 1
            is_new = free[title] < starts[title + 1]
            for member in grouped[first:count]:
                if titles[member] == title:
                    is_new = False
            if is_new:
                pair = of_titles[free[title]]
                is_taken[pair] = True
                grouped[count], groups[count] = pair, n_groups
                count += 1
        n_groups += 1
    return n_groups
