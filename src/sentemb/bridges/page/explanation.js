// What opens below a result: how its score came about, what each word does, the log, the gates.

const ROW = 18; // pixels, as the labels of a map in the style sheet
// From 0 to 1; the others have both signs, and their mean is that of their sizes.
const SIGMOIDS = ["input", "forget", "output"];
const GATES = {
  input: "input gate",
  forget: "forget gate",
  output: "output gate",
  candidate: "candidate",
  cell: "cell state",
  y: "output y",
};
const SIDES = ["query", "title"];

function panelOf(k) {
  return $(`panel-${k}`);
}

/** Close the open explanation and forget it. */
function collapse() {
  close();
  state.open = null;
  remember(false);
}

function close() {
  explaining?.abort();
  explaining = null;
  maps = [];
  for (const button of document.querySelectorAll('.hit[aria-expanded="true"]')) {
    button.setAttribute("aria-expanded", "false");
    $(button.getAttribute("aria-controls")).hidden = true;
  }
}

async function expand(k) {
  const hit = titlesOf(shown)[k];
  close();
  state.open = hit.id;
  $(`hit-${k}`).setAttribute("aria-expanded", "true");
  const panel = panelOf(k);
  panel.hidden = false;
  panel.setAttribute("aria-busy", "true");
  panel.replaceChildren(make("p", { className: "quiet" }, "Computing …"));
  const own = (explaining = new AbortController());
  try {
    const found = await engine.explain(shown.query, hit.id, own.signal);
    if (own === explaining && panel.isConnected) fill(panel, hit, found);
  } catch (error) {
    if (own === explaining && panel.isConnected) {
      const why = `This cannot be explained: ${message(error)}`;
      panel.replaceChildren(make("p", { className: "problem", role: "alert" }, why));
    }
  } finally {
    panel.removeAttribute("aria-busy");
  }
}

function fill(panel, hit, found) {
  const whole = found.effects_of ?? "score";
  const largest = Math.max(
    1e-9,
    ...SIDES.flatMap((side) => found[side].words.map((word) => Math.abs(word.effect))),
  );
  panel.replaceChildren(
    make("p", {}, ...account(hit, found.ranker)),
    ...(isSum(found.ranker) ? [partsTable(found.ranker)] : []),
    make("h2", {}, "What each word does"),
    make(
      "p",
      { className: "quiet" },
      `Effect of a word: the ${whole} minus the ${whole} without the word. `,
      `Blue words raise the ${whole}, orange words lower it.`,
    ),
    ...SIDES.flatMap((side) => effects(side, found[side], largest)),
    ...(found.nearest_queries ? evidence(found.nearest_queries) : []),
    ...(engine.facts.gates ? [gatesButton(panel, hit)] : []),
  );
}

/** Whether a score is anything but the cosine. */
function isSum({ parts }) {
  return parts.some(({ part, weight }) => part !== "cosine" || weight !== 1);
}

/** What the score is, how sure it is, and the id. */
function account(hit, ranker) {
  const what = isSum(ranker) ? "the sum of what its parts add" : "the cosine of the query and the title";
  const parts = [`Score ${fixed(hit.score, 3)}: ${what}.`];
  if (hit.confidence !== null) {
    const percent = fixed(100 * hit.confidence, 0);
    parts.push(` For ${percent} % of the queries with such a score, the best title is a clicked one.`);
  }
  parts.push(" Id ", isolated(hit.id), ".");
  return parts;
}

/** What each part adds to the score, and where that comes from. */
function partsTable({ parts }) {
  const heads = ["Part", "Adds", "Weight × value", "From"];
  const names = new Map(engine.facts.parts.map(({ part, name }) => [part, name]));
  const rows = parts.map((one) => {
    const weight = String(Number(one.weight.toPrecision(3))).replace("-", "−");
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, names.get(one.part)),
      make("td", { className: "number" }, signed(one.added, 3)),
      make("td", { className: "number" }, `${weight} × ${fixed(one.value, 3)}`),
      make("td", {}, ...sourceOf(one)),
    );
  });
  return make(
    "table",
    { className: "shares" },
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...rows),
  );
}

/** The text that the memory found, or the words of BM25 with what each adds to the score. */
function sourceOf({ weight, nearest, words, clicks, examined }) {
  if (clicks !== undefined) return [`${counted(clicks, "click")} for this query`];
  if (examined !== undefined) return [`looked at ${fixed(examined, 1)} times`];
  if (nearest) {
    if (!nearest.is_clicked) return ["the title itself"];
    return nearest.text === null ? ["a clicked query"] : ["clicked for ", isolated(nearest.text)];
  }
  return Object.entries(words ?? {}).flatMap(([word, value], k) => [
    ...(k ? [", "] : []),
    isolated(word),
    ` ${signed(weight * value, 3)}`,
  ]);
}

function effects(side, some, largest) {
  const unknown = new Set(some.unknown);
  const items = some.words.map(({ word, effect }) => {
    const item = make(
      "li",
      {},
      isolated(word, "span", unknown.has(word) ? "word unknown" : "word"),
      make("span", { className: "number" }, signed(effect, 3)),
    );
    item.style.background = shade(effect / largest);
    return item;
  });
  const name = side === "query" ? "Query" : "Title";
  const list = make("ul", { className: "effects", dir: "auto", "aria-label": `${name}, effects` });
  list.append(...items);
  const remarks = [];
  if (some.unknown.length) remarks.push(["The model knows nothing of ", some.unknown]);
  if (some.never_in_log?.length) {
    remarks.push([`In no ${side} of the log: `, some.never_in_log]);
  }
  return [
    make("p", { className: "side" }, name),
    list,
    ...remarks.map(([before, words]) =>
      make("p", { className: "quiet" }, before, ...listed(words), "."),
    ),
  ];
}

function evidence(nearest) {
  const heads = ["Cosine", "Query", "Clicked"].map((head) => make("th", { scope: "col" }, head));
  const rows = nearest.map((one) => {
    const clicked = one.clicked.slice(0, 3).flatMap(({ title, clicks }, k) => {
      const times = clicks > 1 ? [make("span", { className: "quiet" }, ` × ${clicks}`)] : [];
      return [...(k ? [make("br")] : []), isolated(title), ...times];
    });
    if (one.clicked.length > 3) {
      const more = ` and ${one.clicked.length - 3} more`;
      clicked.push(make("br"), make("span", { className: "quiet" }, more));
    }
    return make(
      "tr",
      {},
      make("td", {}, fixed(one.score, 3)),
      make("td", {}, isolated(one.query)),
      make("td", {}, ...clicked),
    );
  });
  return [
    make("h2", {}, "The nearest queries of the log, and what was clicked for them"),
    make(
      "table",
      { className: "log" },
      make("thead", {}, make("tr", {}, ...heads)),
      make("tbody", {}, ...rows),
    ),
  ];
}

// -- gates ---------------------------------------------------------------------------------------

function gatesButton(panel, hit) {
  const box = make("div", { id: "gates", hidden: true });
  const button = make(
    "button",
    { type: "button", className: "plain", "aria-expanded": "false", "aria-controls": "gates" },
    "Show the gates",
  );
  button.addEventListener("click", async () => {
    const opening = box.hidden;
    box.hidden = !opening;
    button.setAttribute("aria-expanded", String(opening));
    button.textContent = opening ? "Hide the gates" : "Show the gates";
    maps = [];
    if (!opening) return;
    const own = explaining;
    box.replaceChildren(make("p", { className: "quiet" }, "Computing …"));
    try {
      const found = await engine.gates(shown.query, hit.id, own?.signal);
      if (own === explaining && box.isConnected) showGates(box, found);
    } catch (error) {
      if (own !== explaining || !box.isConnected) return;
      const why = `The gates cannot be shown: ${message(error)}`;
      box.replaceChildren(make("p", { className: "problem", role: "alert" }, why));
    }
  });
  return make("div", {}, make("p", { className: "actions" }, button), box);
}

function showGates(box, found) {
  if (found === null) {
    box.replaceChildren(make("p", { className: "quiet" }, "This model has no gates."));
    return;
  }
  const names = Object.keys(GATES).filter((name) => found.query.gates[name]);
  const choice = make(
    "select",
    {},
    ...names.map((name) => make("option", { value: name }, GATES[name])),
  );
  const drawn = make("div", {});
  const draw = () => {
    maps = [];
    drawn.replaceChildren(...heatMaps(found, choice.value));
    drawMaps();
  };
  choice.addEventListener("change", draw);
  box.replaceChildren(
    make("h2", {}, "What the cells do at each word"),
    make(
      "p",
      { className: "quiet" },
      "Means over all cells; of values with both signs, the mean size.",
    ),
    ...SIDES.map((side) => means(side, found[side], names)),
    make(
      "div",
      { className: "maps" },
      make("label", { className: "quiet" }, "Every cell of the ", choice),
      drawn,
    ),
  );
  draw();
}

function meanOf(name, row) {
  const value = SIGMOIDS.includes(name) ? (x) => x : Math.abs;
  return row.reduce((sum, x) => sum + value(x), 0) / row.length;
}

/** A table of the words of a text and the mean of each gate. */
function means(side, some, names) {
  const heads = [side === "query" ? "Query" : "Title", ...names];
  const values = names.map((name) => some.gates[name].map((row) => meanOf(name, row)));
  const largest = names.map((name, j) =>
    SIGMOIDS.includes(name) ? 1 : Math.max(1e-9, ...values[j]),
  );
  const rows = some.words.map((word, t) => {
    const cells = names.map((_, j) => {
      const cell = make("td", { className: "number" }, fixed(values[j][t], 2));
      cell.style.background = shade(values[j][t] / largest[j]);
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row" }, isolated(word)), ...cells);
  });
  return make(
    "table",
    { className: "gates" },
    make(
      "thead",
      {},
      make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head))),
    ),
    make("tbody", {}, ...rows),
  );
}

/** One map per text, words down and cells across, and the scale of both. */
function heatMaps(found, name) {
  // Gates are drawn from the middle of their range, one half, the others from 0.
  const middle = SIGMOIDS.includes(name) ? 0.5 : 0;
  const all = SIDES.flatMap((side) => found[side].gates[name].flat());
  const reach = Math.max(1e-9, ...all.map((x) => Math.abs(x - middle)));
  const scaled = (x) => (x - middle) / reach;
  const figures = SIDES.map((side) => {
    const { words, gates } = found[side];
    const canvas = make("canvas", {
      role: "img",
      "aria-label":
        `${GATES[name]} of ${counted(gates[name][0].length, "cell")} ` +
        `at ${counted(words.length, "word")} of the ${side}`,
    });
    maps.push({ canvas, rows: gates[name].map((row) => row.map(scaled)) });
    const labels = make("div", { className: "labels", "aria-hidden": "true" });
    labels.append(...words.map((word) => isolated(word, "div")));
    return make("figure", {}, make("div", { className: "map" }, labels, canvas));
  });
  const canvas = make("canvas", { "aria-hidden": "true" });
  maps.push({ canvas, rows: [Array.from({ length: 101 }, (_, k) => k / 50 - 1)], height: 8 });
  const ends = [fixed(middle - reach, 2), fixed(middle + reach, 2)];
  return [...figures, make("div", { className: "scale quiet" }, ends[0], canvas, ends[1])];
}

function drawMaps() {
  const [plus, minus] = [cssColour("--plus"), cssColour("--minus")];
  for (const { canvas, rows, height } of maps) {
    const width = canvas.clientWidth;
    const ratio = devicePixelRatio || 1;
    const tall = height || ROW;
    canvas.style.height = `${rows.length * tall}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(rows.length * tall * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    rows.forEach((row, t) => {
      // Columns end on whole pixels of the screen, so that none is blurred.
      const x = (k) => Math.round((k * width * ratio) / row.length) / ratio;
      row.forEach((value, k) => {
        pen.fillStyle = `rgb(${value < 0 ? minus : plus} / ${Math.abs(value).toFixed(3)})`;
        pen.fillRect(x(k), t * tall, x(k + 1) - x(k), height ? tall : tall - 1);
      });
    });
  }
}
