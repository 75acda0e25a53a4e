// -- where the model fails: slices, a list of all queries, the rankings of the worst ones ---------

const triage = data.triage;
const SHORT = 2; // words at most
const LONG = 9; // words at least
const rows = (triage?.rows ?? []).map(([text, value, words, unknown, clicks, first, best, kinds]) => ({
  text,
  value,
  words,
  unknown,
  clicks,
  first: ranked(first),
  best: ranked(best),
  kinds,
}));
const chosenSlices = new Map(); // number of a kind of slices -> the chosen one
const TOP = 10;
const QUICK = [
  [`best title not in the first ${TOP}`, (row) => row.best.rank === null || row.best.rank > TOP],
  ["first title wrong", (row) => !isBest(row.first, row.best)],
  ["unknown words", (row) => row.unknown > 0],
  [`short: up to ${SHORT} words`, (row) => row.words <= SHORT],
  [`long: ${LONG} words or more`, (row) => row.words >= LONG],
];
const SORTS = [
  ["worst first", null],
  ["surest of the first title", (a, b) => scoreOf(b.first) - scoreOf(a.first)],
  ["least sure of the first title", (a, b) => scoreOf(a.first) - scoreOf(b.first)],
  ["best title furthest down", (a, b) => (b.best.rank ?? Infinity) - (a.best.rank ?? Infinity) || 0],
  ["shortest query", (a, b) => a.words - b.words],
  ["most clicks", (a, b) => b.clicks - a.clicks],
];

function ranked(found) {
  if (found === null) return null;
  const [title, grade, rank, score, cosine] = found;
  return { title: triage.titles[title], place: title, grade, rank, score, cosine };
}

function scoreOf(found) {
  return found?.score ?? -Infinity;
}

function isBest(found, best) {
  return found !== null && (found.grade ?? 0) >= best.grade;
}

function percent(share) {
  return `${fixed(100 * share, share < 0.0995 && share > 0 ? 1 : 0)} %`;
}

function count(number) {
  return number.toLocaleString("en");
}

/** What a rank is called; null is somewhere below, or not there at all. */
function rankName(rank) {
  if (rank !== null) return String(rank);
  return triage.catalogue > triage.depth ? `below ${count(triage.depth)}` : "not found";
}

function longRankName(rank) {
  return rank === null ? rankName(rank) : `rank ${rank}`;
}

// -- slices --------------------------------------------------------------------------------------

function showSlices() {
  const { metric, mean, queries, evaluated, catalogue, kind } = triage;
  const right = kind === "clicked" ? "clicked" : "relevant";
  const titles = catalogue === null ? "the judged titles of each query" : `${count(catalogue)} titles`;
  const facts = [
    [metric, fixed(mean, 3)],
    ["Queries", count(evaluated)],
    ["Ranked", titles],
    ["Best title first", percent(triage.first)],
    [`Best title in the first ${TOP}`, percent(triage.found)],
  ];
  if (queries > evaluated) facts.push([`Without a ${right} title`, `${count(queries - evaluated)}, left out`]);
  for (const [name, value] of facts) {
    $("figures").append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  }
  $("slices-note").textContent =
    `Mean ${metric} of each kind of query, and its share of all that is lost: of the sum of ` +
    `1 − ${metric}. Choose a kind to list its queries below.`;
  triage.slices.forEach(([name, parts], k) => {
    const made = table(
      [name, "Queries", metric, "Lost"],
      parts.map(([label, number, value, lost], part) => {
        const button = make("button", { type: "button", "aria-pressed": "false" }, label);
        button.addEventListener("click", () => chooseSlice(k, part));
        const fill = make("i", { className: "plus" });
        fill.style.width = `${100 * lost}%`;
        fill.style.insetInlineStart = "0";
        return make(
          "tr",
          {},
          make("th", { scope: "row" }, button),
          make("td", { className: "number" }, count(number)),
          make("td", { className: "number" }, fixed(value, 3)),
          make(
            "td",
            { className: "lost" },
            make("span", { className: "number" }, percent(lost)),
            make("span", { className: "bar whole", "aria-hidden": "true" }, fill),
          ),
        );
      }),
    );
    $("slices").append(made);
  });
}

/** List only the queries of a slice, or all again if it was chosen; other kinds stay as they are. */
function chooseSlice(k, part) {
  if (chosenSlices.get(k) === part) chosenSlices.delete(k);
  else chosenSlices.set(k, part);
  [...$("slices").children].forEach((made, number) => {
    made.querySelectorAll("button").forEach((button, other) => {
      button.setAttribute("aria-pressed", String(chosenSlices.get(number) === other));
    });
  });
  filterRows();
}

// -- the list of queries -------------------------------------------------------------------------

function showRows() {
  $("pairs-heading").textContent = $("pairs-link").textContent = "Queries";
  $("pairs-note").textContent =
    (triage.kind === "clicked"
      ? "Worst first: the most clicks lost, that is clicks times 1 minus the figure; last of them single clicks on a " +
        `title below ${triage.depth}, which may be slips. Of equally bad queries `
      : "Worst first; of equally bad ones ") +
    "those with the highest score of the first title come first. The number " +
    `is the rank of the best title: ${triage.kind === "clicked" ? "a clicked one" : "the one with the highest grade"}. ` +
    (triage.worst.length < rows.length
      ? `The rankings of the worst ${count(triage.worst.length)} are on this page (--show). `
      : "") +
    (rows.length < triage.evaluated
      ? `The worst ${count(rows.length)} of ${count(triage.evaluated)} queries are listed.`
      : "");
  const options = rows.map((row, number) => {
    const isRight = isBest(row.first, row.best);
    const option = make(
      "div",
      { "aria-selected": "false", className: number < triage.worst.length ? "" : "plain" },
      isolated(row.text, "div"),
      make("div", { className: "score" }, rankName(row.best.rank)),
      isolated(row.first?.title ?? "nothing found", "div", "title"),
      make("div", { className: "grade" }, isRight ? "right" : gradeName(row.first)),
    );
    return option;
  });
  listBox($("pair-list"), options, chooseQuery);
  QUICK.forEach(([label, test]) => {
    const number = rows.filter(test).length;
    const input = make("input", { type: "checkbox", disabled: number === 0 });
    input.addEventListener("change", filterRows);
    $("quick").append(make("label", {}, input, `${label} (${count(number)})`));
  });
  SORTS.forEach(([label, order], k) => {
    if (label === "most clicks" && triage.kind !== "clicked") return;
    $("sort").append(make("option", { value: String(k) }, label));
  });
  $("sort").addEventListener("change", sortRows);
  $("filter").addEventListener("input", filterRows);
  filterRows();
}

function sortRows() {
  const order = SORTS[Number($("sort").value)][1];
  const numbers = rows.map((_, number) => number);
  if (order) numbers.sort((a, b) => order(rows[a], rows[b]) || a - b);
  $("pair-list").append(...numbers.map((number) => $(`pair-list-${number}`)));
  $("pair-list").scrollTop = 0;
}

function filterRows() {
  const wanted = $("filter").value.toLocaleLowerCase();
  const tests = [...$("quick").querySelectorAll("input")].flatMap((input, k) =>
    input.checked ? [QUICK[k][1]] : [],
  );
  let left = 0;
  rows.forEach((row, number) => {
    row.lower ??= [row.text, row.first?.title, row.best.title].join("\n").toLocaleLowerCase();
    const fits =
      row.lower.includes(wanted) &&
      tests.every((test) => test(row)) &&
      [...chosenSlices].every(([k, part]) => row.kinds[k] === part);
    $(`pair-list-${number}`).hidden = !fits;
    left += fits;
  });
  const kinds = [...chosenSlices].map(
    ([k, part]) => `${triage.slices[k][0]}: ${triage.slices[k][1][part][0]}`,
  );
  $("matching").textContent = [`${count(left)} of ${count(rows.length)} queries`, ...kinds].join(" · ");
  keepInView($("pair-list"));
}

// -- one query -----------------------------------------------------------------------------------

function gradeName(found) {
  if (!found) return "";
  if (triage.kind === "clicked") return found.grade ? "clicked" : "not clicked";
  return found.grade === null ? "not judged" : `grade ${found.grade}`;
}

function chooseQuery(number, wanted = null) {
  state.query = number;
  const row = rows[number];
  const detail = triage.worst[number];
  markChosen($("pair-list"), number);
  $("pair-heading").replaceChildren(
    make("span", { className: "side" }, "Query"),
    isolated(row.text, "span", "text"),
  );
  $("pair-facts").replaceChildren(...queryFacts(row));
  $("ranking-box").hidden = false;
  showRanking(row, detail);
  const pairs = detail?.pairs ?? [];
  $("inside").hidden = !pairs.length;
  $("cell-values-box").hidden = !pairs.length;
  const names = pairs.map((k) => pairName(data.pairs[k], row));
  showEffects(
    pairs.map((k) => data.pairs[k]),
    names,
  );
  showTitleChoice(pairs, names);
  if (pairs.length) pickPair(pairs.includes(wanted) ? wanted : pairs[0]);
  else remember();
}

function queryFacts(row) {
  const facts = [`${triage.metric} `, make("strong", {}, fixed(row.value, 3))];
  facts.push(` · best title: ${longRankName(row.best.rank)}`);
  facts.push(` · ${count(row.words)} ${row.words === 1 ? "word" : "words"}`);
  if (row.unknown) facts.push(`, ${count(row.unknown)} of them unknown to the model`);
  if (row.clicks > 1) facts.push(` · ${count(row.clicks)} held-out clicks`);
  return facts;
}

function pairName(some, row) {
  if (some.rank === 1 && some.title.text === row.first?.title) return "First title";
  return `Best title, ${longRankName(some.rank)}`;
}

function showTitleChoice(pairs, names) {
  $("title-box").hidden = pairs.length < 2;
  $("title-choice").replaceChildren(
    ...pairs.map((k, place) => {
      const input = make("input", { type: "radio", name: "title", value: String(k) });
      input.addEventListener("change", () => pickPair(k));
      return make("label", {}, input, names[place].toLowerCase());
    }),
  );
}

function pickPair(k) {
  for (const input of $("title-choice").querySelectorAll("input"))
    input.checked = input.value === String(k);
  choosePair(k);
}

function showRanking(row, detail) {
  const found = (detail?.titles ?? [row.first].filter(Boolean).map(unranked)).map(ranked);
  const best = detail ? ranked(detail.best) : row.best;
  const isShown = found.some((one) => one.title === best.title);
  const hasCosine = [...found, best].some((one) => one.cosine !== undefined);
  const line = (one) =>
    make(
      "tr",
      { className: one.title === best.title ? "best" : "" },
      make("td", { className: "number" }, rankName(one.rank)),
      make("th", { scope: "row" }, isolated(one.title)),
      make("td", {}, gradeMark(one, best)),
      make("td", { className: "number" }, one.score === null ? "" : fixed(one.score, 3)),
      ...(hasCosine
        ? [make("td", { className: "number" }, one.cosine == null ? "" : fixed(one.cosine, 3))]
        : []),
    );
  const lines = found.map(line);
  if (!isShown) {
    const gap = make("td", { colSpan: hasCosine ? 5 : 4 }, "⋮");
    lines.push(make("tr", { className: "gap", "aria-hidden": "true" }, gap), line(best));
  }
  const what = triage.kind === "clicked" ? "Clicked" : "Grade";
  const heads = ["Rank", "Title", what, "Score", ...(hasCosine ? ["Cosine"] : [])];
  const made = table(heads, lines);
  nameColumns(made, "rank", "", "mark", ...heads.slice(3).map(() => "score"));
  $("ranking").replaceChildren(made);
  $("ranking-note").textContent = detail
    ? `${count(detail.ranked)} titles are ranked for this query.`
    : "Only the worst queries have their whole ranking on this page; a higher --show shows more.";
  const told = new Map();
  for (const one of [found[0], best]) {
    const said = one && triage.evidence[one.place];
    if (said) told.set(one.title, said);
  }
  $("evidence").replaceChildren(...[...told].map(([title, said]) => evidenceLine(title, said)));
}

/** A title of a row in the form that `ranked` reads. */
function unranked(one) {
  return [one.place, one.grade, one.rank, one.score, one.cosine];
}

function gradeMark(one, best) {
  const isClicks = triage.kind === "clicked";
  if (isClicks && !one.grade) return "";
  let kind = "none";
  if (one.grade !== null) kind = one.grade >= best.grade ? "top" : one.grade > 0 ? "some" : "zero";
  const text = isClicks ? "clicked" : one.grade === null ? "not judged" : String(one.grade);
  return make("span", { className: `mark ${kind}` }, text);
}

function evidenceLine(title, [clicks, queries, examples]) {
  const line = make("li", {}, "In the log, ", isolated(title));
  if (!clicks) {
    line.append(" was never clicked.");
    return line;
  }
  const times = `${count(clicks)} ${clicks === 1 ? "click" : "clicks"}`;
  line.append(`: ${times} for ${count(queries)} ${queries === 1 ? "query" : "queries"}: `);
  examples.forEach((example, k) => line.append(...(k ? ["; "] : []), isolated(example)));
  if (queries > examples.length) line.append(" …");
  return line;
}
