// The list of jobs: ticked one by one, by the page or by a range; the bar says how many.
// @ts-check

const list = /** @type {HTMLElement} */ (document.querySelector("#list"));
/** @type {HTMLInputElement | null} */
let before = null;

/** @returns {HTMLInputElement[]} */
function boxes() {
  return [...list.querySelectorAll("input")].filter((one) => one.name === "job");
}

function every() {
  const found = list.querySelector("input[name=every]");
  return found instanceof HTMLInputElement && found.checked;
}

function counted() {
  const all = boxes();
  const ticked = all.filter((one) => one.checked).length;
  const bar = list.querySelector(".bulk");
  bar?.classList.toggle("idle", !ticked && !every());
  for (const button of bar?.querySelectorAll("button") ?? []) button.disabled = !ticked && !every();
  const told = list.querySelector("#selected");
  const text = every() ? "All" : ticked ? `${ticked} selected:` : "Select jobs to act on them";
  if (told && told.textContent !== text) told.textContent = text;
  const whole = list.querySelector("#tick-all");
  if (whole instanceof HTMLInputElement) {
    whole.hidden = false;
    whole.checked = all.length > 0 && ticked === all.length;
    whole.indeterminate = ticked > 0 && ticked < all.length;
  }
}

/** @param {MouseEvent} event */
function ticked(event) {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || box.type !== "checkbox") return;
  if (box.id === "tick-all") for (const one of boxes()) one.checked = box.checked;
  if (box.name === "job") {
    const all = boxes();
    const [from, to] = [before ? all.indexOf(before) : -1, all.indexOf(box)];
    if (event.shiftKey && from >= 0) {
      for (const one of all.slice(Math.min(from, to), Math.max(from, to) + 1)) one.checked = box.checked;
    }
    before = box;
  }
  counted();
}

list.addEventListener("click", ticked);
list.addEventListener("live:swapped", counted);
counted();
