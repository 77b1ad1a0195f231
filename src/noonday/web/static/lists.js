// A list with a search: found while typing; and searches that the reader keeps in this browser.
// @ts-check

import { keep, kept } from "./kept.js";
import { swap } from "./live.js";

/** @typedef {{word: string, search: string}} Search */

const NAME = `noonday-searches ${location.pathname}`;
const MOST = 20;
const search = /** @type {HTMLInputElement | null} */ (document.querySelector("#q"));
const menu = document.querySelector("#searches");
let waiting = 0;

/** The address of this list, from its first page on. */
function fromTheFirst() {
  const address = new URL(location.href);
  for (const place of ["offset", "after"]) address.searchParams.delete(place);
  return address;
}

function typed() {
  clearTimeout(waiting);
  waiting = window.setTimeout(async () => {
    const address = fromTheFirst();
    const text = search?.value.trim();
    if (text) address.searchParams.set("q", text);
    else address.searchParams.delete("q");
    history.replaceState(null, "", address);
    await swap(address.pathname + address.search).catch(() => undefined); // the live page tells of a lost server
  }, 250);
}

/** @returns {Search[]} */
function own() {
  try {
    const found = JSON.parse(kept(NAME) ?? "[]");
    return found.filter((/** @type {Search} */ one) => one.word && one.search.startsWith("?"));
  } catch {
    return [];
  }
}

/** @param {Search[]} searches */
function keepOwn(searches) {
  keep(NAME, JSON.stringify(searches.slice(-MOST)));
  draw();
}

/** @param {Search} one */
function entry(one) {
  const [item, link, button] = [document.createElement("li"), document.createElement("a"), document.createElement("button")];
  item.className = "own";
  link.href = location.pathname + one.search;
  link.textContent = one.word;
  button.type = "button";
  button.className = "plain";
  button.textContent = "×";
  button.title = "Forget this search";
  button.setAttribute("aria-label", `Forget ${one.word}`);
  button.addEventListener("click", () => {
    keepOwn(own().filter((other) => other.word !== one.word));
    menu?.querySelector("summary")?.focus();
  });
  item.append(link, button);
  return item;
}

const form = document.createElement("form");
const name = document.createElement("input");
const save = document.createElement("button");
name.placeholder = "Name of this search";
name.maxLength = 60;
name.setAttribute("aria-label", name.placeholder);
save.textContent = "Keep it";
form.className = "row";
form.append(name, save);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const word = name.value.trim() || search?.value.trim() || "all, sorted";
  keepOwn([...own().filter((one) => one.word !== word), { word, search: fromTheFirst().search }]);
  name.value = "";
});

function draw() {
  const list = menu?.querySelector("ul");
  for (const old of list?.querySelectorAll(".own") ?? []) old.remove();
  const last = document.createElement("li");
  last.className = "own";
  last.append(form);
  list?.append(...own().map(entry), ...(location.search ? [last] : []));
}

search?.addEventListener("input", typed);
menu?.addEventListener("toggle", draw);
