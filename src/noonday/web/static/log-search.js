// Finding a text in an output that grows.
// @ts-check

import { plain } from "./log-colours.js";

/** @typedef {import("./log-text.js").Line} Line */

export class LogSearch {
  wanted = ""; // in lower case
  /** @type {number[]} */
  #matches = []; // places of lines
  #at = -1;
  #searched = 0; // lines

  /** @param {string} text */
  look(text) {
    this.wanted = text.toLowerCase();
    this.restart();
  }

  /** The places of lines are other ones now. */
  restart() {
    this.#matches = [];
    this.#at = -1;
    this.#searched = 0;
  }

  /** Look through what is new, and again through the line that may have grown.
   * @param {Line[]} lines */
  more(lines) {
    if (this.wanted) {
      const from = Math.max(0, this.#searched - 1);
      if (this.#matches.at(-1) === from) this.#matches.pop();
      for (let place = from; place < lines.length; place++) {
        if (plain(lines[place].text).toLowerCase().includes(this.wanted)) this.#matches.push(place);
      }
    }
    this.#searched = lines.length;
  }

  /** The place of the line that was gone to, if any. */
  get place() {
    return this.#matches[this.#at];
  }

  /** Go on by so many; where to, if there is anything.
   * @param {number} by */
  step(by) {
    const many = this.#matches.length;
    if (many) this.#at = this.#at < 0 ? (by > 0 ? 0 : many - 1) : (this.#at + by + many) % many;
    return this.place;
  }

  get words() {
    const many = this.#matches.length;
    if (!this.wanted) return "";
    return many ? `${Math.max(this.#at, 0) + 1} of ${many.toLocaleString("en")} ${many === 1 ? "line" : "lines"}` : "no line";
  }
}
