// Suggestions while somebody types: a list below the box, of which keys or a pointer choose one.

let suggesting = null; // the AbortController of the last request
let active = -1; // the suggestion that Enter would take

/** Ask for queries that begin with what is in the box, and list them; `chosen` is called with one. */
async function suggest(chosen) {
  closeSuggestions();
  const typed = $("query").value;
  if (!engine.suggest || !typed.trim()) return;
  suggesting = new AbortController();
  const { signal } = suggesting;
  // The search itself says what is wrong with the engine.
  const queries = await engine.suggest(typed, signal).catch(() => []);
  if (signal.aborted || document.activeElement !== $("query") || !queries.length) return;
  const options = queries.map((query, k) => {
    const item = make("li", { role: "option", id: `suggestion-${k}`, "aria-selected": "false" }, isolated(query));
    item.addEventListener("pointerdown", (event) => event.preventDefault()); // the box keeps the focus
    item.addEventListener("click", () => {
      closeSuggestions();
      chosen(query);
    });
    return item;
  });
  $("suggestions").replaceChildren(...options);
  $("suggestions").hidden = false;
  $("query").setAttribute("aria-expanded", "true");
}

function closeSuggestions() {
  suggesting?.abort();
  active = -1;
  $("suggestions").hidden = true;
  $("suggestions").replaceChildren();
  $("query").setAttribute("aria-expanded", "false");
  $("query").removeAttribute("aria-activedescendant");
}

/** Whether the list has used a key. */
function keyOfSuggestions({ key }) {
  const options = [...$("suggestions").children];
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (!options.length) return false;
  if (step) {
    // Between the last and the first one nothing is chosen.
    active = ((active + step + 1 + options.length + 1) % (options.length + 1)) - 1;
    options.forEach((item, k) => item.setAttribute("aria-selected", String(k === active)));
    if (active < 0) $("query").removeAttribute("aria-activedescendant");
    else $("query").setAttribute("aria-activedescendant", options[active].id);
  } else if (key === "Enter" && active >= 0) options[active].click();
  else if (key === "Escape") closeSuggestions();
  else return false;
  return true;
}
