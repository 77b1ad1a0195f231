// Explains the schedule while it is written. The server is the only calculator: it sends the part as it is shown.
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
      if (answer.ok) show(await answer.text());
    } catch (error) {
      if (signal.aborted) return; // a newer question is on its way
    }
    place.classList.remove("waiting-for");
  }

  /** @param {string} text */
  function show(text) {
    const made = new DOMParser().parseFromString(text, "text/html");
    place.replaceChildren(...made.body.childNodes);
    const problems = new Map();
    for (const one of place.querySelectorAll("[data-problem]")) {
      problems.set(/** @type {HTMLElement} */ (one).dataset.problem, one.textContent);
    }
    for (const error of form.querySelectorAll(".parts [data-error]")) mark(/** @type {HTMLElement} */ (error), problems);
  }

  /** Only what the schedule decides: the rest is checked when it is sent.
   * @param {HTMLElement} error @param {Map<string | undefined, string | null>} problems */
  function mark(error, problems) {
    const field = form.querySelector(`#f-${CSS.escape(error.dataset.error ?? "")}`);
    const message = problems.get(error.dataset.error);
    if (!field || (!message && !error.hasAttribute("data-typed"))) return;
    error.toggleAttribute("data-typed", Boolean(message));
    error.textContent = message ?? "";
    error.hidden = !message;
    if (message) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }

  return () => {
    clearTimeout(later);
    later = setTimeout(ask, WAIT);
  };
}

for (const form of document.querySelectorAll("form[data-preview]")) {
  const place = form.querySelector("#preview");
  if (form instanceof HTMLFormElement && place instanceof HTMLElement) {
    form.addEventListener("input", explainer(form, place));
    for (const button of form.querySelectorAll("[data-without-script]")) button.remove();
  }
}
document.getElementById("summary")?.focus();
