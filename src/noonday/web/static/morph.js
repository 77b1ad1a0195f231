// Make one piece of a page like another, and leave alone what a person has touched: focus, ticks, open parts.
// @ts-check

/**
 * @param {Element} old
 * @param {Element} next
 */
export function morph(old, next) {
  attributes(old, next);
  children(old, next);
}

/**
 * @param {Element} old
 * @param {Element} next
 */
function attributes(old, next) {
  for (const { name, value } of [...next.attributes]) {
    if (old.getAttribute(name) !== value && !kept(old, name)) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && !kept(old, name)) old.removeAttribute(name);
  }
}

const OWN = new Set(["open", "style", "tabindex", "data-current"]); // belong to the reader, not to the server

/** @param {Element} node
 * @param {string} name */
function kept(node, name) {
  return OWN.has(name) || (name === "hidden" && node.hasAttribute("data-own"));
}

/** @param {Node} node */
function keyOf(node) {
  return node instanceof Element ? node.id : "";
}

/**
 * @param {Element} old
 * @param {Element} next
 */
function children(old, next) {
  if (old.hasAttribute("data-own")) return; // drawn by a component
  /** @type {Map<string, Element>} */
  const keyed = new Map();
  for (const child of old.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  let place = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = keyOf(wanted);
    let match = key ? keyed.get(key) ?? null : null;
    if (!match && place && !keyOf(place) && !key && alike(place, wanted)) match = /** @type {Element} */ (place);
    if (!match) {
      old.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    if (wanted instanceof Element) morph(match, wanted);
    else if (match.textContent !== wanted.textContent) match.textContent = wanted.textContent;
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

/**
 * @param {Node} a
 * @param {Node} b
 */
function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName;
}
