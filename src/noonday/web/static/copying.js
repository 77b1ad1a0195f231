// A button that copies the text of a [data-copy] element; works on plain http too, where there is no clipboard API.
// @ts-check

/** @param {string} text */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not copied");
}

for (const shown of document.querySelectorAll("[data-copy]")) {
  const text = shown.textContent ?? "";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await copy(text).then(() => (button.textContent = "Copied"), () => (button.textContent = "Not copied"));
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  shown.append(button);
}
