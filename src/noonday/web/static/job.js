// A job's page: menus close as people expect, and a picture that is wider than the page begins at this job.
// @ts-check

/** @param {Element | null} [kept] stays open */
function close(kept = null) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== kept) menu.removeAttribute("open");
}

document.addEventListener("click", (event) => close(/** @type {Element} */ (event.target).closest("details.menu")));
document.addEventListener("keydown", (event) => {
  const open = document.querySelector("details.menu[open]");
  if (event.key !== "Escape" || !open) return;
  close();
  open.querySelector("summary")?.focus();
});
document.querySelector(".graph [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
