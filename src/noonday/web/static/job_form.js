// Explains the schedule while it is written. The server is the only calculator: it sends the parts as they are shown.
// @ts-check

const WAIT = 250; // ms after the last key

/** @param {HTMLFormElement} form @param {HTMLElement} place */
function explainer(form, place) {
  let asked = new AbortController();
  let later = 0;

  async function ask() {
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    place.classList.add("waiting-for");
    try {
      const body = new URLSearchParams(/** @type {any} */ (new FormData(form)));
      const answer = await fetch(form.dataset.preview ?? "", { method: "POST", body, signal, headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(String(answer.status));
      show(await answer.text());
    } catch {
      if (signal.aborted) return; // a newer question is on its way
      tell("The schedule cannot be explained at this moment; what you write is kept.", true);
    }
    place.classList.remove("waiting-for");
  }

  /** @param {string} text */
  function show(text) {
    const made = new DOMParser().parseFromString(text, "text/html");
    for (const part of made.querySelectorAll("[data-place]")) {
      document.getElementById(part.getAttribute("data-place") ?? "")?.replaceChildren(...part.childNodes);
    }
    const problems = new Map();
    for (const one of place.querySelectorAll("[data-problem]")) {
      problems.set(/** @type {HTMLElement} */ (one).dataset.problem, one.textContent);
    }
    for (const error of form.querySelectorAll("[data-timed] [data-error]")) mark(/** @type {HTMLElement} */ (error), problems);
    const next = place.querySelector("td time")?.textContent;
    tell([...problems.values(), place.querySelector("[data-told]")?.textContent, next && `next at ${next}`].filter(Boolean).join("; "));
  }

  /** For those who hear the page: one sentence, not the whole table; on the screen only if nothing else tells it.
   * @param {string} text @param {boolean} [seen] */
  function tell(text, seen = false) {
    const told = form.querySelector("#told");
    if (!told) return;
    told.classList.toggle("hidden", !seen);
    if (told.textContent !== text) told.textContent = text;
  }

  /** @param {HTMLElement} error @param {Map<string | undefined, string | null>} problems */
  function mark(error, problems) {
    const field = form.querySelector(`#f-${CSS.escape(error.dataset.error ?? "")}`);
    const message = problems.get(error.dataset.error) ?? "";
    error.textContent = message;
    error.hidden = !message;
    if (message) field?.setAttribute("aria-invalid", "true");
    else field?.removeAttribute("aria-invalid");
  }

  return (/** @type {Event} */ event) => {
    if (!(/** @type {Element} */ (event.target).closest("[data-timed]"))) return; // nothing of the schedule
    clearTimeout(later);
    later = setTimeout(ask, WAIT);
  };
}

/** Who leaves with something written is asked first. @param {HTMLFormElement} form */
function kept(form) {
  let written = Boolean(document.querySelector(".summary"));
  form.addEventListener("input", () => (written = true));
  form.addEventListener("submit", () => (written = false));
  addEventListener("beforeunload", (event) => written && event.preventDefault());
}

for (const form of document.querySelectorAll("form[data-preview]")) {
  const place = form.querySelector("#preview");
  if (form instanceof HTMLFormElement && place instanceof HTMLElement) {
    form.addEventListener("input", explainer(form, place));
    kept(form);
    for (const one of form.querySelectorAll("[data-without-script]")) one.remove();
  }
}
