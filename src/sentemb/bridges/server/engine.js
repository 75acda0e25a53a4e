// The search page's engine that asks the server; bridges/page/search_page.py says what an engine is.
const PATIENCE = 30000; // milliseconds until an answer is given up

/**
 * The answer to a request; paths are relative, so that a proxy may add a prefix. With `body` it
 * is a POST, which the browser finishes even if the page is left.
 */
async function ask(path, parameters, signal, body) {
  const own = new AbortController();
  const stop = () => own.abort();
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  let late = false;
  const clock = setTimeout(() => {
    late = true;
    stop();
  }, PATIENCE);
  try {
    const query = String(new URLSearchParams(parameters));
    const post = {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
      keepalive: true,
    };
    const answer = await fetch(query ? `${path}?${query}` : path, {
      ...(body && post),
      signal: own.signal,
      cache: "no-store",
      credentials: "same-origin",
    });
    const text = await answer.text();
    return read(answer, text);
  } catch (error) {
    if (late) throw new Error(`the server has not answered for ${PATIENCE / 1000} seconds`);
    if (error instanceof TypeError) throw new Error("the server cannot be reached; is it running?");
    throw error;
  } finally {
    clearTimeout(clock);
    signal?.removeEventListener("abort", stop);
  }
}

/** The JSON of an answer. A proxy may answer with a page of its own. */
function read(answer, text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error(`the server answered with status ${answer.status}`);
  }
  if (!answer.ok) throw new Error(found?.error ?? `the server answered with status ${answer.status}`);
  return found;
}

const facts = JSON.parse(document.getElementById("facts").textContent);

/** The parameters of a search. */
function search(query, k, { filters, sort, offset }) {
  const asked = { q: query, k };
  if (offset) asked.offset = offset;
  const where = Object.entries(filters).map(([name, value]) =>
    /^[<>]=/.test(name)
      ? `"${name.slice(2)}" ${name.slice(0, 2)} ${Number(value)}`
      : `"${name}" = '${value.replaceAll("'", "''")}'`,
  );
  if (where.length) asked.where = where.join(" and ");
  if (sort) asked.sort = sort;
  if (facts.facets.length) asked.facets = facts.facets.join(",");
  return asked;
}

/** An answer with facets as pairs by their counts: an object has keys that are integers first. */
function inOrder(answer) {
  for (const [name, counts] of Object.entries(answer.facets ?? {})) {
    answer.facets[name] = facetsInOrder(Object.entries(counts));
  }
  return answer;
}

globalThis.engine = {
  facts,
  search: (query, k, signal, how) =>
    ask("search", { ...search(query, k, how), draft: true }, signal).then(inOrder),
  record: facts.records && ((query, k, how) => ask("search", search(query, k, how))),
  suggest: (query, signal) => ask("suggest", { q: query }, signal).then(({ suggestions }) => suggestions),
  click: (search, id) => ask("click", {}, undefined, { search, id }),
  explain: (query, id, signal) => ask("explain", { q: query, id }, signal),
  gates: (query, id, signal) => ask("gates", { q: query, id }, signal),
};
