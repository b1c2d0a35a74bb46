// A log of any length in a few hundred elements: only the lines that are seen are fetched and drawn.

import { coloured, element } from "/static/draw.js";

const LINE_PX = 18;
const PAGE_LINES = 256;
const KEPT_PAGES = 64;
// Browsers cap the height of an element; beyond this the scroll bar stands for more than it measures.
const MAX_HEIGHT_PX = 8e6;

export class LogView {
  #view;
  #spacer = element("div", { class: "spacer" });
  #rows = element("div", { class: "rows" });
  #fetchLines;
  #pages = new Map();
  #total = 0;
  #top = 0;
  #scale = 1;
  #drawing = 0;
  #setScroll = null;
  #marked = new Set();
  #target = -1;
  #onFault;

  // `fetchLines(first, count)` gives `{lines, total}`; `onFault` hears what went wrong with it.
  constructor(view, fetchLines, onFault) {
    this.#view = view;
    this.#fetchLines = fetchLines;
    this.#onFault = onFault;
    view.replaceChildren(this.#spacer, this.#rows);
    view.addEventListener("scroll", () => this.#scrolled());
    view.addEventListener("wheel", (event) => this.#wheeled(event), { passive: false });
    new ResizeObserver(() => this.#draw()).observe(view);
  }

  // Look again at how long the log is; keep to its end where `atEnd` says so.
  async refresh(atEnd) {
    const last = Math.floor(this.#total / PAGE_LINES);
    try {
      this.#take(last, await this.#fetch(last));
    } catch (fault) {
      this.#onFault(fault);
      return;
    }
    await (atEnd ? this.#moveTo(this.#lastTop()) : this.#draw());
  }

  // Bring a line (counted from 0) into the middle and mark it.
  async go(line) {
    this.#target = line;
    await this.#moveTo(line - Math.floor(this.#seen() / 2));
  }

  async mark(lines) {
    this.#marked = new Set(lines);
    await this.#draw();
  }

  #seen() { return Math.ceil(this.#view.clientHeight / LINE_PX) + 1; }

  #lastTop() { return Math.max(0, this.#total - Math.floor(this.#view.clientHeight / LINE_PX)); }

  #moveTo(top) {
    this.#top = Math.max(0, Math.min(this.#lastTop(), top));
    this.#view.scrollTop = (this.#top * LINE_PX) / this.#scale;
    // Read back: the browser rounds, and stops at its end.
    this.#setScroll = this.#view.scrollTop;
    return this.#draw();
  }

  #scrolled() {
    // A scroll of our own making must not round the line that was asked for.
    if (this.#setScroll !== null && Math.abs(this.#view.scrollTop - this.#setScroll) <= 1) return;
    this.#setScroll = null;
    this.#top = Math.min(this.#lastTop(), (this.#view.scrollTop * this.#scale) / LINE_PX);
    requestAnimationFrame(() => this.#draw());
  }

  #wheeled(event) {
    if (this.#scale === 1 || event.deltaY === 0 || event.ctrlKey) return;
    event.preventDefault();
    this.#moveTo(this.#top + (event.deltaMode === 1 ? event.deltaY : event.deltaY / LINE_PX));
  }

  #fetch(page) { return this.#fetchLines(page * PAGE_LINES, PAGE_LINES); }

  #take(page, { lines, total }) {
    // A page that is not full yet will be asked for again, and so will its last line, which may be cut.
    if ((page + 1) * PAGE_LINES < total) this.#pages.set(page, lines);
    if (this.#pages.size > KEPT_PAGES) this.#pages.delete(this.#pages.keys().next().value);
    if (total === this.#total) return lines;
    this.#total = total;
    this.#scale = Math.max(1, (total * LINE_PX) / MAX_HEIGHT_PX);
    this.#spacer.style.height = `${(total * LINE_PX) / this.#scale}px`;
    return lines;
  }

  async #page(page) { return this.#pages.get(page) ?? this.#take(page, await this.#fetch(page)); }

  async #draw() {
    const drawing = ++this.#drawing;
    const first = Math.floor(this.#top);
    const end = Math.min(this.#total, first + this.#seen());
    const [from, to] = [Math.floor(first / PAGE_LINES), Math.floor(Math.max(first, end - 1) / PAGE_LINES)];
    let pages;
    try {
      pages = await Promise.all(Array.from({ length: to - from + 1 }, (_, n) => this.#page(from + n)));
    } catch (fault) {
      this.#onFault(fault);
      return;
    }
    // A later drawing has begun while this one waited for its lines.
    if (drawing !== this.#drawing) return;
    const lines = pages.flat();
    const rows = [];
    for (let line = first; line < end; line++) rows.push(this.#row(line, lines[line - from * PAGE_LINES] ?? ""));
    this.#rows.replaceChildren(...rows);
    this.#rows.style.transform = `translateY(${this.#view.scrollTop}px)`;
  }

  #row(line, text) {
    const classes = [kindOf(text), this.#marked.has(line) ? "hit" : "", line === this.#target ? "target" : ""];
    const number = element("a", { href: `#L${line + 1}` }, String(line + 1));
    return element("div", { class: classes.filter(Boolean).join(" ") }, number, ...coloured(text));
  }
}

function kindOf(text) {
  if (/^(\x1b\[[\d;]*m)*(e: |error: |FAILURE: |\* What went wrong)|: error: |^> Task .* FAILED/.test(text)) return "error";
  return /^(\x1b\[[\d;]*m)*w: |: warning: /.test(text) ? "warning" : "";
}
