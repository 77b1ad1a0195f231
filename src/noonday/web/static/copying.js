// A button that copies: the text of a [data-copy] element, or the field that [data-copies] names. Works on plain
// http too, where there is no clipboard API.
// @ts-check

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelecting(text); // none here, or it is not allowed
  }
}

/** @param {string} text */
function copyBySelecting(text) {
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true;
  area.className = "hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  if (!done) throw new Error("not copied");
}

/** @param {HTMLElement} button
 * @param {() => string} text */
function copies(button, text) {
  const word = button.textContent;
  button.addEventListener("click", async () => {
    await copy(text()).then(() => (button.textContent = "Copied"), () => (button.textContent = "Not copied"));
    setTimeout(() => (button.textContent = word), 2000);
  });
}

for (const shown of document.querySelectorAll("[data-copy]")) {
  const text = shown.textContent ?? "";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  copies(button, () => text);
  shown.append(button);
}

for (const button of document.querySelectorAll("[data-copies]")) {
  const field = document.getElementById(button.getAttribute("data-copies") ?? "");
  button.removeAttribute("hidden");
  if (field instanceof HTMLInputElement) copies(/** @type {HTMLElement} */ (button), () => field.value);
}
