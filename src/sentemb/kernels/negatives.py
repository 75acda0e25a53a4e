"""Drawing negatives: titles that were not clicked for a query."""

import numpy as np

from sentemb.kernels.ascending import first_from
from sentemb.kernels.compiling.jit import inner_kernel, kernel


@inner_kernel
def _next(state):
    """One step of SplitMix64: advances state[0] and returns 64 random bits."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner_kernel
def _below(state, limit):
    """A random number from 0 to limit - 1; its bias, limit / 2^63, is negligible."""
    return np.int64(_next(state) >> np.uint64(1)) % limit


@inner_kernel
def _contains(titles, title):
    """Whether sorted ``titles`` hold ``title``."""
    at = first_from(titles, 0, titles.size, title)
    return at < titles.size and titles[at] == title


@inner_kernel
def _take(chosen, start, count, title, refused):
    """Add ``title`` to a pair's list unless it is there or in sorted ``refused``; the new count."""
    for k in range(count):
        if chosen[start + k] == title:
            return count
    if _contains(refused, title):
        return count
    chosen[start + count] = title
    return count + 1


@kernel
def draw_negatives(
    queries,
    clicked,
    pool,
    skipped_offsets,
    skipped,
    n_negatives,
    query_offsets,
    sorted_titles,
    seed,
):
    """For every pair a list of candidates: its clicked title, then up to ``n_negatives`` others.

    Titles that were shown and skipped come first, if the log has them, then titles drawn from
    ``pool`` with its frequencies. None is clicked for the same query anywhere in the log, and none
    is listed twice. A pair gets fewer than ``n_negatives`` only if there are no more. The lists are
    returned as offsets (n_pairs + 1,) int64 and candidates (n,) int32.

    queries, clicked : (n_pairs,) int32, the numbers of the pairs' queries and titles
    pool : (k,) int32, titles to draw from; repeats make a title more likely
    skipped_offsets, skipped : (n_pairs + 1,) int64, (n,) int32, skipped titles of each pair
    query_offsets, sorted_titles : (n_queries + 1,) int64, (n,) int32, the clicked titles of every
        query of the log, ascending for each query
    seed : uint64
    """
    state = np.array([seed], np.uint64)
    chosen = np.empty(queries.size * (n_negatives + 1), np.int32)
    offsets = np.zeros(queries.size + 1, np.int64)
    for r in range(queries.size):
        start = offsets[r]
        query = queries[r]
        refused = sorted_titles[query_offsets[query] : query_offsets[query + 1]]
        chosen[start] = clicked[r]
        count = 1
        unclicked = skipped[skipped_offsets[r] : skipped_offsets[r + 1]].copy()
        for k in range(unclicked.size):  # in random order
            swapped = k + _below(state, unclicked.size - k)
            unclicked[k], unclicked[swapped] = unclicked[swapped], unclicked[k]
            if count <= n_negatives:
                count = _take(chosen, start, count, unclicked[k], refused)
        tries = 20 * n_negatives if pool.size > 0 else 0
        while count <= n_negatives and tries > 0:
            title = pool[_below(state, pool.size)]
            count = _take(chosen, start, count, title, refused)
            tries -= 1
        if count <= n_negatives and pool.size > 0:
            # Nearly everything is clicked for this query: look at all that is left.
            shift = _below(state, pool.size)
            for k in range(pool.size):
                if count <= n_negatives:
                    title = pool[(shift + k) % pool.size]
                    count = _take(chosen, start, count, title, refused)
        offsets[r + 1] = start + count
    return offsets, chosen[: offsets[-1]].copy()


@kernel
def titles_to_leave_out(queries, clicked, query_offsets, query_titles, local_title):
    """For every pair, the other titles of the batch that are clicked for its query.

    queries, clicked : (n_pairs,) int32
    query_offsets, query_titles : (n_queries + 1,) int64, (n,) int32, the clicked titles of every
        query of the log
    local_title : (n_titles,) int32, the index of a title in the batch, -1 for titles that are not
        in it
    Returns (n_pairs + 1,) int64 offsets, and (n,) int32 indices in the batch
    """
    offsets = np.zeros(queries.size + 1, np.int64)
    for r in range(queries.size):
        query = queries[r]
        offsets[r + 1] = offsets[r] + query_offsets[query + 1] - query_offsets[query]
    titles = np.empty(offsets[-1], np.int32)
    count = 0
    for r in range(queries.size):
        query = queries[r]
        for entry in range(query_offsets[query], query_offsets[query + 1]):
            title = query_titles[entry]
            if title != clicked[r] and local_title[title] >= 0:
                titles[count] = local_title[title]
                count += 1
        offsets[r + 1] = count
    return offsets, titles[:count].copy()
