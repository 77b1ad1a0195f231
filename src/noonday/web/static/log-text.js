// The lines of an output, as they are read piece by piece.
// @ts-check

import { after } from "./log-colours.js";

/** @typedef {{place: number, line: number, text: string}} Piece */
/** @typedef {{number: number, text: string, colours: string}} Line a number of 0 stands for what was left out */

const MOST = 200_000; // lines that a page holds; of more, the middle goes
const HEAD = 20_000;
const LONGEST = 100_000; // characters of one line that a page holds

export class LogText {
  constructor() {
    /** @type {Line[]} */
    this.lines = [];
    this.next = 0; // the place behind all that was read
    this.colours = ""; // as the last line leaves them
    this.open = false; // the last line may go on
    this.cut = 0; // how often lines in the middle went: their places among the others have changed
  }

  /** @param {Piece} piece */
  add(piece) {
    if (piece.place > this.next) this.#gap(piece.place - this.next);
    const parts = piece.text.split("\n");
    const last = parts.length - 1;
    for (const [at, text] of parts.entries()) {
      if (at === 0 && this.open) this.#grow(this.lines[this.lines.length - 1], text);
      else if (at < last || text) this.#put(piece.line + 1 + at, text);
    }
    this.open = parts[last] !== "" || (last === 0 && this.open);
    this.next = piece.place + characters(piece.text);
    if (this.lines.length > MOST) this.#thin();
  }

  /** @param {number} number
   * @param {string} text */
  #put(number, text) {
    const line = { number, text: "", colours: this.colours };
    this.lines.push(line);
    this.#grow(line, text);
  }

  /** A progress bar writes over itself for hours: only what was written last is held.
   * @param {Line} line
   * @param {string} text */
  #grow(line, text) {
    this.colours = after(this.colours, text);
    line.text += text;
    const over = line.text.lastIndexOf("\r", line.text.length - 2);
    if (over >= 0) {
      line.colours = after(line.colours, line.text.slice(0, over));
      line.text = line.text.slice(over + 1);
    }
    if (line.text.length > LONGEST) line.text = line.text.slice(0, LONGEST);
  }

  /** @param {number} many */
  #gap(many) {
    this.lines.push({ number: 0, text: `… ${many.toLocaleString("en")} characters left out …`, colours: "" });
    this.open = false;
  }

  #thin() {
    const gone = this.lines.splice(HEAD, this.lines.length - MOST + HEAD);
    this.lines.splice(HEAD, 0, { number: 0, text: `… ${gone.length.toLocaleString("en")} lines left out on this page; the download has what is kept …`, colours: "" });
    this.cut++;
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

/** As the server counts them: one beyond the first 65,536 is one, though here it is two.
 * @param {string} text */
function characters(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}
