// What every page does: the reader's zone, times that stay true, dialogs, theme; and the live page, keys, palette.
// Nothing here is needed to use a page.
// @ts-check

import { isOn, switchLive } from "./live.js";
import "./keys.js";
import "./palette.js";

const ZONE = "noonday_zone";
const THEME = "noonday_theme";

/** @param {string} name */
function cookie(name) {
  const found = document.cookie.split("; ").find((one) => one.startsWith(`${name}=`));
  return found && decodeURIComponent(found.slice(name.length + 1));
}

/** Whether it is kept now: browsers write cookies while the page goes on, and only what was read back is sure to be
 * sent with a request that is made right after.
 * @param {string} name
 * @param {string} value */
function remember(name, value) {
  document.cookie = `${name}=${value}; path=/; max-age=31536000; samesite=lax`;
  return cookie(name) === value;
}

function ownZone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function tellZone() {
  if (cookie(ZONE)) return;
  if (remember(ZONE, ownZone()) && ownZone() !== "UTC") again();
}

function turnZone() {
  if (remember(ZONE, cookie(ZONE) === "UTC" ? ownZone() : "UTC")) again();
  else say("This browser keeps no cookies, so the zone stays as it is");
}

/** Load the page again, with the note that the server tells once. The answer to a form is left as it is: loading it
 * again would send the form again. */
function again() {
  if (document.documentElement.hasAttribute("data-posted")) return say(`Times in ${cookie(ZONE)} from the next page on`);
  history.replaceState({ note: document.querySelector("#note")?.textContent }, "");
  location.reload();
}

function bringNote() {
  const note = document.querySelector("#note");
  if (!(note instanceof HTMLElement) || !history.state?.note) return;
  note.textContent = history.state.note;
  note.hidden = false;
  history.replaceState(null, "");
}

function turnTheme() {
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  const next = themes[(themes.indexOf(root.dataset.theme ?? "auto") + 1) % themes.length];
  root.dataset.theme = next;
  remember(THEME, next);
  say(`Theme: ${next}`);
}

let silence = 0;

/** @param {string} text told once, on the screen and to those who hear the page */
export function say(text) {
  const place = document.querySelector("#said");
  if (!(place instanceof HTMLElement)) return;
  place.textContent = text;
  place.hidden = false;
  clearTimeout(silence);
  silence = window.setTimeout(() => (place.hidden = true), 4_000);
}

/** @param {number} seconds */
export function span(seconds) {
  for (const [size, unit, smaller, small] of /** @type {[number, string, number, string][]} */ ([
    [86400, "d", 3600, "h"],
    [3600, "h", 60, "min"],
    [60, "min", 1, "s"],
  ])) {
    if (seconds >= size) {
      const rest = Math.floor((seconds % size) / smaller);
      return `${Math.floor(seconds / size)} ${unit}` + (rest ? ` ${rest} ${small}` : "");
    }
  }
  return `${Math.floor(seconds)} s`;
}

function keepTimesTrue() {
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const away = (new Date(/** @type {HTMLTimeElement} */ (time).dateTime).getTime() - Date.now()) / 1000;
    const text = away > 0 ? `in ${span(away)}` : `${span(-away)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}

/** @type {Record<string, () => void>} */
const does = {
  theme: turnTheme,
  zone: turnZone,
  live: () => {
    switchLive(!isOn());
    say(isOn() ? "Live: on" : "Live: off");
  },
};

/** Buttons: `data-does="theme"` does it, `data-opens="help"` opens the dialog with that id.
 * @param {MouseEvent} event */
function clicked(event) {
  const target = /** @type {Element} */ (event.target);
  const button = target.closest("[data-does], [data-opens]");
  if (button) {
    does[button.getAttribute("data-does") ?? ""]?.();
    const dialog = document.getElementById(button.getAttribute("data-opens") ?? "");
    if (dialog instanceof HTMLDialogElement) dialog.showModal();
  }
  if (target instanceof HTMLDialogElement) target.close(); // the ground behind it
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (target.isConnected && !menu.contains(target)) menu.removeAttribute("open");
  }
}

/** @param {KeyboardEvent} event */
function escaped(event) {
  const menu = event.key === "Escape" && document.activeElement?.closest("details.menu[open]");
  if (!menu) return;
  menu.removeAttribute("open");
  menu.querySelector("summary")?.focus();
}

bringNote();
tellZone();
for (const button of document.querySelectorAll("[data-does][hidden], [data-opens][hidden]")) button.removeAttribute("hidden");
document.addEventListener("click", clicked);
document.addEventListener("keydown", escaped);
setInterval(keepTimesTrue, 10_000);
