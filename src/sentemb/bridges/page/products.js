// Fields of products: filters above the results, and what a result shows of them.

// Fields that the page shows as a picture, as a link and without a name.
const [IMAGE, LINK, PRICE] = ["image", "link", "price"];

/** An address that may be loaded or followed; null for anything but http and https. */
function webAddress(value) {
  if (typeof value !== "string" || !URL.canParse(value)) return null;
  const address = new URL(value);
  return ["http:", "https:"].includes(address.protocol) ? address.href : null;
}

/** The picture of a result, if it has one. */
function pictureOf({ fields }) {
  const picture = webAddress(fields?.[IMAGE]);
  if (picture === null) return [];
  const loading = { loading: "lazy", decoding: "async", referrerPolicy: "no-referrer" };
  const shown = make("img", { ...loading, src: picture, alt: "", width: 72, height: 72 });
  shown.addEventListener("error", () => shown.remove()); // rather none than the sign of a broken one
  return [shown];
}

/** The other fields of a result, the price first. */
function fieldsOf({ fields }) {
  const { [IMAGE]: image, [LINK]: link, [PRICE]: price, ...rest } = fields ?? {};
  const shown = Object.entries(rest)
    .filter(([, value]) => value !== null && webAddress(value) === null)
    .map(([name, value]) => make("span", {}, `${name} `, isolated(shownValue(value), "b")));
  if (price !== undefined && price !== null) {
    shown.unshift(make("span", { className: "price" }, isolated(shownPrice(price))));
  }
  return shown.length ? [make("div", { className: "fields quiet" }, ...shown)] : [];
}

/** A price with two decimals, unless it is a whole number. */
function shownPrice(value) {
  if (typeof value !== "number") return String(value);
  const digits = Number.isInteger(value) ? 0 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: Math.max(digits, 2) });
}

function shownValue(value) {
  return typeof value === "number" ? value.toLocaleString("en") : String(value);
}

/** The fields that are numbers. */
function numberFields() {
  const { fields } = engine.facts;
  return Object.keys(fields).filter((name) => ["INTEGER", "REAL"].includes(fields[name]));
}

/** The names of filters: facets, and `>=price` and `<=price` for a field that is a number. */
function filterNames() {
  return [...engine.facts.facets, ...numberFields().flatMap((name) => [`>=${name}`, `<=${name}`])];
}

/** Whether a filter has a value that can be asked for. */
function isFilter(name, value) {
  return Boolean(value) && (engine.facts.facets.includes(name) || Number.isFinite(Number(value)));
}

/** Boxes to filter by each facet and between numbers, and to sort; `chosen` is called with a name and a value. */
function makeFilters(chosen) {
  const { facets } = engine.facts;
  const numbers = numberFields();
  const orders = numbers.flatMap((name) => [
    [name, `${name}, lowest first`],
    [`-${name}`, `${name}, highest first`],
  ]);
  const bound = (name, sign, text) => {
    const input = make("input", { type: "number", step: "any", placeholder: text });
    input.setAttribute("aria-label", `${name}, ${text}`);
    input.dataset.key = sign + name;
    input.addEventListener("change", () => chosen(sign + name, input.value));
    return input;
  };
  for (const name of numbers) {
    const bounds = [bound(name, ">=", "lowest"), bound(name, "<=", "highest")];
    $("filters").append(make("span", {}, isolated(name), " ", bounds[0], " – ", bounds[1]));
  }
  const boxes = facets.map((name) => [name, name, []]);
  if (orders.length) boxes.push(["", "Sort by", orders]);
  for (const [key, label, options] of boxes) {
    const select = make("select", {}, option("", key ? "all" : "relevance"));
    select.dataset.key = key;
    select.append(...options.map(([value, text]) => option(value, text)));
    select.addEventListener("change", () => chosen(key, select.value));
    $("filters").append(make("label", {}, isolated(label), " ", select));
  }
  $("filters").hidden = !boxes.length;
}

function option(value, text) {
  return make("option", { value }, text);
}

/** Show what is chosen, and for each facet the values that there are among the matches. */
function showFilters(filters, order, facets) {
  for (const input of $("filters").querySelectorAll("input")) {
    input.value = filters[input.dataset.key] ?? "";
  }
  for (const select of $("filters").querySelectorAll("select")) {
    const { key } = select.dataset;
    if (key) {
      const counts = [...(facets?.[key] ?? [])];
      const value = filters[key] ?? "";
      if (value && !counts.some(([name]) => name === value)) counts.push([value, 0]);
      const options = counts.map(([name, count]) => option(name, `${name} (${count.toLocaleString("en")})`));
      select.replaceChildren(option("", "all"), ...options);
      select.value = value;
    } else select.value = order;
  }
}
