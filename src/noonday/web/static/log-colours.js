// One line as people see it: terminal colours that can be read on light and on dark, and what was looked for.
// @ts-check

/** @typedef {import("./log-text.js").Line} Line */

const CODES = /\x1b\[([0-9;:]*)m/g;
const OTHERS = /\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g;
const CONTROLS = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/g;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\u{1f300}-\u{1faff}]/gu;
const TAB = 8;
const DRAWN = 5_000; // characters of one line
const ENOUGH = 4.5; // contrast
const STYLES = new Map([[1, "a-b"], [2, "a-d"], [3, "a-i"], [4, "a-u"]]);
const ENDS = new Map([[22, ["a-b", "a-d"]], [23, ["a-i"]], [24, ["a-u"]]]);

/** A line without what only terminals see; of a line that was written over, what is left at the end.
 * @param {string} text */
export function plain(text) {
  return shown(text).replace(CODES, "");
}

/** @param {string} text */
function shown(text) {
  let line = text.endsWith("\r") ? text.slice(0, -1) : text;
  line = line.slice(line.lastIndexOf("\r") + 1);
  if (line.includes("\x1b")) line = line.replace(OTHERS, "");
  if (line.includes("\t")) line = line.replaceAll("\t", " ".repeat(TAB));
  return line.replace(CONTROLS, "");
}

/** How many columns a line takes.
 * @param {string} text */
export function columns(text) {
  const line = plain(text).slice(0, DRAWN);
  return line.length + (/[^\x00-\u10ff]/.test(line) ? (line.match(WIDE) ?? []).length : 0);
}

/** The colours that are on behind a text.
 * @param {string} colours words, as `a-b a-1` or `x-#ff8800`
 * @param {string} text */
export function after(colours, text) {
  if (!text.includes("\x1b[")) return colours;
  for (const [, codes] of text.matchAll(CODES)) colours = turned(colours, codes);
  return colours;
}

/** @param {string} colours
 * @param {string} codes as in ESC[1;31m */
function turned(colours, codes) {
  const on = new Set(colours.split(" ").filter(Boolean));
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at];
    const style = STYLES.get(code);
    if (code === 0) on.clear();
    else if (style) on.add(style);
    else if (ENDS.has(code)) for (const word of ENDS.get(code) ?? []) on.delete(word);
    else if (code >= 30 && code <= 37) paint(on, `a-${code - 30}`);
    else if (code >= 90 && code <= 97) paint(on, bright(code - 90));
    else if (code === 39) paint(on, "");
    else if (code === 38 || code === 48) {
      const [word, used] = extended(numbers.slice(at + 1));
      if (code === 38) paint(on, word);
      at += used;
    }
  }
  return [...on].join(" ");
}

/** @param {Set<string>} on
 * @param {string} word or nothing */
function paint(on, word) {
  for (const one of [...on]) if (/^(a-\d|x-)/.test(one)) on.delete(one);
  if (word) on.add(word);
}

/** The bright ones are the same here, where all are made to be read; but bright black is grey.
 * @param {number} colour */
function bright(colour) {
  return colour === 0 ? "a-8" : `a-${colour}`;
}

/** Of 256 colours or of all there are: the word, and how many numbers it took.
 * @param {number[]} numbers
 * @returns {[string, number]} */
function extended(numbers) {
  const [kind, first] = numbers;
  if (kind === 2) return [`x-${hex(numbers.slice(1, 4))}`, 4];
  if (kind !== 5) return ["", 1];
  if (!(first >= 0 && first <= 255)) return ["", 2];
  if (first < 16) return [first < 8 ? `a-${first}` : bright(first - 8), 2];
  const grey = 8 + 10 * (first - 232);
  const cube = [Math.floor((first - 16) / 36), Math.floor((first - 16) / 6) % 6, (first - 16) % 6];
  return [`x-${hex(first >= 232 ? [grey, grey, grey] : cube.map((step) => (step ? 55 + 40 * step : 0)))}`, 2];
}

/** @param {number[]} parts */
function hex(parts) {
  const byte = (/** @type {number} */ part) => Math.min(255, Math.max(0, part || 0)).toString(16).padStart(2, "0");
  return `#${[0, 1, 2].map((at) => byte(parts[at])).join("")}`;
}

/** @type {Map<string, string>} */
const readable = new Map();

/** The same hue, dark enough on light and light enough on dark.
 * @param {string} colour #rrggbb */
function inBothThemes(colour) {
  let found = readable.get(colour);
  if (!found) {
    found = `light-dark(${towards(colour, 0, 1)}, ${towards(colour, 255, 0.018)})`;
    readable.set(colour, found);
  }
  return found;
}

/** @param {string} colour
 * @param {number} end of each part, that it is mixed with as far as is needed
 * @param {number} ground its luminance */
function towards(colour, end, ground) {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  for (let mixed = 0; mixed <= 1; mixed += 0.05) {
    const now = parts.map((part) => Math.round(part + (end - part) * mixed));
    const light = luminance(now);
    if ((Math.max(light, ground) + 0.05) / (Math.min(light, ground) + 0.05) >= ENOUGH) return hex(now);
  }
  return hex([end, end, end]);
}

/** @param {number[]} parts */
function luminance(parts) {
  const [red, green, blue] = parts.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** A line as elements, with what is looked for marked.
 * @param {Line} line
 * @param {string} wanted in lower case, or nothing */
export function drawn(line, wanted) {
  const made = document.createElement("span");
  made.className = "text";
  let colours = line.colours;
  let from = 0;
  const whole = shown(line.text);
  const text = whole.slice(0, DRAWN);
  for (const found of text.matchAll(CODES)) {
    put(made, text.slice(from, found.index), colours, wanted);
    colours = turned(colours, found[1]);
    from = (found.index ?? 0) + found[0].length;
  }
  put(made, text.slice(from), colours, wanted);
  if (whole.length > DRAWN) put(made, " … the rest is in the download", "a-8", "");
  return made;
}

/** @param {HTMLElement} into
 * @param {string} text
 * @param {string} colours
 * @param {string} wanted */
function put(into, text, colours, wanted) {
  if (!text) return;
  const place = colours ? coloured(into, colours) : into;
  const low = wanted ? text.toLowerCase() : "";
  let from = 0;
  for (let at = wanted ? low.indexOf(wanted) : -1; at >= 0; at = low.indexOf(wanted, from)) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + wanted.length);
    place.append(text.slice(from, at), mark);
    from = at + wanted.length;
  }
  place.append(text.slice(from));
}

/** @param {HTMLElement} into
 * @param {string} colours */
function coloured(into, colours) {
  const made = into.appendChild(document.createElement("span"));
  for (const word of colours.split(" ")) {
    if (word.startsWith("x-")) made.style.setProperty("color", inBothThemes(word.slice(2)));
    else made.classList.add(word);
  }
  return made;
}
