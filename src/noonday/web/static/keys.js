// The keyboard: what each key does, and the help that says so. Single keys can be switched off.
//
// In a page: <tr data-row> is a row; its first link opens on Enter, its checkbox follows x.
//            <button data-key="."> is pressed by that key: the one of the current row, else the one of the page.
//            <a data-go="j"> is followed by g and that key.
// @ts-check

import { keep, kept } from "./kept.js";

/** @typedef {{key: string, word: string, works: () => boolean, act: () => void, repeats?: boolean}} Key */

const NAME = "noonday-keys";
const LEADER_LASTS = 1_500; // ms between g and its key
const BOX = "[data-row] input[type=checkbox]";
let leader = 0;

/** @type {Key[]} */
const KEYS = [
  presses("?", "shows this"),
  { key: "/", word: "goes to the search", works: () => Boolean(search()), act: () => search()?.focus() },
  { key: "j", word: "the next row", works: hasRows, act: () => move(1), repeats: true },
  { key: "k", word: "the row before", works: hasRows, act: () => move(-1), repeats: true },
  { key: "x", word: "selects the row", works: () => Boolean(document.querySelector(BOX)), act: select },
  { key: "Enter", word: "opens the row", works: hasRows, act: () => currentRow()?.querySelector("a")?.click() },
  presses(".", "runs the job of the row, or of the page, now"),
  presses("p", "pauses or resumes that job"),
  presses("e", "edits the job"),
  presses("n", "makes a new job"),
  presses("+", "zooms in"),
  presses("-", "zooms out"),
  presses("[", "goes to earlier times"),
  presses("]", "goes to later times"),
  presses("r", "turns live changes on or off"),
  presses("t", "changes the theme"),
  presses("z", "turns between your zone and UTC"),
  { key: "g", word: "goes to a page, with one more key", works: () => pages().length > 0, act: () => void (leader = Date.now()) },
];

/** @param {string} key
 * @param {string} word
 * @returns {Key} */
function presses(key, word) {
  const wanted = `[data-key="${key}"]`;
  const ofPage = () => [...document.querySelectorAll(wanted)].find((one) => !one.closest("[data-row]"));
  const act = () => /** @type {HTMLElement | undefined} */ (currentRow()?.querySelector(wanted) ?? ofPage())?.click();
  return { key, word, works: () => Boolean(document.querySelector(wanted)), act };
}

function hasRows() {
  return Boolean(document.querySelector("[data-row]"));
}

function currentRow() {
  return document.querySelector("[data-row][data-current]");
}

/** @returns {HTMLElement | null} */
function search() {
  return document.querySelector("main input[type=search]");
}

/** @returns {HTMLElement[]} */
function pages() {
  return [...document.querySelectorAll("[data-go]")].map((one) => /** @type {HTMLElement} */ (one));
}

/** @param {number} step */
function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const here = rows.findIndex((row) => row.hasAttribute("data-current"));
  const next = here < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(here + step, 0), rows.length - 1);
  if (here >= 0) rows[here].removeAttribute("data-current");
  const row = /** @type {HTMLElement} */ (rows[next]);
  row.setAttribute("data-current", "");
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function select() {
  /** @type {HTMLElement | null | undefined} */ (currentRow()?.querySelector("input[type=checkbox]"))?.click();
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !areOn()) return;
  if (target.closest("input:not([type=checkbox]), select, textarea, [contenteditable], dialog[open]")) return;
  if (event.key === "Enter" && !target.hasAttribute("data-row")) return; // a link or a button has its own
  const led = Date.now() - leader < LEADER_LASTS;
  leader = 0;
  const page = led ? pages().find((one) => one.dataset.go === event.key) : undefined;
  const found = led ? undefined : KEYS.find((one) => one.key === event.key && one.works());
  if (event.repeat && !found?.repeats) return;
  page?.click();
  found?.act();
  if (page || found) event.preventDefault();
}

function areOn() {
  return kept(NAME) !== "off";
}

/** @param {string} key
 * @param {string} word
 * @returns {HTMLTableRowElement} */
function explained(key, word) {
  const row = document.createElement("tr");
  for (const one of key.split(" ")) {
    const cap = document.createElement("kbd");
    cap.textContent = one;
    (row.cells[0] ?? row.insertCell()).append(cap, " ");
  }
  row.insertCell().textContent = word;
  return row;
}

/** What works on this page, as it is now. */
function explain() {
  const here = areOn() ? KEYS.filter((one) => one.works()).map((one) => explained(one.key, one.word)) : [];
  const ways = areOn() ? pages().map((one) => explained(`g ${one.dataset.go}`, one.textContent?.trim() ?? "")) : [];
  const palette = document.querySelector("#palette") ? [explained("Ctrl K", "finds a job, a page or an action (⌘ K on a Mac)")] : [];
  document.querySelector("#help tbody")?.replaceChildren(...palette, ...here, ...ways);
}

addEventListener("keydown", pressed);
document.querySelector("[data-opens=help]")?.addEventListener("click", explain);
const box = document.querySelector("#use-keys");
if (box instanceof HTMLInputElement) {
  box.checked = areOn();
  box.addEventListener("change", () => {
    keep(NAME, box.checked ? "on" : "off");
    explain();
  });
}
