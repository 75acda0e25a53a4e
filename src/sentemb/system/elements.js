"use strict";
// What the scripts of all pages begin with: elements, and numbers as text. Texts are only ever set
// as text, never as markup.

function $(id) {
  return document.getElementById(id);
}

/** An element with properties (attributes, where it has no such property) and children. */
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Text of the user's, in whatever script; its direction does not change what is around it. */
function isolated(text, tag = "bdi", className = "") {
  return make(tag, { dir: "auto", className }, text);
}

/** A number with a minus sign, and none for what is rounded to 0. */
function fixed(value, digits) {
  const written = value.toFixed(digits);
  return (Number(written) === 0 ? written.replace("-", "") : written).replace("-", "−");
}

function signed(value, digits = 3) {
  const written = fixed(value, digits);
  return value > 0 && Number(written) !== 0 ? `+${written}` : written;
}

