// <time-line>: tells what lies under the pointer; with the arrow keys from run to run, from track to track.
// @ts-check

import { span } from "./kit.js";

/** What the page says of a mark; what is nothing at its end is left out.
 * @typedef {[start: number, took?: number, state?: number, id?: string | null, count?: number, late?: number]} Told */
/** @typedef {{start: number, end: number, state: string, id: string | null, count: number, late: number}} Mark */
/** @typedef {{since: number, span: number, words: string[], tracks: Told[][]}} Data */

const NEAR = 8; // px from a mark at which the pointer still means it
const SVG = "http://www.w3.org/2000/svg";

class TimeLine extends HTMLElement {
  connectedCallback() {
    this.place = -1; // of the mark that the keys are at
    /** @type {{job: string | null, id: string | null, at: number} | null} */
    this.shown = null;
    this.addEventListener("pointermove", (event) => this.#pointed(event));
    this.addEventListener("pointerleave", () => this.#hide());
    this.addEventListener("click", (event) => this.#clicked(event));
    this.addEventListener("keydown", (event) => this.#pressed(event));
    this.addEventListener("focusin", () => (this.place = -1));
    this.addEventListener("focusout", () => this.#hide());
    this.closest("[data-live]")?.addEventListener("live:swapped", () => this.#renew());
  }

  /** Read each time: a live page changes it. @returns {Data} */
  get data() {
    const text = this.querySelector("script")?.textContent ?? "";
    if (text !== this.known) {
      this.known = text;
      this.read = JSON.parse(text);
    }
    return this.read;
  }

  /** @param {Element} track */
  #marks(track) {
    const { tracks, words } = this.data;
    const told = tracks[Number(track.getAttribute("data-track"))] ?? [];
    return told.map(([start, took = 0, state = 0, id = null, count = 1, late = 0]) => ({
      start, end: start + took, state: words[state], id, count, late,
    }));
  }

  /** @param {MouseEvent} event @returns {[Element, Mark] | null} */
  #under(event) {
    const track = /** @type {Element} */ (event.target).closest(".track[data-track]");
    if (!track) return null;
    const box = track.getBoundingClientRect();
    const perPixel = this.data.span / box.width;
    const at = (event.clientX - box.left) * perPixel;
    let best = null;
    let least = NEAR * perPixel;
    for (const mark of this.#marks(track)) {
      const away = Math.max(mark.start - at, at - mark.end, 0);
      if (away < least || (away === 0 && least === 0)) [best, least] = [mark, away];
    }
    return best && [track, best];
  }

  /** @param {PointerEvent} event */
  #pointed(event) {
    const found = this.#under(event);
    if (found) this.#show(...found);
    else this.#hide();
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const found = this.#under(event);
    if (found) this.#open(...found);
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const track = /** @type {Element} */ (event.target).closest(".track[data-track]");
    if (!(track instanceof SVGElement) || event.ctrlKey || event.metaKey || event.altKey) return;
    const marks = this.#marks(track);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && marks.length) {
      this.place = Math.min(Math.max(this.place + step, 0), marks.length - 1);
      this.#show(track, marks[this.place]);
    } else if (way) {
      const all = [...this.querySelectorAll(".track[data-track]")];
      const next = all[all.indexOf(track) + way];
      if (next instanceof SVGElement) {
        track.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
      }
    } else if (event.key === "Enter" && marks[this.place]) {
      this.#open(track, marks[this.place]);
    } else if (event.key === "Escape") {
      this.#hide();
    } else return;
    event.preventDefault();
  }

  /** @param {Element} track @param {Mark} mark */
  #show(track, mark) {
    const tip = this.querySelector("output");
    if (!tip) return;
    const words = this.#words(track, mark);
    if (tip.textContent !== words) tip.textContent = words;
    const box = track.getBoundingClientRect();
    const own = this.getBoundingClientRect();
    const x = box.left - own.left + Math.max((mark.start / this.data.span) * box.width, 0);
    tip.style.setProperty("--x", `${x}px`);
    tip.style.setProperty("--y", `${box.bottom - own.top + 6}px`);
    tip.hidden = false;
    this.#frame(track, mark);
    this.shown = { job: track.getAttribute("data-job"), id: mark.id, at: this.data.since + mark.start };
  }

  /** The page has been drawn anew, without what was shown: it is shown again, where it lies now. */
  #renew() {
    if (!this.shown) return;
    const { job, id, at } = this.shown;
    const track = [...this.querySelectorAll(".track[data-track]")].find((one) => one.getAttribute("data-job") === job);
    const marks = track ? this.#marks(track) : [];
    const place = marks.findIndex((mark) => (id ? mark.id === id : Math.abs(this.data.since + mark.start - at) < 1));
    if (!track || place < 0) return this.#hide();
    if (this.place >= 0) this.place = place;
    this.#show(track, marks[place]);
  }

  /** @param {Element} track @param {Mark} mark */
  #frame(track, mark) {
    this.querySelector(".mark")?.remove();
    const frame = document.createElementNS(SVG, "rect");
    const unit = 1000 / this.data.span;
    const left = Math.max(mark.start, 0) * unit;
    for (const [name, value] of Object.entries({ class: "mark", x: left, y: 0, height: 24 })) frame.setAttribute(name, `${value}`);
    frame.setAttribute("width", `${Math.max(Math.min(mark.end, this.data.span) * unit - left, 2)}`);
    track.append(frame);
  }

  #hide() {
    const tip = this.querySelector("output");
    if (tip) tip.hidden = true;
    this.querySelector(".mark")?.remove();
    this.shown = null;
  }

  /** @param {Element} track @param {Mark} mark */
  #words(track, { start, end, state, count, late }) {
    const job = track.getAttribute("data-job");
    const first = this.#clock(start);
    const took = end - start >= 1 ? `, ${state === "planned" ? "about " : ""}${span(end - start)}` : "";
    if (count > 1) return `${job}\n${count.toLocaleString("en")} runs close together, at worst ${state}\n${first} to ${this.#clock(end)}`;
    return `${job}\n${state} · ${first}${took}${late ? `\nstarted ${span(late)} late` : ""}`;
  }

  /** @param {number} seconds from the beginning of the line */
  #clock(seconds) {
    const zone = this.getAttribute("data-tz") ?? "UTC";
    const at = new Date((this.data.since + seconds) * 1000);
    return new Intl.DateTimeFormat("en-GB", {
      timeZone: zone, weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
    }).format(at);
  }

  /** @param {Element} track @param {Mark} mark */
  #open(track, { start, end, state, id }) {
    const job = track.getAttribute("data-job") ?? "";
    const at = (/** @type {number} */ seconds) => new Date((this.data.since + seconds) * 1000).toISOString();
    if (id) location.href = `/ui/runs/${id}`;
    else if (state === "planned") location.href = `/ui/jobs/${encodeURIComponent(job)}`;
    else {
      const asked = `job:"${job.replaceAll(/["\\]/g, "\\$&")}" started:>=${at(start)} started:<=${at(end)}`;
      location.href = `/ui/runs?q=${encodeURIComponent(asked)}`;
    }
  }
}

customElements.define("time-line", TimeLine);
