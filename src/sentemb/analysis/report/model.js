// The model: its facts, its settings and its learning curve.

function showModel() {
  $("name").textContent = data.model.name;
  $("summary").textContent = data.model.summary;
  for (const [name, value] of data.model.facts) {
    $("facts").append(make("dt", {}, name), make("dd", {}, value));
  }
  const settings = data.model.training.map(([name, value]) =>
    make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)),
  );
  $("settings").append(table(["Setting", "Value"], settings));
  $("settings-box").hidden = !settings.length;
  showHistory();
  $("made").textContent = data.made;
}

function showHistory() {
  $("history-box").hidden = !data.history.length;
  if (!data.history.length) {
    $("curves").append(make("p", { className: "note" }, "This model has no training history."));
    return;
  }
  const measures = [...new Set(data.history.flatMap((line) => Object.keys(line.dev)))];
  const kinds = [...new Set(measures.map((name) => figureName(name).split("@")[0]))];
  const ranked = data.ranked.filter((epoch) => data.history.some((line) => line.epoch === epoch));
  $("curves").append(
    curve("Loss per pair", [["loss", (line) => line.loss]], 0, ranked),
    ...(measures.length
      ? [
          curve(
            `${capital(kinds.join(", "))} on the dev set`,
            measures.map((name) => [figureName(name), (line) => line.dev[name]]),
          ),
        ]
      : []),
  );
  if (ranked.length) {
    const note = "Filled dots: new hard negatives are ranked before this epoch, so its loss is not "
      + "comparable with the loss of the epoch before.";
    $("curves").firstChild.append(make("p", { className: "note" }, note));
  }
  const rows = data.history.map((line) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, String(line.epoch)),
      make("td", {}, fixed(line.loss, 4)),
      ...measures.map((name) => make("td", {}, name in line.dev ? fixed(line.dev[name], 3) : "")),
    ),
  );
  $("history").append(
    table(["Epoch", "Loss", ...measures.map(figureName)], rows),
  );
}

function figureName(name) {
  return name.replace("ndcg", "NDCG").replace("mrr", "MRR");
}

/** A line chart over epochs; series are [name, value of a line of the history]. */
function curve(title, series, lowest, marked = []) {
  const [width, height, left, right, top, bottom] = [320, 190, 34, 66, 8, 24];
  const epochs = data.history.map((line) => line.epoch);
  const known = series.map(([name, value]) => [
    name,
    data.history.map((line) => [line.epoch, value(line)]).filter((point) => point[1] != null),
  ]);
  const all = known.flatMap(([, points]) => points.map((point) => point[1]));
  const ticks = niceTicks(lowest ?? Math.min(...all), Math.max(...all));
  const digits = Math.max(...ticks.map((tick) => (String(tick).split(".")[1] || "").length));
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  const first = Math.min(...epochs);
  const span = Math.max(...epochs) - first;
  const x = (epoch) => left + (span ? (epoch - first) / span : 0.5) * (width - left - right);
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
  const last = known.map(([name, points]) => `${name} ${fixed(points.at(-1)[1], 3)}`).join(", ");
  const svg = makeSvg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `${title}, epochs ${first} to ${first + span}; at the end ${last}`,
  });
  for (const tick of ticks) {
    svg.append(
      makeSvg("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      makeSvg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, tick.toFixed(digits)),
    );
  }
  for (const epoch of new Set([first, first + Math.round(span / 2), first + span])) {
    const at = { x: x(epoch), y: height - 6, "text-anchor": "middle" };
    svg.append(makeSvg("text", at, epoch === first ? `epoch ${epoch}` : String(epoch)));
  }
  const colours = ["var(--minus)", "var(--plus)", "var(--third)"];
  const ends = known.map(([, points]) => y(points.at(-1)[1]) + 4);
  const order = ends.map((_, k) => k).sort((a, b) => ends[a] - ends[b]);
  order.forEach((k, place) => {
    if (place) ends[k] = Math.max(ends[k], ends[order[place - 1]] + 13);
  });
  known.forEach(([name, points], k) => {
    const colour = colours[k % colours.length];
    const places = points.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`);
    const line = makeSvg("polyline", { class: "curve", points: places.join(" ") });
    line.style.stroke = colour;
    svg.append(line);
    const dots = points.length <= 12 ? points : points.slice(-1);
    for (const point of points) {
      const isMarked = marked.includes(point[0]);
      if (!isMarked && !dots.includes(point)) continue;
      const dot = makeSvg("circle", { cx: x(point[0]), cy: y(point[1]), r: isMarked ? 4 : 3 });
      dot.classList.toggle("hollow", marked.length > 0 && !isMarked);
      dot.style.stroke = colour;
      dot.style.fill = dot.classList.contains("hollow") ? "var(--ground)" : colour;
      svg.append(dot);
    }
    const label = makeSvg("text", { x: x(points.at(-1)[0]) + 8, y: ends[k] }, name);
    label.style.fill = colour;
    svg.append(label);
  });
  return make("figure", {}, make("figcaption", {}, title), svg);
}

function niceTicks(low, high) {
  const rough = (high - low || Math.abs(high) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((some) => some >= rough);
  const ticks = [];
  const end = Math.ceil(high / step - 1e-9);
  for (let k = Math.floor(low / step + 1e-9); k <= end; k++)
    ticks.push(Number((k * step).toPrecision(6)));
  return ticks.length > 1 ? ticks : [ticks[0], ticks[0] + step];
}
