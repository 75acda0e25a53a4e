// -- the address remembers what is chosen --------------------------------------------------------

function remember() {
  const { query, pair, cell, gate, order } = state;
  const chosen = new URLSearchParams({
    ...(triage ? { query: query + 1 } : {}),
    ...(data.pairs.length ? { pair: pair + 1 } : {}),
    ...(HAS_CELLS ? { cell, gate, order } : {}),
  });
  history.replaceState(null, "", `#${chosen}`);
}

function recall() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const pick = (name, known) => known.find((value) => String(value) === asked.get(name));
  const place = (name, list) => (pick(name, list.map((_, k) => k + 1)) || 1) - 1;
  state.query = place("query", rows);
  state.pair = place("pair", data.pairs);
  state.gate = pick("gate", [...data.gates.map((gate) => gate.key), "all"]) || "y";
  state.order =
    pick(
      "order",
      ORDERS.map(([order]) => order),
    ) || "number";
  // Without a wish, the cell that the score owes most to.
  const share = pair()?.share || data.cells.map((topic) => topic.length);
  state.cell = pick("cell", [...share.keys()]) ?? share.indexOf(Math.max(...share));
}

function start() {
  recall();
  showModel();
  for (const [name, isShown] of [
    ["cells", HAS_CELLS],
    ["ranked", triage !== null],
  ]) {
    for (const element of document.querySelectorAll(`.${name}`)) element.hidden = !isShown;
  }
  $("no-gates").hidden = true;
  showChoices();
  if (HAS_CELLS) showCells();
  if (triage) {
    showSlices();
    showRows();
    if (rows.length) chooseQuery(state.query, state.pair);
  } else {
    showPairs();
    $(`pair-list-${state.pair}`).click();
  }
  if (HAS_CELLS) chooseCell(state.cell);
  dark.addEventListener("change", () => {
    if (pair()) showWindows(pair());
    if (HAS_CELLS) drawHeat();
  });
  new ResizeObserver(() => {
    if (HAS_CELLS) {
      drawHeat();
      keepInView($("cell-list"));
    }
    keepInView($("pair-list"));
  }).observe($("pairs"));
}

start();
