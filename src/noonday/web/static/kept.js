// What this browser keeps for its reader; where it may not keep anything, a page works all the same.
// @ts-check

/** @param {string} name */
export function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** @param {string} name
 * @param {string} value */
export function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // not allowed, or full
  }
}
