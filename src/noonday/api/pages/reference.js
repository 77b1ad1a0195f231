// The search of the API's page. Without it the page is whole, only longer.
"use strict";

const field = document.getElementById("search");
const found = document.getElementById("found");
const parts = [...document.querySelectorAll("[data-words]")];
const groups = [...document.querySelectorAll("main > section[id^='tag-'], nav > ul > li")];

function search() {
  const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const part of parts) {
    part.hidden = !wanted.every((word) => part.dataset.words.includes(word));
  }
  for (const group of groups) {
    group.hidden = wanted.length > 0 && !group.querySelector("[data-words]:not([hidden])");
  }
  const count = parts.filter((part) => part.localName === "details" && !part.hidden).length;
  found.textContent = wanted.length ? `${count} found` : "";
}

document.getElementById("searching").hidden = false;
field.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  } else if (event.key === "Escape" && document.activeElement === field) {
    field.value = "";
    search();
  }
});
