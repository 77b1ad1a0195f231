// The keyboard: rows by j and k, what can be done by `data-key`, pages by g and `data-go`. Can be switched off.
//
// In a page: <tr data-row> is a row; its first link opens on Enter, its checkbox follows x.
//            <button data-key="."> is pressed by that key: the one of the current row, else the one of the page.
// @ts-check

const NAME = "noonday-keys";
const LEADER_LASTS = 1_500; // ms between g and its key
let leader = 0;

export function keysAreOn() {
  return localStorage.getItem(NAME) !== "off";
}

/** @param {boolean} on */
export function switchKeys(on) {
  localStorage.setItem(NAME, on ? "on" : "off");
}

/** @param {number} step */
function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const here = rows.findIndex((row) => row.hasAttribute("data-current"));
  const next = here < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(here + step, 0), rows.length - 1);
  if (here >= 0) rows[here].removeAttribute("data-current");
  const row = /** @type {HTMLElement} */ (rows[next]);
  row.setAttribute("data-current", "");
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function currentRow() {
  return document.querySelector("[data-row][data-current]");
}

/** @param {string} key */
function press(key) {
  const wanted = `[data-key="${CSS.escape(key)}"]`;
  const found = currentRow()?.querySelector(wanted) ?? [...document.querySelectorAll(wanted)].find((one) => !one.closest("[data-row]"));
  if (found instanceof HTMLElement) found.click();
  return Boolean(found);
}

/** @param {string} key */
function go(key) {
  const link = document.querySelector(`[data-go="${CSS.escape(key)}"]`);
  if (link instanceof HTMLElement) link.click();
  return Boolean(link);
}

/** @type {Record<string, () => void>} */
const keys = {
  j: () => move(1),
  k: () => move(-1),
  x: () => /** @type {HTMLElement | null | undefined} */ (currentRow()?.querySelector("input[type=checkbox]"))?.click(),
  "/": () => /** @type {HTMLElement | null} */ (document.querySelector("main input[type=search]"))?.focus(),
  g: () => void (leader = Date.now()),
};

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !keysAreOn()) return;
  if (target.closest("input:not([type=checkbox]), select, textarea, [contenteditable], dialog[open]")) return;
  if (event.key === "Enter") {
    if (target.hasAttribute("data-row")) target.querySelector("a")?.click();
    return;
  }
  const led = Date.now() - leader < LEADER_LASTS;
  leader = 0;
  const done = led ? go(event.key) : event.key in keys ? (keys[event.key](), true) : press(event.key);
  if (done) event.preventDefault();
}

addEventListener("keydown", pressed);
const box = document.querySelector("#use-keys");
if (box instanceof HTMLInputElement) box.checked = keysAreOn();
