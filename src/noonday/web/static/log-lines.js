// The lines that can be seen, and a few around them: so that 100,000 of them stay light. Follows the end if told to.
// @ts-check

import { columns } from "./log-colours.js";

/** @typedef {import("./log-text.js").Line} Line */

const TALL = 20; // px of a line, as in the style
const NUMBERS = 9; // columns
const BEYOND = 30; // lines drawn above and below what can be seen

export class LogLines {
  follow = true;
  wrap = false;
  /** @type {Line[]} */
  #lines = [];
  /** @type {number[]} */
  #tops = []; // rows above each line, where lines are wrapped
  /** @type {Map<number, HTMLElement>} */
  #drawn = new Map();
  #width = 0;
  #frame = 0;
  #resized = new ResizeObserver(() => this.#fit());

  /** @param {HTMLElement} box that scrolls
   * @param {(line: Line, place: number) => HTMLElement} draw one line
   * @param {() => void} turned called when following begins or ends by scrolling */
  constructor(box, draw, turned) {
    this.box = box;
    this.room = document.createElement("div");
    this.room.className = "room";
    box.append(this.room);
    this.draw = draw;
    this.turned = turned;
    box.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.#resized.observe(box);
  }

  close() {
    this.#resized.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  /** The place of the first that can be seen as a whole. */
  get first() {
    return this.#at(this.box.scrollTop + TALL - 1);
  }

  /** How many lie below what can be seen. */
  get below() {
    return Math.max(0, this.#lines.length - 1 - this.#at(this.box.scrollTop + this.box.clientHeight));
  }

  /** There are more lines, or the last has grown.
   * @param {Line[]} lines
   * @param {number} from the first that is not as it was */
  grow(lines, from) {
    this.#lines = lines;
    for (const [place, line] of this.#drawn) if (place >= from) this.#drop(place, line);
    if (this.#tops.length > from) this.#tops.length = from + 1;
    this.#measure();
    if (this.follow) this.toEnd();
    this.#shown();
  }

  /** Other lines, or lines of another width. */
  lay() {
    const place = this.#at(this.box.scrollTop);
    this.box.classList.toggle("wrap", this.wrap);
    this.#tops = [];
    this.#clear();
    this.#measure();
    this.box.scrollTop = this.follow ? this.box.scrollHeight : this.#top(place);
    this.#shown();
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
  }

  /** @param {number} place of a line, into the middle of what is seen */
  goTo(place) {
    this.follow = false;
    this.box.scrollTop = Math.max(0, this.#top(place) - this.box.clientHeight / 2);
    this.redraw();
  }

  redraw() {
    this.#clear();
    this.#draw();
  }

  #fit() {
    if (this.box.clientWidth === this.#width) return this.#shown();
    this.#width = this.box.clientWidth;
    this.lay();
  }

  #scrolled() {
    const left = this.box.scrollHeight - this.box.clientHeight - this.box.scrollTop;
    const end = left < TALL * 1.5;
    if (end !== this.follow && (end || left > TALL * 2)) this.follow = end;
    this.turned();
    this.#shown();
  }

  /** Rows above each line; lines that were measured stay so. */
  #measure() {
    if (this.wrap) {
      const fit = Math.max(20, Math.floor(this.box.clientWidth / this.#charWidth()) - NUMBERS - 3);
      this.box.style.setProperty("--fit", String(fit));
      const from = Math.max(0, this.#tops.length - 1);
      let rows = this.#tops[from] ?? 0;
      for (let place = from; place < this.#lines.length; place++) {
        this.#tops[place] = rows;
        rows += Math.max(1, Math.ceil(columns(this.#lines[place].text) / fit));
      }
      this.#tops[this.#lines.length] = rows;
    }
    const height = this.#top(this.#lines.length);
    this.room.style.height = `${height}px`;
    // As tall as its lines, within the bounds of the style; the extra is room for a scroll bar below.
    this.box.style.height = `${Math.max(6 * TALL, height + TALL)}px`;
  }

  #charWidth() {
    const probe = document.createElement("span");
    probe.className = "line probe";
    probe.textContent = "0".repeat(100);
    this.room.append(probe);
    const width = probe.getBoundingClientRect().width / 100 || 8;
    probe.remove();
    return width;
  }

  /** @param {number} place */
  #top(place) {
    return (this.wrap ? this.#tops[place] ?? 0 : place) * TALL;
  }

  /** The line at a height.
   * @param {number} height */
  #at(height) {
    const row = Math.floor(height / TALL);
    if (!this.wrap) return row;
    let low = 0;
    let high = this.#lines.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#tops[middle] ?? 0) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #shown() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #draw() {
    const first = Math.max(0, this.#at(this.box.scrollTop) - BEYOND);
    const seen = this.#at(this.box.scrollTop + this.box.clientHeight);
    const last = Math.min(this.#lines.length - 1, seen + BEYOND);
    for (const [place, line] of this.#drawn) if (place < first || place > last) this.#drop(place, line);
    /** @type {HTMLElement | null} */
    let next = null; // in the order of the lines, for those who select or listen
    for (let place = last; place >= first; place--) {
      let line = this.#drawn.get(place);
      if (!line) {
        line = this.draw(this.#lines[place], place);
        line.style.top = `${this.#top(place)}px`;
        this.room.insertBefore(line, next);
        this.#drawn.set(place, line);
      }
      next = line;
    }
  }

  #clear() {
    for (const [place, line] of this.#drawn) this.#drop(place, line);
  }

  /** @param {number} place
   * @param {HTMLElement} line */
  #drop(place, line) {
    line.remove();
    this.#drawn.delete(place);
  }
}
