// The values of cells as heat maps, one column per cell, and what each cell collects.

const ROW = 20; // pixels, as --row in the style sheet
const GAP = 10; // between the rows of the query and those of the title
const NARROWEST = 2; // pixels of a cell, below which a map scrolls sideways
const EDGE = 2; // pixels around a map, for the frame of the chosen value
const STOPS = {
  light: ["#2166ac", "#92c5de", "#ffffff", "#f4a582", "#b2182b"],
  dark: ["#9fd0ff", "#2f6fb0", "#1c2025", "#b2543d", "#ffb8a1"],
};
let maps = []; // what is drawn now: {canvas, draw}
let cellOrder = []; // the cell in every column

function showHeat() {
  const some = pair();
  maps = [];
  if (!hasGates(some)) {
    $("heat").replaceChildren();
    return;
  }
  cellOrder = data.cells.map((_, cell) => cell);
  if (state.order === "share" && some.share)
    cellOrder.sort((a, b) => some.share[b] - some.share[a]);
  const gates = data.gates.filter((gate) => state.gate === "all" || state.gate === gate.key);
  $("heat").replaceChildren(
    ...(some.share ? [shareFigure(some)] : []),
    ...gates.map((gate) => gateFigure(some, gate)),
  );
  drawHeat();
}

function figure(name, extra, labels, canvas, label) {
  const plot = make("div", { className: "plot" }, make("div", {}, canvas, axis(label)));
  plot.addEventListener("scroll", () => scrollMaps(plot.scrollLeft));
  return make(
    "figure",
    { className: "heat" },
    make("figcaption", {}, make("b", {}, name), extra),
    make("div", { className: "map" }, labels, plot),
  );
}

/** Under a map: numbers of cells, or how they are ordered. */
function axis(label) {
  const n = data.cells.length;
  const line = make("div", { className: "axis", "aria-hidden": "true" });
  const put = (text, share, shift) => {
    const mark = make("span", {}, text);
    mark.style.left = `${100 * share}%`;
    if (shift) mark.style.transform = shift;
    line.append(mark);
  };
  if (!label) return line;
  if (state.order === "share" && pair().share) {
    put("largest share", 0, "none");
    put("smallest", 1, "translateX(-100%)");
  } else if (data.halves === 2) {
    put("read left to right", 0.25);
    put("read right to left", 0.75);
  } else {
    const step = [1, 2, 5, 10, 20, 50, 100].find((some) => n / some <= 10);
    for (let cell = 0; cell < n; cell += step) {
      put(String(cell), (cell + 0.5) / n);
    }
  }
  return line;
}

function shareFigure(some) {
  const height = 72;
  const canvas = make("canvas", {
    role: "img",
    "aria-label": `Share of each cell in the score of ${fixed(some.score, 3)}`,
  });
  const [low, high] = [Math.min(...some.share, 0), Math.max(...some.share, 1e-9)];
  const y = (value) => EDGE + ((high - value) / (high - low)) * (height - 2 * EDGE);
  const labels = make("div", { className: "labels share" });
  for (const value of low < -0.4 * high ? [high, 0, low] : [high, 0]) {
    const label = make("div", {}, value ? signed(value) : "0");
    label.style.top = `${y(value) - ROW / 2}px`;
    labels.append(label);
  }
  maps.push({
    canvas,
    height,
    rowAt: () => null,
    draw(pen, x) {
      const style = getComputedStyle(document.documentElement);
      cellOrder.forEach((cell, column) => {
        const [top, bottom] = [y(Math.max(some.share[cell], 0)), y(Math.min(some.share[cell], 0))];
        pen.fillStyle = style.getPropertyValue(some.share[cell] < 0 ? "--minus" : "--plus");
        const gap = x(1) - x(0) > 4 ? 1 : 0;
        pen.fillRect(x(column), top, x(column + 1) - x(column) - gap, bottom - top);
      });
      pen.fillStyle = style.getPropertyValue("--third");
      pen.fillRect(x(0), y(0) - 0.5, x(data.cells.length) - x(0), 1);
    },
  });
  watch(maps.at(-1));
  const note = make("span", {}, "query × title, both of length 1; the sum is the cosine");
  return figure("Share of each cell in the score", note, labels, canvas, false);
}

function gateFigure(some, gate) {
  const rows = sidesOf(some).flatMap((name) =>
    some[name].words.map((word, t) => ({ name, word, t })),
  );
  const top = (k) => EDGE + k * ROW + (rows[k].name === "title" ? GAP : 0);
  const height = top(rows.length - 1) + ROW + EDGE;
  const labels = make("div", { className: "labels" });
  rows.forEach((row, k) => {
    const label = isolated(row.word, "div");
    label.title = row.word;
    if (row.name === "title" && row.t === 0) label.style.marginTop = `${GAP}px`;
    row.label = label;
    labels.append(label);
  });
  const canvas = make("canvas", {
    tabIndex: 0,
    role: "application",
    "aria-roledescription": "heat map",
    "aria-label": `${capital(gate.name)}: words down, cells across; move with the arrow keys`,
    "aria-describedby": "readout",
  });
  const map = {
    canvas,
    height,
    rows,
    gate,
    rowAt(y) {
      const k = rows.findIndex((_, number) => y < top(number) + ROW);
      return rows[k < 0 ? rows.length - 1 : k];
    },
    draw(pen, x, colours) {
      rows.forEach((row, k) => {
        const cells = values(some[row.name], gate.key)[row.t];
        cellOrder.forEach((cell, column) => {
          pen.fillStyle = colours(scaled(cells[cell], gate));
          pen.fillRect(x(column), top(k), x(column + 1) - x(column), ROW - 1);
        });
        const here = row.name === state.side && row.t === state.word;
        row.label.classList.toggle("here", here);
      });
      if (data.halves === 2 && cellOrder[1] === 1) {
        pen.fillStyle = getComputedStyle(document.body).color;
        pen.fillRect(x(data.cells.length / 2) - 0.5, EDGE, 1, height - 2 * EDGE);
      }
      const k = rows.findIndex((row) => row.name === state.side && row.t === state.word);
      const column = cellOrder.indexOf(state.cell);
      const wide = Math.max(x(column + 1) - x(column), 3);
      pen.strokeStyle = getComputedStyle(document.body).color;
      pen.lineWidth = 2;
      pen.strokeRect(x(column) - 1, top(k) - 1, wide + 2, ROW + 1);
    },
  };
  maps.push(map);
  watch(map);
  return figure(capital(gate.name), legend(gate), labels, canvas, true);
}

/** Where a value lies between the ends of its gate's scale: -1 to 1. */
function scaled(value, gate) {
  return Math.min(Math.max((value - gate.middle) / gate.reach, -1), 1);
}

function legend(gate) {
  const bar = make("canvas", { width: 112, height: 1, "aria-hidden": "true" });
  maps.push({
    draw(_, __, colours) {
      const pen = bar.getContext("2d");
      for (let k = 0; k < 112; k++) {
        pen.fillStyle = colours(k / 55.5 - 1);
        pen.fillRect(k, 0, 1, 1);
      }
    },
  });
  const [low, high] = [gate.middle - gate.reach, gate.middle + gate.reach];
  const ends = [fixed(low, 2), fixed(high, 2)];
  if (gate.beyond) ends.splice(0, 2, `≤ ${ends[0]}`, `≥ ${ends[1]}`);
  return make("span", { className: "scale" }, ends[0], bar, ends[1]);
}

/** A function from -1..1 to a colour of the present theme. */
function palette() {
  const stops = STOPS[dark.matches ? "dark" : "light"].map((stop) =>
    [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)),
  );
  const steps = Array.from({ length: 257 }, (_, k) => {
    const place = (k / 256) * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    const mix = stops[below].map((c, j) =>
      Math.round(c + (place - below) * (stops[below + 1][j] - c)),
    );
    return `rgb(${mix.join(" ")})`;
  });
  return (value) => steps[Math.round((value + 1) * 128)];
}

function drawHeat() {
  const colours = palette();
  const n = data.cells.length;
  for (const map of maps) {
    if (!map.canvas) {
      map.draw(null, null, colours);
      continue;
    }
    const wide = map.canvas.parentElement;
    wide.style.minWidth = `${n * NARROWEST}px`;
    const width = wide.clientWidth;
    const ratio = devicePixelRatio || 1;
    map.canvas.style.height = `${map.height}px`;
    map.canvas.width = Math.round(width * ratio);
    map.canvas.height = Math.round(map.height * ratio);
    const pen = map.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    // Columns end on whole pixels of the screen, so that none is blurred.
    const x = (column) => EDGE + Math.round((column * (width - 2 * EDGE) * ratio) / n) / ratio;
    map.draw(pen, x, colours);
  }
  showReadout();
}

/** Scroll all maps, where they are wider than the page, to the same place. */
function scrollMaps(left) {
  for (const plot of document.querySelectorAll(".plot")) plot.scrollLeft = left;
}

function showColumn(column) {
  const plot = document.querySelector(".plot");
  const place = (column / data.cells.length) * plot.scrollWidth;
  if (place < plot.scrollLeft + 20 || place > plot.scrollLeft + plot.clientWidth - 20) {
    scrollMaps(place - plot.clientWidth / 2);
  }
}

function watch(map) {
  const place = (event) => {
    const box = map.canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - EDGE) / (box.width - 2 * EDGE);
    const column = Math.floor(share * data.cells.length);
    const cell = cellOrder[Math.min(Math.max(column, 0), data.cells.length - 1)];
    return [cell, map.rowAt(event.clientY - box.top)];
  };
  map.canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") showReadout(...place(event), map.gate);
  });
  map.canvas.addEventListener("pointerleave", () => showReadout());
  map.canvas.addEventListener("click", (event) => {
    const [cell, row] = place(event);
    if (row) [state.side, state.word] = [row.name, row.t];
    chooseCell(cell);
  });
  map.canvas.addEventListener("keydown", (event) => moveInMap(event, map));
}

function moveInMap(event, map) {
  const across = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 }[
    event.key
  ];
  const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if ((!across && !down) || !map.rows || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (down) {
    const k = map.rows.findIndex((row) => row.name === state.side && row.t === state.word) + down;
    const row = map.rows[Math.min(Math.max(k, 0), map.rows.length - 1)];
    [state.side, state.word] = [row.name, row.t];
  }
  const moved = cellOrder.indexOf(state.cell) + (across || 0);
  const column = Math.min(Math.max(moved, 0), data.cells.length - 1);
  chooseCell(cellOrder[column]);
  showColumn(column);
}

/** Say what is under the pointer, or else what is chosen. */
function showReadout(cell = state.cell, row = null, gate = null) {
  const some = pair();
  if (!hasGates(some)) return;
  const [name, t] = row ? [row.name, row.t] : [state.side, state.word];
  const gates = data.gates.filter((other) =>
    gate ? other === gate : state.gate === "all" || other.key === state.gate,
  );
  const word = isolated(some[name].words[t]);
  const parts = [capital(cellName(cell)), " after “", word, `” (${name}): `];
  parts.push(
    gates
      .map((other) => `${other.name} ${fixed(values(some[name], other.key)[t][cell], 3)}`)
      .join(", "),
  );
  if (some.share) parts.push(` · share of the score ${signed(some.share[cell])}`);
  const topic = data.cells[cell].slice(0, 3);
  if (topic.length) parts.push(" · topic: ");
  topic.forEach(([word], k) => parts.push(...(k ? [", ", isolated(word)] : [isolated(word)])));
  $("readout").replaceChildren(...parts);
}

// -- cells ---------------------------------------------------------------------------------------

function showCells() {
  $("cells-note").textContent =
    `What each cell collects over ${data.topic_queries} queries: the words at which it changes ` +
    "markedly while it is among the 5 most active cells of the query.";
  const options = data.cells.map((topic, cell) =>
    make(
      "div",
      {
        "aria-selected": "false",
        "aria-label": `${cellName(cell)}: ${topic.length ? topic[0][0] : "no words"}`,
      },
      make("b", {}, String(cell)),
      isolated(topic.length ? topic[0][0] : "–", "span"),
    ),
  );
  listBox($("cell-list"), options, chooseCell);
}

function chooseCell(cell) {
  state.cell = cell;
  markChosen($("cell-list"), cell);
  $("cell-heading").textContent = capital(cellName(cell));
  const topic = data.cells[cell];
  $("cell-note").textContent = topic.length
    ? "Words ranked by queries × share; the share is this cell’s part of all cells’ counts."
    : "This cell collects no words.";
  const largest = Math.max(...topic.map(([, count]) => count));
  const rows = topic.map(([word, count, share]) => {
    const fill = make("i", { className: "minus" });
    fill.style.width = `${(100 * count) / largest}%`;
    fill.style.insetInlineStart = "0";
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, isolated(word)),
      make("td", { className: "number" }, String(count)),
      make("td", { className: "number" }, `${fixed(100 * share, 0)} %`),
      make("td", {}, make("span", { className: "bar whole", "aria-hidden": "true" }, fill)),
    );
  });
  const made = table(["Word", "Queries", "Share", ""], rows);
  nameColumns(made, "", "", "", "count");
  $("cell-words").replaceChildren(...(topic.length ? [made] : []));
  showCellValues();
  drawHeat();
  remember();
}

/** Every gate of the chosen cell, word by word: what the maps show, as a table. */
function showCellValues() {
  const known = hasGates(pair());
  $("cell-values-box").hidden = !known;
  if (!known) return;
  const heads = data.gates.map((gate) => capital(gate.name));
  const made = wordTable(pair(), heads, (side, t) =>
    data.gates.map((gate) =>
      make("td", { className: "number" }, fixed(values(side, gate.key)[t][state.cell], 3)),
    ),
  );
  $("cell-values").replaceChildren(made);
}
