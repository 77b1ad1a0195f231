// Settings: copy the new key, and ask for a service only where the role needs one.
// @ts-check

/** @param {HTMLInputElement} field */
async function copy(field) {
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    document.execCommand("copy"); // plain http has no clipboard of its own
  }
}

for (const button of document.querySelectorAll("[data-copies]")) {
  button.removeAttribute("hidden");
  button.addEventListener("click", async () => {
    await copy(/** @type {HTMLInputElement} */ (document.getElementById(button.getAttribute("data-copies") ?? "")));
    button.textContent = "Copied";
  });
}

const role = document.getElementById("key-role");
if (role instanceof HTMLSelectElement) {
  const show = () => {
    for (const part of document.querySelectorAll("[data-of-role]")) {
      const fits = part.getAttribute("data-of-role") === role.value;
      part.toggleAttribute("hidden", !fits);
      for (const field of part.querySelectorAll("input")) field.disabled = !fits;
    }
  };
  role.addEventListener("change", show);
  show();
}

// A zone typed is a zone chosen.
const other = document.querySelector('input[name="other"]');
const chosen = document.querySelector('input[name="zone"][value="other"]');
if (chosen instanceof HTMLInputElement) other?.addEventListener("input", () => (chosen.checked = true));
