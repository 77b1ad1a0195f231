// The lines of an output, as they are read piece by piece; and one line as people see it: terminal colours, marks.
// @ts-check

/** @typedef {{place: number, line: number, text: string}} Piece */
/** @typedef {{number: number, text: string, colours: string}} Line a number of 0 stands for what was left out */

const MOST = 200_000; // lines that a page holds; of more, the middle goes
const HEAD = 20_000;
const CODES = /\x1b\[([0-9;]*)m/g;
const OTHERS = /\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\u{1f300}-\u{1faff}]/gu;
const TAB = 8;

export class LogText {
  constructor() {
    /** @type {Line[]} */
    this.lines = [];
    this.next = 0; // the place behind all that was read
    this.colours = ""; // as the last line leaves them
    this.open = false; // the last line may go on
  }

  /** @param {Piece} piece */
  add(piece) {
    if (piece.place > this.next) this.#gap(piece.place - this.next);
    const parts = piece.text.split("\n");
    let number = piece.line + 1;
    for (const [place, text] of parts.entries()) {
      if (place === 0 && this.open) {
        const last = this.lines[this.lines.length - 1];
        last.text += text;
        this.colours = after(last.colours, last.text);
      } else if (place < parts.length - 1 || text) {
        this.lines.push({ number, text, colours: this.colours });
        this.colours = after(this.colours, text);
      }
      number++;
    }
    this.open = !piece.text.endsWith("\n");
    this.next = piece.place + piece.text.length;
    // Places count characters as the server does, where one beyond the first 65,536 is one.
    const pairs = piece.text.match(/[\ud800-\udbff][\udc00-\udfff]/g);
    if (pairs) this.next -= pairs.length;
    if (this.lines.length > MOST) this.#thin();
  }

  /** @param {number} characters */
  #gap(characters) {
    this.lines.push({ number: 0, text: `… ${characters.toLocaleString("en")} characters left out …`, colours: "" });
    this.open = false;
  }

  #thin() {
    const gone = this.lines.splice(HEAD, this.lines.length - MOST + HEAD);
    this.lines.splice(HEAD, 0, { number: 0, text: `… ${gone.length.toLocaleString("en")} lines left out on this page; the download has what is kept …`, colours: "" });
  }

  /** @param {number} number */
  reaches(number) {
    return (this.lines.at(-1)?.number ?? 0) >= number;
  }

  /** The place among the lines of a line's number, or of the first one behind it.
   * @param {number} number */
  indexOf(number) {
    const found = this.lines.findIndex((line) => line.number >= number);
    return found < 0 ? this.lines.length - 1 : found;
  }
}

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
  return line.replace(/[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/g, "");
}

/** How many columns a line takes.
 * @param {string} text */
export function columns(text) {
  const line = plain(text);
  return line.length + (/[^\x00-\u10ff]/.test(line) ? (line.match(WIDE) ?? []).length : 0);
}

/** The colours that are on behind a text.
 * @param {string} colours
 * @param {string} text */
function after(colours, text) {
  if (!text.includes("\x1b[")) return colours;
  for (const [, codes] of text.matchAll(CODES)) colours = turned(colours, codes);
  return colours;
}

/** @param {string} colours classes
 * @param {string} codes as in ESC[1;31m */
function turned(colours, codes) {
  const on = new Set(colours.split(" ").filter(Boolean));
  const colour = (/** @type {number | null} */ number) => {
    for (const one of [...on]) if (/^a-\d$/.test(one)) on.delete(one);
    if (number !== null) on.add(`a-${number}`);
  };
  const numbers = codes.split(";").map(Number);
  for (let place = 0; place < numbers.length; place++) {
    const code = numbers[place];
    if (code === 0) on.clear();
    else if (code === 1) on.add("a-b");
    else if (code === 2) on.add("a-d");
    else if (code === 3) on.add("a-i");
    else if (code === 4) on.add("a-u");
    else if (code === 22) on.delete("a-b"), on.delete("a-d");
    else if (code === 23) on.delete("a-i");
    else if (code === 24) on.delete("a-u");
    else if (code >= 30 && code <= 37) colour(code - 30);
    else if (code >= 90 && code <= 97) colour(code - 90);
    else if (code === 39) colour(null);
    else if (code === 38 || code === 48) {
      if (code === 38 && numbers[place + 1] === 5) colour(numbers[place + 2] < 16 ? numbers[place + 2] % 8 : null);
      place += numbers[place + 1] === 5 ? 2 : 4;
    }
  }
  return [...on].join(" ");
}

/** A line as elements, with what is looked for marked.
 * @param {Line} line
 * @param {string} wanted in lower case, or nothing */
export function drawn(line, wanted) {
  const made = document.createElement("span");
  made.className = "text";
  let colours = line.colours;
  let from = 0;
  const text = shown(line.text);
  for (const found of text.matchAll(CODES)) {
    put(made, text.slice(from, found.index), colours, wanted);
    colours = turned(colours, found[1]);
    from = (found.index ?? 0) + found[0].length;
  }
  put(made, text.slice(from), colours, wanted);
  return made;
}

/** @param {HTMLElement} into
 * @param {string} text
 * @param {string} colours
 * @param {string} wanted */
function put(into, text, colours, wanted) {
  if (!text) return;
  let place = into;
  if (colours) {
    place = document.createElement("span");
    place.className = colours;
    into.append(place);
  }
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
