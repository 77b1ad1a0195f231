// The palette (Ctrl or ⌘ and K): jobs, pages and actions by a few letters. `run nightly` runs, `pause` pauses.
// @ts-check

import { formToken } from "./door.js";

/** @typedef {{word: string, hint: string, open: () => void}} Entry */

const dialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#palette"));
const input = /** @type {HTMLInputElement | null} */ (dialog?.querySelector("input") ?? null);
const list = /** @type {HTMLElement | null} */ (dialog?.querySelector("[role=listbox]") ?? null);
const VERBS = (dialog?.dataset.verbs ?? "").split(" "); // what the reader may do
const JOBS_SHOWN = 8;
/** @type {Entry[]} */
let entries = [];
let current = 0;
let asked = 0;

/** @returns {Entry[]} */
function pages() {
  return [...document.querySelectorAll("[data-go]")].map((link) => ({
    word: link.textContent?.trim() ?? "",
    hint: "page",
    open: () => /** @type {HTMLElement} */ (link).click(),
  }));
}

/** @returns {Entry[]} */
function actions() {
  return [...document.querySelectorAll("[data-palette]")].map((button) => ({
    word: button.getAttribute("data-palette") ?? "",
    hint: "action",
    open: () => /** @type {HTMLElement} */ (button).click(),
  }));
}

/** @param {string} text
 * @param {string} verb
 * @returns {Promise<Entry[]>} */
async function jobs(text, verb) {
  if (!text) return [];
  const q = `"${text.replace(/["\\]/g, "\\$&")}"`;
  const answer = await fetch(`/api/v2/jobs?limit=${JOBS_SHOWN}&order=name&q=${encodeURIComponent(q)}`);
  if (!answer.ok) return [];
  const found = /** @type {{jobs: {id: string, name: string, status: string}[]}} */ (await answer.json());
  return found.jobs.map((job) => ({
    word: verb ? `${verb} ${job.name}` : job.name,
    hint: verb ? "action" : job.status,
    open: () => (verb ? act(verb, job.id) : location.assign(`/ui/jobs/${encodeURIComponent(job.name)}`)),
  }));
}

/** As the buttons of the list do it: a form, so that the page afterwards tells what was done.
 * @param {string} verb
 * @param {string} id */
function act(verb, id) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/ui/bulk";
  for (const [name, value] of Object.entries({ one: `${verb}:${id}`, form_token: formToken() })) {
    const field = document.createElement("input");
    field.type = "hidden";
    field.name = name;
    field.value = value;
    form.append(field);
  }
  document.body.append(form);
  form.submit();
}

async function find() {
  const turn = ++asked;
  const text = input?.value.trim() ?? "";
  const [first, ...rest] = text.split(/\s+/);
  const verb = rest.length && VERBS.includes(first.toLowerCase()) ? first.toLowerCase() : "";
  const fits = (/** @type {Entry} */ one) => one.word.toLowerCase().includes(text.toLowerCase());
  const here = [...pages(), ...actions()].filter(fits);
  if (!text) show(here);
  const found = await jobs(verb ? rest.join(" ") : text, verb).catch(() => []);
  if (turn === asked) show(text ? [...here.slice(0, 6), ...found] : here);
}

/** @param {Entry[]} found */
function show(found) {
  entries = found;
  current = 0;
  list?.replaceChildren(
    ...found.map((one, place) => {
      const option = document.createElement("div");
      option.id = `palette-${place}`;
      option.setAttribute("role", "option");
      const hint = document.createElement("span");
      hint.className = "none";
      hint.textContent = one.hint;
      option.append(one.word, hint);
      option.addEventListener("click", () => choose(place));
      return option;
    }),
  );
  const count = dialog?.querySelector("[role=status]");
  if (count) count.textContent = found.length ? `${found.length} found` : "Nothing found";
  mark();
}

function mark() {
  for (const [place, option] of [...(list?.children ?? [])].entries()) {
    option.setAttribute("aria-selected", String(place === current));
    if (place === current) option.scrollIntoView({ block: "nearest" });
  }
  if (entries.length) input?.setAttribute("aria-activedescendant", `palette-${current}`);
  else input?.removeAttribute("aria-activedescendant");
}

/** @param {number} place */
function choose(place) {
  dialog?.close();
  entries[place]?.open();
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && entries.length) {
    current = (current + step + entries.length) % entries.length;
    mark();
  } else if (event.key === "Enter") choose(current);
  else return;
  event.preventDefault();
}

function open() {
  if (!dialog || !input || dialog.open) return;
  dialog.showModal();
  input.value = "";
  void find();
}

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    open();
  }
});
let typed = 0;
input?.addEventListener("input", () => {
  clearTimeout(typed);
  typed = window.setTimeout(() => void find(), 120);
});
input?.addEventListener("keydown", pressed);
document.querySelector("[data-opens=palette]")?.addEventListener("click", () => {
  if (input) input.value = "";
  void find();
});
