// Live pages: regions that stay true, over the one stream of events of this browser.
//
// In a page:      <section id="list" data-live="jobs executions">…</section>
//   is fetched anew (from this page's address, or from `data-live-from`) when something of its topics happens;
//   without topics, only when somebody calls `swap`.
// In a component: const stop = listen(["executions"], (event) => …)   with event = {type, subject, time, data}
//   or {type: "resync"} when something may have been missed: read again what you show.
// @ts-check

import { morph } from "./morph.js";
import { begin, isOn, listen, onState, stateNow, topicOf } from "./stream.js";

export { isOn, listen, switchLive } from "./stream.js";

/** @typedef {import("./stream.js").Told} Told */

const PACE = 250; // ms between two refreshes, at least
const PATIENCE = 3_000; // ms until what could not be fetched is tried again
const NOTICES = new Map([
  ["reconnecting", "Connection lost. Reconnecting; what you see may be old."],
  ["out", "You are signed out. Load the page again to sign in."],
]);

function shown() {
  const button = document.querySelector("#live");
  if (button instanceof HTMLElement) {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(isOn()));
    button.dataset.state = stateNow();
  }
  const notice = document.querySelector("#reconnecting");
  if (notice instanceof HTMLElement) {
    const text = NOTICES.get(stateNow()) ?? "";
    notice.textContent = text;
    notice.hidden = !text;
  }
}

/** @type {Set<string>} */
const stale = new Set(); // addresses to fetch
let busy = false;

/** @param {Told} event */
function refreshFor(event) {
  for (const region of document.querySelectorAll("[data-live][id]")) {
    const topics = (region.getAttribute("data-live") ?? "").split(/\s+/).filter(Boolean);
    const about = event.type === "resync" ? topics.length > 0 : topics.includes(topicOf(event.type));
    if (about) stale.add(addressOf(region));
  }
  void refresh();
}

/** @param {Element} region */
function addressOf(region) {
  return region.getAttribute("data-live-from") ?? location.pathname + location.search;
}

async function refresh() {
  if (busy || !stale.size || document.visibilityState !== "visible") return;
  busy = true;
  const began = performance.now();
  const wanted = [...stale];
  stale.clear();
  let failed = false;
  for (const address of wanted) {
    await swap(address).catch(() => {
      failed = true;
      stale.add(address);
    });
  }
  // A server that takes its time is asked less often.
  const wait = Math.max(failed ? PATIENCE : PACE, 4 * (performance.now() - began));
  setTimeout(() => {
    busy = false;
    void refresh();
  }, wait);
}

/** Fetch an address and put each of its live regions into this page; if the address asks for something wrong,
 * only those marked `data-live-errors`, so that a list stays while its search is being written.
 * @param {string} address */
export async function swap(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html", "Noonday-Live": "yes" } });
  if (answer.status >= 500) throw new Error(`${answer.status}`);
  const wrong = answer.status === 422;
  if ((!answer.ok && !wrong) || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const region of document.querySelectorAll("[data-live][id]")) {
    if (addressOf(region) !== address || (wrong && !region.hasAttribute("data-live-errors"))) continue;
    const next = fresh.getElementById(region.id);
    if (next) morph(region, next);
    region.dispatchEvent(new CustomEvent("live:swapped", { bubbles: true }));
  }
}

listen(["jobs", "executions", "breakers", "instances", "services"], refreshFor);
document.addEventListener("visibilitychange", () => void refresh());
if (document.querySelector("#live")) {
  onState(shown);
  shown();
  begin();
}
