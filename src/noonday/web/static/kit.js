// What every page does: the reader's zone, times that stay true, keys. Nothing here is needed to use a page.
// @ts-check

const ZONE = "noonday_zone";

function tellZone() {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const told = document.cookie.split("; ").find((one) => one.startsWith(`${ZONE}=`));
  if (told) return;
  document.cookie = `${ZONE}=${own}; path=/; max-age=31536000; samesite=lax`;
  if (own !== "UTC") location.reload();
}

/** @param {number} seconds */
export function span(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
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
  return "";
}

function keepTimesTrue() {
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const away = (new Date(/** @type {HTMLTimeElement} */ (time).dateTime).getTime() - Date.now()) / 1000;
    time.textContent = away > 0 ? `in ${span(away)}` : `${span(-away)} ago`;
  }
}

let leader = "";

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, [contenteditable]")) return;
  if (event.key === "/") {
    const search = document.querySelector('input[type="search"]');
    if (search instanceof HTMLInputElement) {
      search.focus();
      event.preventDefault();
    }
  }
  if (leader === "g") document.querySelector(`[data-go="${CSS.escape(event.key)}"]`)?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
  leader = event.key;
}

tellZone();
setInterval(keepTimesTrue, 10_000);
addEventListener("keydown", pressed);
