// Settings: ask for a service only where the role needs one; a zone typed is a zone chosen.
// @ts-check

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

const other = document.querySelector('input[name="other"]');
const chosen = document.querySelector('input[name="zone"][value="other"]');
if (chosen instanceof HTMLInputElement) other?.addEventListener("input", () => (chosen.checked = true));
