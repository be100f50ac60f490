// One view of attention for a file, a notebook and a served page: `mount(element, payload)`.
//
// No dependency, no build step, no request to anywhere. Every token is text, never markup.
// The payload is what regard.see.payload.pack makes; nothing here computes attention but the
// walk-through, which does so in the open, beside the numbers that torch computed.

const VIEWS = {
  matrix: "Matrix",
  text: "Text",
  lines: "Lines",
  overview: "All maps",
  alignment: "Alignment",
  compare: "Compare",
  walk: "Walk-through",
  statistics: "Statistics",
  vectors: "Word vectors",
};
const NUMBERS = 34; // pixels of a cell that can carry its number
const RIBBONS = 64; // words of an alignment that can be read
const FLOW = 2000; // tokens of a text whose words are coloured
const LINES = 60; // tokens on each side between which lines are drawn
const CELLS = 4096; // cells up to which a saved drawing has a shape for each
const TABLE = 40; // rows and columns of the table for screen readers
const SORTS = {
  order: "layer and head",
  entropy: "entropy",
  diagonal: "diagonal",
  previous: "previous token",
  first: "first token",
};
// The last four by name: left to itself, chromium takes a font for some of their letters that lacks others.
const FONTS =
  'system-ui, "Noto Sans", "Noto Sans Tamil", "Noto Sans Devanagari", "Noto Sans Gujarati", "Noto Sans Kannada", ' +
  '"DejaVu Sans", sans-serif';
const LABEL = 15 / 14; // the largest size of a label, where texts are measured at 14
const CHOICES = { theme: ["auto", "light", "dark"], scale: ["map", "row"], sort: Object.keys(SORTS) };
const CAUTION = "Weights show where a model looks, not why it decides: attention is not explanation.";

// ---------------------------------------------------------------- small tools

function el(tag, props = {}, ...kids) {
  return fill(document.createElement(tag), props, kids);
}

function svg(tag, props = {}, ...kids) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, kids);
}

function fill(node, props, kids) {
  for (const [name, value] of Object.entries(props)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...kids.flat(Infinity).filter((kid) => kid != null && kid !== false));
  return node;
}

const word = (text, props = {}) => el("bdi", { dir: "auto", ...props }, text);
/** W_q with its q below the line. */
const math = (text) => text.split(/_(\w+)/).map((part, n) => (n % 2 ? el("sub", {}, part) : part));
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const sum = (xs) => xs.reduce((a, b) => a + b, 0);
const largest = (xs, least = 0) => xs.reduce((a, b) => Math.max(a, b), least);
const sizes = (xs) => Array.from(xs, Math.abs);
const share = (x, whole) => (whole ? x / whole : 0);

function show(w, digits = 2) {
  if (!Number.isFinite(w)) return String(w);
  const size = Math.abs(w);
  if (size !== 0 && size < 0.5 * 10 ** -digits) {
    if (digits > 2) return w.toExponential(1).replaceAll("-", "−");
    if (w > 0) return `<${(10 ** -digits).toFixed(digits)}`; // not nothing
  }
  return (size >= 1000 ? w.toPrecision(4) : w.toFixed(digits)).replace("-", "−");
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const floats = (base64) => new Float32Array(bytesOf(base64).buffer);

// ---------------------------------------------------------------- weights

/** A map of n x m weights: floats, or whole numbers with a scale for each row. */
class Plane {
  constructor(n, m, data, scale = null) {
    Object.assign(this, { n, m, data, scale, levels: [] });
  }

  static async unpack(packed) {
    const [n, m] = packed.shape;
    let bytes = bytesOf(packed.data);
    if (packed.deflated) bytes = await inflate(bytes);
    if (packed.kind === "f32") return new Plane(n, m, new Float32Array(bytes.buffer));
    return new Plane(n, m, packed.kind === "i8" ? new Int8Array(bytes.buffer) : bytes, floats(packed.scale));
  }

  at(i, j) {
    const x = this.data[i * this.m + j];
    return this.scale ? x * this.scale[i] : x;
  }

  row(i) {
    return Array.from({ length: this.m }, (_, j) => this.at(i, j));
  }

  get most() {
    if (this._most === undefined) {
      let most = 0;
      for (let i = 0, at = 0; i < this.n; i++) {
        let row = 0;
        for (let j = 0; j < this.m; j++, at++) {
          const x = Math.abs(this.data[at]);
          if (x > row) row = x;
        }
        most = Math.max(most, this.scale ? row * this.scale[i] : row);
      }
      this._most = most;
    }
    return this._most;
  }

  get signed() {
    if (this._signed === undefined) this._signed = !(this.data instanceof Uint8Array) && this.data.some((x) => x < 0);
    return this._signed;
  }

  /** The map at 1/2^level of its size. A cell keeps the largest weight in it, so that no peak is lost. */
  level(level) {
    if (level === 0) return this;
    if (!this.levels[level]) {
      const fine = this.level(level - 1),
        n = (fine.n + 1) >> 1,
        m = (fine.m + 1) >> 1;
      const data = new Float32Array(n * m);
      for (let i = 0; i < fine.n; i++) {
        const scale = fine.scale ? fine.scale[i] : 1,
          from = i * fine.m,
          to = (i >> 1) * m;
        for (let j = 0; j < fine.m; j++) {
          const x = fine.data[from + j] * scale,
            k = to + (j >> 1);
          if (x > data[k] ? x >= -data[k] : -x > Math.abs(data[k])) data[k] = x;
        }
      }
      this.levels[level] = new Plane(n, m, data);
    }
    return this.levels[level];
  }

  /** Rows averaged and columns summed within groups; a group of -1 is left out. */
  merge(rows, columns) {
    const n = largest(rows, -1) + 1,
      m = largest(columns, -1) + 1;
    const data = new Float32Array(n * m),
      count = new Float32Array(n);
    for (let i = 0; i < this.n; i++) {
      if (rows[i] < 0) continue;
      count[rows[i]]++;
      for (let j = 0; j < this.m; j++) if (columns[j] >= 0) data[rows[i] * m + columns[j]] += this.at(i, j);
    }
    for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) data[i * m + j] /= count[i];
    return new Plane(n, m, data);
  }

  minus(other) {
    const data = new Float32Array(this.n * this.m);
    for (let i = 0; i < this.n; i++)
      for (let j = 0; j < this.m; j++) data[i * this.m + j] = this.at(i, j) - other.at(i, j);
    return new Plane(this.n, this.m, data);
  }
}

/** The best key of each query, where the order of neighbours turns round, and keys that several queries share. */
function linksOf(plane) {
  const key = [],
    inverted = [],
    count = new Map();
  for (let i = 0; i < plane.n; i++) {
    let best = -1,
      most = 0;
    for (let j = 0; j < plane.m; j++) {
      const w = Math.abs(plane.at(i, j));
      if (w > most) {
        most = w;
        best = j;
      }
    }
    key.push(best);
    inverted.push(false);
    if (best >= 0) count.set(best, (count.get(best) || 0) + 1);
  }
  const linked = key.map((j, i) => [i, j]).filter(([, j]) => j >= 0);
  linked.forEach(([b, j], at) => {
    if (at && j < linked[at - 1][1]) inverted[b] = inverted[linked[at - 1][0]] = true;
  });
  const shared = new Set([...count].filter(([, c]) => c > 1).map(([j]) => j));
  const kindOfRow = (i) => (inverted[i] ? "inverted" : shared.has(key[i]) ? "shared" : "ink"),
    kindOfColumn = (j) => (shared.has(j) ? "shared" : "ink");
  return { key, inverted, shared, kindOfRow, kindOfColumn };
}

/** Ribbons from queries above to keys below: all of one scale, such that none is wider than its word's place. */
function bandsOf(plane, links, wide, high) {
  const { n, m } = plane,
    rows = Array.from({ length: n }, (_, i) => sizes(plane.row(i))),
    ofRow = rows.map(sum),
    ofColumn = Array.from({ length: m }, (_, j) => sum(rows.map((row) => row[j])));
  const unit = 0.8 * wide * Math.min(1 / n / largest(ofRow, 1e-9), 1 / m / largest(ofColumn, 1e-9));
  const above = ofRow.map((whole, i) => ((i + 0.5) * wide) / n - (unit * whole) / 2),
    below = ofColumn.map((whole, j) => ((j + 0.5) * wide) / m - (unit * whole) / 2);
  const bands = [],
    half = high / 2;
  rows.forEach((row, i) =>
    row.forEach((size, j) => {
      const [x, y, w] = [above[i], below[j], unit * size];
      above[i] += w;
      below[j] += w;
      if (size < 0.01) return;
      const main = links.key[i] === j,
        kind = main ? links.kindOfRow(i).replace("ink", "link") : "link";
      const d =
        `M${x},0C${x},${half} ${y},${half} ${y},${high}` +
        `L${y + w},${high}C${y + w},${half} ${x + w},${half} ${x + w},0Z`;
      bands.push({ i, j, w, main, kind, d });
    }),
  );
  return bands.sort((a, b) => a.main - b.main || a.w - b.w);
}

function entropyOf(row) {
  const total = sum(row.map(Math.abs));
  return total
    ? -sum(
        row.map((w) => {
          const p = Math.abs(w) / total;
          return p ? p * Math.log(p) : 0;
        }),
      )
    : 0;
}

function topOf(row, k) {
  return [...row.keys()]
    .sort((a, b) => Math.abs(row[b]) - Math.abs(row[a]))
    .slice(0, k)
    .filter((j) => row[j] !== 0);
}

// ---------------------------------------------------------------- colours

const hexOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function shade(x, stops) {
  const place = clamp(x, 0, 1) * (stops.length - 1),
    low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((a, c) => Math.round(a + (stops[low + 1][c] - a) * (place - low)));
}

function inkOn([r, g, b]) {
  const [R, G, B] = [r, g, b].map((c) => (c <= 10 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * R + 0.7152 * G + 0.0722 * B < 0.179 ? "#fff" : "#000";
}

// ---------------------------------------------------------------- the style

const STYLE = `
:host { display: block; color-scheme: light dark; }
.root {
  --paper: #ffffff; --ink: #16181d; --quiet: #565d6b; --edge: #d5d9e0; --soft: #f3f5f8; --hot: #1f5fbf;
  --mark: #c2410c; --link: #5b7fb5; --inverted: #b45309; --shared: #0f766e; background: var(--paper);
  color: var(--ink); font: 15px/1.45 ${FONTS}; padding: 14px 18px; text-align: start;
}
.root.dark {
  --paper: #14161a; --ink: #eceff4; --quiet: #a6aebb; --edge: #363b45; --soft: #1d2026; --hot: #8ab8ff;
  --mark: #ffb27a; --link: #7ea6e0; --inverted: #ff9e4a; --shared: #4fd1b0; color-scheme: dark;
}
.root.light { color-scheme: light; }
.root.whole { min-height: 100vh; }
* { box-sizing: border-box; }
h1 { font-size: 19px; font-weight: 650; margin: 0; flex: 1 1 auto; overflow-wrap: anywhere; }
h2 { font-size: 15px; font-weight: 650; margin: 22px 0 4px; }
p { margin: 4px 0; }
.quiet { color: var(--quiet); font-size: 13px; }
header, .tools, .side-by-side { display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: center; }
.side-by-side { align-items: flex-start; gap: 20px 28px; margin-top: 10px; }
[role=tablist] { display: flex; flex-wrap: wrap; gap: 2px; border-bottom: 1px solid var(--edge); margin: 10px 0; }
[role=tab] {
  border: 0; border-bottom: 3px solid transparent; background: none; padding: 6px 11px; color: var(--quiet);
}
[role=tab][aria-selected=true] { color: var(--ink); border-color: var(--hot); font-weight: 600; }
button, select, input { font: inherit; color: inherit; }
button { cursor: pointer; }
button:hover { background: var(--soft); }
.tools button, header button, select {
  border: 1px solid var(--edge); border-radius: 6px; background: var(--paper); padding: 3px 9px; max-width: 20em;
}
.tools label { display: inline-flex; gap: 6px; align-items: center; }
:focus-visible { outline: 3px solid var(--hot); outline-offset: 2px; }
.said { min-height: 1.5em; margin: 8px 0; font-variant-numeric: tabular-nums; }
.said b { font-weight: 650; }
.matrix { position: relative; flex: 0 0 auto; touch-action: pan-y; user-select: none; }
.matrix canvas { display: block; position: absolute; image-rendering: pixelated; cursor: crosshair; }
.label {
  position: absolute; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; line-height: 1.25;
  color: var(--ink);
}
.label.on { color: var(--hot); font-weight: 650; }
.label.middle { top: 2px; transform: translateX(-50%); }
.names { position: relative; height: 26px; }
.step { min-width: 6em; }
.label.turned { transform-origin: 0 100%; transform: rotate(-45deg); }
.box, .band { position: absolute; pointer-events: none; }
.box { border: 2px solid var(--mark); box-shadow: 0 0 0 1px var(--paper); }
.box.pin { border-style: dashed; border-color: var(--hot); }
.band { border: 1px solid var(--mark); opacity: .55; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.top { min-width: 190px; max-width: 300px; flex: 1 1 200px; font-size: 14px; }
.top h2 { margin-top: 0; }
.top.wide { max-width: 420px; }
.top ol {
  list-style: none; margin: 6px 0; padding: 0; display: grid;
  grid-template-columns: fit-content(11em) minmax(3em, 1fr) auto; gap: 2px 8px;
}
.bar {
  display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; align-items: center;
  font-variant-numeric: tabular-nums;
}
.bar > bdi { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; text-align: end; }
.bar i { display: block; height: 11px; background: var(--link); border-radius: 2px; min-width: 1px; }
.bar i.minus { background: var(--inverted); }
.scale {
  display: flex; gap: 8px; align-items: center; font-size: 13px; color: var(--quiet); margin-top: 8px;
  font-variant-numeric: tabular-nums;
}
.scale canvas { width: 160px; height: 10px; border-radius: 2px; }
.scroll.low { max-height: 420px; overflow-y: auto; }
.maps { display: grid; gap: 10px; margin-top: 10px; }
.maps button {
  border: 1px solid var(--edge); border-radius: 6px; background: var(--paper); padding: 5px; text-align: start;
  overflow: hidden;
}
.maps canvas { width: 100%; aspect-ratio: 1; display: block; image-rendering: pixelated; }
.maps bdi, .maps span {
  display: block; font-size: 12px; line-height: 1.3; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
}
.maps .now { border-color: var(--hot); box-shadow: 0 0 0 1px var(--hot); }
.lines { position: relative; }
.lines button {
  position: absolute; border: 0; background: none; padding: 0 6px; height: 22px; line-height: 22px; max-width: 200px;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; border-radius: 4px;
}
.lines button.on { background: var(--soft); color: var(--hot); font-weight: 650; }
.flow { font-size: 18px; line-height: 1.75; max-width: 46em; }
.flow button { border: 0; border-radius: 4px; padding: 1px 5px; margin: 0 1px; white-space: pre-wrap; }
.flow button.on { outline: 2px solid var(--mark); }
.scroll { overflow-x: auto; max-width: 100%; padding: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
caption { text-align: start; color: var(--quiet); font-size: 13px; padding: 3px 0; }
th { font-weight: 500; color: var(--quiet); padding: 2px 8px; text-align: end; white-space: nowrap; }
td { padding: 2px 8px; text-align: end; white-space: nowrap; }
tr.on th, tr.on td { background: var(--soft); }
td input {
  width: 4.6em; text-align: end; border: 1px solid var(--edge); border-radius: 4px; background: var(--paper);
  padding: 1px 3px;
}
td.cell { min-width: 4.2em; }
.formula { font-family: "DejaVu Serif", Cambria, Georgia, serif; font-size: 16px; margin: 2px 0 6px; }
sub { font-size: 75%; line-height: 0; }
details { margin-top: 14px; }
summary { cursor: pointer; color: var(--quiet); }
footer { margin-top: 16px; border-top: 1px solid var(--edge); padding-top: 8px; }
svg { max-width: 100%; height: auto; display: block; }
path.on { stroke: var(--ink); stroke-width: 1.5px; }
svg text { fill: var(--ink); }
input[type=range] { width: 260px; accent-color: var(--hot); }
.key { display: inline-block; width: 18px; height: 6px; margin: 0 5px 2px 10px; border-radius: 2px; }
`;

// ---------------------------------------------------------------- one matrix, on canvas

/** Cells on canvas, labels in HTML, and one accessible cell that follows the cursor. */
class Matrix {
  constructor(
    view,
    { plane, rows, columns, label, most = plane.most, room = 640, tall = 560, listen = {}, headless = false },
  ) {
    Object.assign(this, { view, plane, rows, columns, most, room, tall, listen, headless, label });
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.labels = el("div", { "aria-hidden": "true" });
    this.cell = el("div", { role: "gridcell", id: `cell${(Matrix.count = (Matrix.count || 0) + 1)}`, class: "hidden" });
    this.line = el("div", { role: "row", class: "hidden" }, this.cell);
    this.across = el("div", { class: "band" });
    this.down = el("div", { class: "band" });
    this.box = el("div", { class: "box" });
    this.root = el(
      "div",
      {
        class: "matrix",
        role: "grid",
        tabindex: "0",
        "aria-label": label,
        "aria-rowcount": plane.n,
        "aria-colcount": plane.m,
        "aria-activedescendant": this.cell.id,
        "aria-readonly": "true",
        onkeydown: (event) => this.key(event),
        onpointermove: (event) => this.pointer(event, false),
        onpointerdown: (event) => this.pointer(event, true),
        onpointerup: () => {
          if (this.drag?.moved) this.listen.zoom?.(this.window);
          else if (this.drag) this.pin();
          this.drag = null;
        },
        onwheel: (event) => this.wheel(event),
      },
      this.canvas,
      this.labels,
      this.across,
      this.down,
      this.box,
      this.line,
    );
    this.window = [0, plane.n, 0, plane.m];
    this.at = [0, 0];
    this.pins = [];
    this.layout();
  }

  layout() {
    const [r0, r1, c0, c1] = this.window,
      pen = this.view.pen;
    const wide = (texts) => Math.max(0, ...texts.slice(0, 400).map((t) => pen.measureText(t).width));
    const names = this.rows.slice(r0, r1),
      heads = this.columns.slice(c0, c1);
    this.left = Math.min(wide(names) * LABEL, 170) + 12;
    const longest = wide(heads),
      slope = Math.min(longest, 150) * 0.71;
    const fit = (room) => Math.min(Math.max(room, 80) / (c1 - c0), Math.max(46, Math.min(longest + 12, 90)));
    this.cw = fit(this.room - this.left);
    this.slanted = !this.headless && longest > this.cw - 6;
    this.over = this.slanted ? slope + 14 : 0; // how far the last slanted label reaches beyond its column
    if (this.slanted) this.cw = fit(this.room - this.left - this.over);
    this.ch = Math.min(this.tall / (r1 - r0), 34, Math.max(this.cw, 18));
    this.head = this.headless ? 4 : this.slanted ? slope + 22 : 26;
    this.paint();
    this.name();
    this.place();
  }

  paint() {
    const [r0, r1, c0, c1] = this.window,
      ratio = Math.min(window.devicePixelRatio || 1, 3);
    const width = (c1 - c0) * this.cw,
      height = (r1 - r0) * this.ch;
    fill(this.root, { style: { width: `${this.left + width + this.over}px`, height: `${this.head + height}px` } }, []);
    fill(
      this.canvas,
      {
        width: Math.max(1, Math.round(width * ratio)),
        height: Math.max(1, Math.round(height * ratio)),
        style: { width: `${width}px`, height: `${height}px`, left: `${this.left}px`, top: `${this.head}px` },
      },
      [],
    );
    const brush = this.canvas.getContext("2d");
    paintCells(brush, this, this.canvas.width, this.canvas.height, ratio);
  }

  name() {
    const [r0, r1, c0, c1] = this.window,
      spans = [];
    const often = (size, need) => Math.max(1, Math.ceil(need / size));
    this.every = { row: often(this.ch, 15), column: often(this.cw, this.slanted ? 16 : 10) };
    const size = Math.min(15, Math.max(11, this.ch * 0.62));
    for (let i = r0; i < r1; i += this.every.row) {
      spans.push(
        word(this.rows[i], {
          class: "label",
          "data-row": i,
          style: {
            right: `calc(100% - ${this.left - 7}px)`,
            "max-width": `${this.left - 8}px`,
            top: `${this.head + (i - r0 + 0.5) * this.ch}px`,
            transform: "translateY(-50%)",
            "font-size": `${size}px`,
          },
        }),
      );
    }
    if (!this.headless)
      for (let j = c0; j < c1; j += this.every.column) {
        const middle = this.left + (j - c0 + 0.5) * this.cw;
        spans.push(
          word(
            this.columns[j],
            this.slanted
              ? {
                  class: "label turned",
                  "data-column": j,
                  style: {
                    left: `${middle + 3}px`,
                    bottom: `calc(100% - ${this.head - 2}px)`,
                    "max-width": "150px",
                    "font-size": `${Math.min(14, Math.max(11, this.cw * 0.7))}px`,
                  },
                }
              : {
                  class: "label",
                  "data-column": j,
                  style: {
                    left: `${middle}px`,
                    top: `${this.head - 22}px`,
                    transform: "translateX(-50%)",
                    "max-width": `${this.cw - 2}px`,
                    "font-size": "14px",
                  },
                },
          ),
        );
      }
    this.labels.replaceChildren(...spans);
  }

  /** Where the cursor and the pins stand. */
  place() {
    const [r0, r1, c0, c1] = this.window,
      [i, j] = this.at;
    const put = (node, a, b, height, width) =>
      fill(
        node,
        {
          style: {
            left: `${this.left + (b - c0) * this.cw}px`,
            top: `${this.head + (a - r0) * this.ch}px`,
            width: `${Math.max(width * this.cw, 3)}px`,
            height: `${Math.max(height * this.ch, 3)}px`,
            display: a >= r0 && a < r1 && b >= c0 && b < c1 ? "block" : "none",
          },
        },
        [],
      );
    put(this.box, i, j, 1, 1);
    put(this.across, i, c0, 1, c1 - c0);
    put(this.down, r0, j, r1 - r0, 1);
    this.root.querySelectorAll(".pin").forEach((pin) => pin.remove());
    for (const [a, b] of this.pins) {
      const pin = el("div", { class: "box pin" });
      put(pin, a, b, 1, 1);
      this.root.append(pin);
    }
    for (const node of this.labels.children) {
      node.classList.toggle("on", node.dataset.row === String(i) || node.dataset.column === String(j));
    }
    fill(this.line, { "aria-rowindex": i + 1 }, []);
    const weight = this.plane.n && this.plane.m ? this.plane.at(i, j) : 0;
    fill(
      this.cell,
      {
        "aria-colindex": j + 1,
        "data-weight": weight,
        "data-row": i,
        "data-column": j,
        "aria-selected": this.pins.some(([a, b]) => a === i && b === j) ? "true" : "false",
      },
      [],
    );
    this.cell.textContent = this.spoken();
  }

  spoken() {
    const [i, j] = this.at;
    if (!this.plane.n || !this.plane.m) return "";
    return this.listen.spoken
      ? this.listen.spoken(i, j)
      : `${this.rows[i]} attends ${show(this.plane.at(i, j))} to ${this.columns[j]}`;
  }

  move(i, j, aloud = false) {
    if (!this.plane.n || !this.plane.m) return;
    this.at = [clamp(i, 0, this.plane.n - 1), clamp(j, 0, this.plane.m - 1)];
    const [r0, r1, c0, c1] = this.window;
    if (aloud && (this.at[0] < r0 || this.at[0] >= r1 || this.at[1] < c0 || this.at[1] >= c1)) {
      const from = (at, low, high, n) => clamp(at - ((high - low) >> 1), 0, n - (high - low));
      const a = from(this.at[0], r0, r1, this.plane.n),
        b = from(this.at[1], c0, c1, this.plane.m);
      this.window = [a, a + r1 - r0, b, b + c1 - c0];
      this.layout();
    }
    this.place();
    this.listen.move?.(...this.at, aloud, this);
  }

  key(event) {
    const [i, j] = this.at,
      page = Math.max(1, Math.round((this.window[1] - this.window[0]) / 4));
    const goals = {
      ArrowUp: [i - 1, j],
      ArrowDown: [i + 1, j],
      ArrowLeft: [i, j - 1],
      ArrowRight: [i, j + 1],
      Home: [i, 0],
      End: [i, this.plane.m - 1],
      PageUp: [i - page, j],
      PageDown: [i + page, j],
    };
    if (event.ctrlKey && event.key === "Home") this.move(0, 0, true);
    else if (event.ctrlKey && event.key === "End") this.move(this.plane.n - 1, this.plane.m - 1, true);
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (goals[event.key]) this.move(...goals[event.key], true);
    else if (event.key === "Enter" || event.key === " ") this.pin();
    else if (event.key === "+" || event.key === "=") this.zoom(2);
    else if (event.key === "-") this.zoom(0.5);
    else if (event.key === "0") this.zoom(0);
    else return;
    event.preventDefault();
  }

  pin() {
    const [i, j] = this.at,
      known = this.pins.findIndex(([a, b]) => a === i && b === j);
    if (known >= 0) this.pins.splice(known, 1);
    else this.pins.push([i, j]);
    this.place();
    this.listen.pin?.(this.pins);
  }

  pointer(event, down) {
    const box = this.canvas.getBoundingClientRect(),
      [r0, r1, c0, c1] = this.window;
    const x = event.clientX - box.left,
      y = event.clientY - box.top;
    if (x < 0 || y < 0 || x >= box.width || y >= box.height) return;
    if (down) {
      this.drag = { x, y, window: this.window, moved: false };
    }
    if (this.drag && event.buttons && (r1 - r0 < this.plane.n || c1 - c0 < this.plane.m)) {
      const dr = Math.round((this.drag.y - y) / this.ch),
        dc = Math.round((this.drag.x - x) / this.cw);
      if (dr || dc || this.drag.moved) {
        const [a, b, c, d] = this.drag.window,
          r = clamp(a + dr, 0, this.plane.n - (b - a)),
          k = clamp(c + dc, 0, this.plane.m - (d - c));
        this.drag.moved = true;
        this.window = [r, r + b - a, k, k + d - c];
        this.layout();
        return;
      }
    }
    const i = r0 + Math.floor(y / this.ch),
      j = c0 + Math.floor(x / this.cw);
    this.move(i, j);
  }

  wheel(event) {
    if (!event.ctrlKey) return; // the page scrolls, unless asked to zoom
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 2 : 0.5);
  }

  /** Twice as near or as far, around the cursor; 0 shows everything. */
  zoom(factor) {
    const [i, j] = this.at,
      { n, m } = this.plane,
      [r0, r1, c0, c1] = this.window;
    const span = (size, whole) => (factor ? clamp(Math.round(size / factor), Math.min(4, whole), whole) : whole);
    const rows = span(r1 - r0, n),
      columns = span(c1 - c0, m);
    const a = clamp(i - (rows >> 1), 0, n - rows),
      b = clamp(j - (columns >> 1), 0, m - columns);
    this.window = [a, a + rows, b, b + columns];
    this.layout();
    this.listen.zoom?.(this.window);
  }
}

function paintCells(brush, matrix, width, height, ratio) {
  const {
    plane,
    window: [r0, r1, c0, c1],
    view,
  } = matrix;
  if (r1 <= r0 || c1 <= c0) return;
  const perRow = view.state.scale === "row",
    table = view.table(plane.signed);
  const cw = width / (c1 - c0),
    ch = height / (r1 - r0);
  const level = Math.max(0, Math.ceil(-Math.log2(Math.min(cw, ch, 1))));
  const coarse = plane.level(level),
    step = 2 ** level;
  const [a, b, c, d] = [Math.floor(r0 / step), Math.ceil(r1 / step), Math.floor(c0 / step), Math.ceil(c1 / step)];
  const sheet = new OffscreenCanvas(d - c, b - a),
    pen = sheet.getContext("2d"),
    image = pen.createImageData(d - c, b - a);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = a, at = 0; i < b; i++) {
    let most = matrix.most;
    if (perRow) {
      most = 0;
      for (let j = 0; j < coarse.m; j++) most = Math.max(most, Math.abs(coarse.data[i * coarse.m + j]));
      if (coarse.scale) most *= coarse.scale[i];
    }
    const unit = (coarse.scale ? coarse.scale[i] : 1) * (most ? 1 / most : 0) * (plane.signed ? 127.5 : 255),
      zero = plane.signed ? 127.5 : 0;
    for (let j = c; j < d; j++)
      pixels[at++] = table[clamp(Math.round(coarse.data[i * coarse.m + j] * unit + zero), 0, 255)];
  }
  pen.putImageData(image, 0, 0);
  brush.imageSmoothingEnabled = false;
  brush.drawImage(sheet, (r0, c0 / step - c), r0 / step - a, (c1 - c0) / step, (r1 - r0) / step, 0, 0, width, height);
  if (Math.min(cw, ch) >= 9 * ratio) {
    // lines of paper between the cells
    brush.fillStyle = view.css("--paper");
    for (let i = 1; i < r1 - r0; i++) brush.fillRect(0, Math.round(i * ch) - ratio / 2, width, ratio);
    for (let j = 1; j < c1 - c0; j++) brush.fillRect(Math.round(j * cw) - ratio / 2, 0, ratio, height);
  }
  if (cw >= NUMBERS * ratio && ch >= 15 * ratio) {
    brush.font = `${12 * ratio}px ${FONTS}`;
    brush.textAlign = "center";
    brush.textBaseline = "middle";
    for (let i = r0; i < r1; i++) {
      const most = perRow ? Math.max(...plane.row(i).map(Math.abs)) : matrix.most;
      for (let j = c0; j < c1; j++) {
        const w = plane.at(i, j),
          share = most ? w / most : 0;
        brush.fillStyle = inkOn(view.colour(share, plane.signed));
        brush.fillText(show(w), (j - c0 + 0.5) * cw, (i - r0 + 0.53) * ch);
      }
    }
  }
}

// ---------------------------------------------------------------- the view

class View {
  constructor(element, payload, options) {
    this.payload = payload;
    this.options = options;
    const shadow = element.shadowRoot || element.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    shadow.adoptedStyleSheets = [sheet];
    this.root = el("div", { class: "root", lang: "en" });
    shadow.replaceChildren(this.root);
    this.pen = document.createElement("canvas").getContext("2d");
    this.pen.font = `14px ${FONTS}`;
    this.planes = new Map();
    const square =
      payload.rows.length === payload.columns.length && payload.rows.every((r, i) => r === payload.columns[i]);
    const has = {
      matrix: true,
      text: !payload.pooled && payload.rows.length > 0 && payload.columns.length <= FLOW,
      lines: !payload.pooled,
      overview: payload.maps.length > 1,
      alignment:
        !payload.pooled &&
        payload.rows.length <= RIBBONS &&
        payload.columns.length <= RIBBONS &&
        (!square || payload.view === "alignment"),
      compare: payload.maps.length > 1,
      walk: Boolean(payload.walk),
      statistics: true,
      vectors: Boolean(payload.points),
    };
    this.views = Object.keys(VIEWS).filter((name) => has[name]);
    this.state = {
      view: this.views.includes(payload.view) ? payload.view : "matrix",
      map: 0,
      other: Math.min(1, payload.maps.length - 1),
      words: Boolean(payload.whole),
      bare: Boolean(payload.bare),
      scale: "map",
      row: 0,
      column: 0,
      step: -1,
      sort: "order",
      theme: payload.theme || "auto",
      score: null,
      normalizer: null,
      zoom: "",
      pins: "",
    };
    this.recall();
    this.media = window.matchMedia?.("(prefers-color-scheme: dark)");
    this.ended = new AbortController();
    const { signal } = this.ended;
    this.media?.addEventListener("change", () => this.draw(), { signal });
    if (options.address !== false)
      window.addEventListener("hashchange", () => (this.recall(), this.draw()), { signal }); // somebody pasted a view
    let width = this.root.clientWidth;
    this.observer = new ResizeObserver(() => {
      if (Math.abs(this.root.clientWidth - width) <= 24) return;
      width = this.root.clientWidth;
      this.draw();
    });
    this.observer.observe(this.root);
  }

  /** Nothing listens any more: another payload takes this one's place. */
  close() {
    this.ended.abort();
    this.observer.disconnect();
  }

  // The state lives in the address, so that a view can be sent to somebody.
  recall() {
    if (this.options.address === false) return;
    const given = new URLSearchParams(window.location.hash.slice(1));
    for (const [name, value] of given) {
      if (!(name in this.state)) continue;
      const now = this.state[name];
      if (typeof now === "number") {
        const x = Number.parseInt(value, 10);
        if (Number.isFinite(x)) this.state[name] = x;
      } else if (typeof now === "boolean") this.state[name] = value === "1";
      else if (!CHOICES[name] || CHOICES[name].includes(value)) this.state[name] = value;
    }
    if (!this.views.includes(this.state.view)) this.state.view = "matrix";
    for (const name of ["map", "other"]) this.state[name] = clamp(this.state[name], 0, this.payload.maps.length - 1);
  }

  remember() {
    if (this.options.address === false) return;
    const said = new URLSearchParams();
    for (const [name, value] of Object.entries(this.state)) {
      if (value === null || value === "" || (typeof value === "number" && value < 0)) continue;
      said.set(name, typeof value === "boolean" ? (value ? "1" : "0") : value);
    }
    try {
      window.history.replaceState(null, "", `#${said}`);
    } catch {
      /* a sandboxed notebook has no address */
    }
  }

  set(changes) {
    Object.assign(this.state, changes);
    this.remember();
    return this.draw();
  }

  get dark() {
    return this.state.theme === "dark" || (this.state.theme !== "light" && Boolean(this.media?.matches));
  }

  css(name) {
    return getComputedStyle(this.root).getPropertyValue(name).trim();
  }

  stops(signed) {
    const { palette } = this.payload;
    return (signed ? palette.signed[this.dark ? "dark" : "light"] : palette.weights).map(hexOf);
  }

  colour(share, signed) {
    return shade(signed ? (share + 1) / 2 : share, this.stops(signed));
  }

  /** The 256 colours as canvas wants them. */
  table(signed) {
    const stops = this.stops(signed),
      table = new Uint32Array(256);
    for (let i = 0; i < 256; i++) {
      const [r, g, b] = shade(i / 255, stops);
      table[i] = (255 << 24) | (b << 16) | (g << 8) | r;
    }
    return table;
  }

  get cuts() {
    const { payload: p, state: s } = this;
    const some = (special) => special.some(Boolean);
    return {
      words: Boolean(p.row_words || p.column_words) && !p.pooled,
      bare: !p.pooled && (some(p.special_rows) || some(p.special_columns)),
      on: !p.pooled && (s.words || s.bare),
    };
  }

  /** One map as the switches want it: tokens or words, with or without special tokens. */
  async seen(map) {
    const { payload: p, state: s } = this;
    const key = `${map} ${s.words} ${s.bare}`;
    if (!this.planes.has(key)) {
      if (!this.planes.has(map)) {
        const planes = [...this.planes.keys()];
        if (planes.length > 400) for (const old of planes.slice(0, 200)) this.planes.delete(old);
        this.planes.set(map, await Plane.unpack(p.maps[map]));
      }
      const whole = this.planes.get(map);
      const rows = grouped(p.rows, p.row_words, p.special_rows, s),
        columns = grouped(p.columns, p.column_words, p.special_columns, s);
      const plane = this.cuts.on ? whole.merge(rows.group, columns.group) : whole;
      const removed = this.removed(map, whole, rows, columns);
      this.planes.set(key, {
        plane,
        rows: p.pooled ? spans(p.rows, plane.n) : rows.names,
        columns: p.pooled ? spans(p.columns, plane.m) : columns.names,
        removed,
      });
    }
    return this.planes.get(key);
  }

  /** How much of each query's weight went to keys that are not shown: left out here, or before. */
  removed(map, whole, rows, columns) {
    const { payload: p, state: s } = this,
      before = p.maps[map].removed && floats(p.maps[map].removed);
    if (p.pooled || !(before || (s.bare && columns.group.includes(-1)))) return null;
    const lost = new Float64Array(rows.names.length),
      count = new Float64Array(rows.names.length);
    rows.group.forEach((to, i) => {
      if (to < 0) return;
      count[to]++;
      lost[to] += (before ? before[i] : 0) + sum(columns.group.map((to, j) => (to < 0 ? whole.at(i, j) : 0)));
    });
    return lost.map((x, i) => x / count[i]);
  }

  /** "2 · 5": layer and head, where there are so many maps that no more can be read. */
  shortName(map) {
    const { maps, layers } = this.payload;
    if (!layers || maps.length <= 16) return maps[map].name;
    return `${layers[map] + 1} · ${layers.slice(0, map).filter((layer) => layer === layers[map]).length + 1}`;
  }

  get nameOf() {
    return (map) => this.payload.maps[map].name || this.payload.title || "attention";
  }

  // ------------------------------------------------------------ the frame

  async draw() {
    const turn = (this.turn = (this.turn || 0) + 1);
    const { payload: p, state: s } = this;
    this.root.className = `root ${this.dark ? "dark" : "light"} ${this.options.whole ? "whole" : ""}`;
    const panel = el("div", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${s.view}` });
    const tabs = el(
      "div",
      { role: "tablist", "aria-label": "Views", onkeydown: (event) => this.tabKey(event) },
      this.views.map((name) =>
        el(
          "button",
          {
            role: "tab",
            id: `tab-${name}`,
            "aria-selected": String(name === s.view),
            "aria-controls": "panel",
            tabindex: name === s.view ? "0" : "-1",
            onclick: () => this.set({ view: name }),
          },
          VIEWS[name],
        ),
      ),
    );
    const theme = el(
      "button",
      { id: "theme", onclick: () => this.set({ theme: this.dark ? "light" : "dark" }) },
      this.dark ? "Light" : "Dark",
    );
    this.said = el("p", { class: "said", id: "said" });
    this.live = el("div", { class: "hidden", role: "status", "aria-live": "polite" });
    const body = await this[s.view](panel);
    if (turn !== this.turn) return; // somebody was faster
    const inner = this.root.getRootNode().activeElement,
      kept = inner?.id || inner?.getAttribute("data-keep");
    fill(panel, {}, body);
    this.root.replaceChildren(
      el("header", {}, el("h1", { dir: "auto" }, p.title || "Attention"), theme),
      tabs,
      panel,
      this.live,
      el(
        "footer",
        {},
        p.note ? el("p", { class: "quiet", dir: "auto" }, p.note) : null,
        el("p", { class: "quiet" }, CAUTION),
      ),
    );
    if (kept)
      this.root
        .querySelector(`#${CSS.escape(kept)}, [data-keep="${CSS.escape(kept)}"]`)
        ?.focus({ preventScroll: true });
  }

  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = this.views[(this.views.indexOf(this.state.view) + step + this.views.length) % this.views.length];
    this.root.querySelector(`#tab-${next}`).focus();
    this.set({ view: next });
  }

  pick(label, id, names, now, change) {
    return el(
      "label",
      {},
      label,
      el(
        "select",
        { id, onchange: (event) => change(event.target.value) },
        names.map(([value, text]) => el("option", { value, selected: String(value) === String(now) }, text)),
      ),
    );
  }

  pickMap(label = "Map", field = "map") {
    if (this.payload.maps.length < 2) return null;
    return this.pick(
      label,
      `pick-${field}`,
      this.payload.maps.map((m, i) => [i, m.name]),
      this.state[field],
      (value) => this.set({ [field]: Number(value), row: 0, column: 0, zoom: "", pins: "" }),
    );
  }

  tick(label, field) {
    return el(
      "label",
      {},
      el("input", {
        type: "checkbox",
        id: `tick-${field}`,
        checked: this.state[field],
        onchange: (event) => this.set({ [field]: event.target.checked, row: 0, column: 0, zoom: "", pins: "" }),
      }),
      label,
    );
  }

  tools(...more) {
    return el(
      "div",
      { class: "tools" },
      more,
      this.cuts.words ? this.tick("whole words", "words") : null,
      this.cuts.bare ? this.tick("hide special tokens", "bare") : null,
    );
  }

  get room() {
    return Math.max(280, (this.root.clientWidth || 900) - 36);
  }

  tell(i, j, seen, aloud, sentence) {
    const weight = seen.plane.at(i, j);
    if (weight === undefined) return this.said.replaceChildren("Everything is hidden.");
    this.said.replaceChildren(
      word(seen.rows[i]),
      " attends ",
      el("b", {}, show(weight, 3)),
      " to ",
      word(seen.columns[j]),
      seen.removed
        ? el("span", { class: "quiet" }, `  (${show(seen.removed[i])} of its weight went to hidden tokens)`)
        : "",
    );
    if (aloud) this.live.textContent = sentence;
  }

  scaleBar(most, signed) {
    const strip = el("canvas", { width: 256, height: 1, "aria-hidden": "true" }),
      brush = strip.getContext("2d"),
      image = brush.createImageData(256, 1);
    new Uint32Array(image.data.buffer).set(this.table(signed));
    brush.putImageData(image, 0, 0);
    return el(
      "div",
      { class: "scale" },
      signed ? show(-most) : "0",
      strip,
      this.state.scale === "row" ? "the largest of each row" : show(most),
    );
  }

  // ------------------------------------------------------------ the views

  async matrix() {
    const { state: s } = this,
      seen = await this.seen(s.map);
    const side = el("div", { class: "top" });
    const room = this.room > 760 ? this.room - 260 : this.room;
    const grid = new Matrix(this, {
      ...seen,
      label: `Weights of ${this.nameOf(s.map)}: rows are queries, columns are keys`,
      room,
      tall: Math.max(320, (window.innerHeight || 800) * 0.68),
      listen: {
        move: (i, j, aloud, g) => {
          this.tell(i, j, seen, aloud, g.spoken());
          this.top(side, i, seen);
          Object.assign(s, { row: i, column: j });
          if (aloud) this.remember();
        },
        pin: (pins) => {
          Object.assign(s, { row: grid.at[0], column: grid.at[1], pins: pins.map((p) => p.join("-")).join("_") });
          this.remember();
        },
        zoom: (window) => {
          s.zoom = window.join("-");
          this.remember();
        },
      },
    });
    const zoomed = s.zoom.split("-").map(Number);
    if (
      zoomed.length === 4 &&
      zoomed.every(Number.isInteger) &&
      zoomed[0] >= 0 &&
      zoomed[0] < zoomed[1] &&
      zoomed[1] <= seen.plane.n &&
      zoomed[2] >= 0 &&
      zoomed[2] < zoomed[3] &&
      zoomed[3] <= seen.plane.m
    ) {
      grid.window = zoomed;
      grid.layout();
    }
    grid.pins = s.pins
      .split("_")
      .map((p) => p.split("-").map(Number))
      .filter(([a, b]) => a >= 0 && b >= 0 && a < seen.plane.n && b < seen.plane.m);
    grid.root.id = "grid";
    grid.move(s.row, s.column);
    this.grid = grid;
    const tools = this.tools(
      this.pickMap(),
      this.pick(
        "colours",
        "pick-scale",
        [
          ["map", "of the whole map"],
          ["row", "of each row"],
        ],
        s.scale,
        (value) => this.set({ scale: value }),
      ),
      el("button", { id: "nearer", onclick: () => grid.zoom(2), "aria-label": "Zoom in" }, "+"),
      el("button", { id: "farther", onclick: () => grid.zoom(0.5), "aria-label": "Zoom out" }, "−"),
      el("button", { id: "whole", onclick: () => grid.zoom(0) }, "All"),
      this.savers(() => this.drawing([grid])),
    );
    const p = this.payload;
    return [
      tools,
      this.said,
      el(
        "div",
        { class: "side-by-side" },
        el("div", { class: "scroll" }, grid.root, this.scaleBar(grid.most, seen.plane.signed)),
        side,
      ),
      p.pooled
        ? el(
            "p",
            { class: "quiet" },
            `${p.rows.length} × ${p.columns.length} weights, pooled to ${seen.plane.n} × ${seen.plane.m} cells `,
            "(summed over keys, averaged over queries); the largest of each query are exact.",
          )
        : null,
      el("p", { class: "quiet" }, "Arrow keys move, Enter pins, + and − zoom (or Ctrl and the wheel); drag to pan."),
      this.fallback(seen),
    ];
  }

  /** The keys to which a query attends most: exact, also where the map is pooled. */
  top(side, i, seen) {
    const p = this.payload;
    if (!p.pooled) {
      const row = seen.plane.row(i);
      const pairs = topOf(row, 8).map((j) => [seen.columns[j], row[j]]);
      side.replaceChildren(...this.bars([word(seen.rows[i]), " attends most to"], pairs, 3));
      return;
    }
    const first = Math.ceil((i * p.rows.length) / seen.plane.n),
      last = Math.ceil(((i + 1) * p.rows.length) / seen.plane.n) - 1;
    const holder = el("div"),
      list = (query) => {
        const title = [word(p.rows[query]), ` (${query + 1}) attends most to`];
        holder.replaceChildren(...this.bars(title, this.exactOf(query), 3));
      };
    const choose = el("input", {
      type: "number",
      id: "query",
      min: first + 1,
      max: last + 1,
      value: first + 1,
      oninput: (event) => list(clamp(Number(event.target.value) - 1 || 0, first, last)),
    });
    list(first);
    side.replaceChildren(holder, el("label", { class: "quiet" }, `query ${first + 1} to ${last + 1}: `, choose));
  }

  /** The largest weights of one query of a pooled map, with the names of their keys. */
  exactOf(query) {
    const { columns } = this.payload,
      map = this.payload.maps[this.state.map],
      k = map.top.k;
    this.exact ||= new Map();
    if (!this.exact.has(map))
      this.exact.set(map, [floats(map.top.weights), new Int32Array(bytesOf(map.top.indices).buffer)]);
    const [weights, keys] = this.exact.get(map).map((all) => Array.from(all.slice(query * k, (query + 1) * k)));
    return keys.map((j, n) => [`${columns[j]} (${j + 1})`, weights[n], j]).filter(([, w, j]) => j >= 0 && w !== 0);
  }

  bars(title, pairs, digits) {
    const most = largest(sizes(pairs.map(([, w]) => w)));
    const bar = ([name, w]) => {
      const long = { width: `${100 * share(Math.abs(w), most)}%` };
      const strip = el("span", {}, el("i", { class: w < 0 ? "minus" : "", style: long }));
      return el("li", { class: "bar" }, word(name), strip, el("span", {}, show(w, digits)));
    };
    return [el("h2", {}, title), pairs.length ? el("ol", {}, pairs.map(bar)) : el("p", { class: "quiet" }, "nothing")];
  }

  /** The numbers as a table, for those who cannot see the canvas: all, or around the cursor. */
  fallback(seen, title = "Rows are queries, columns are keys") {
    const holder = el("div", {
      class: "scroll",
      tabindex: "0",
      role: "region",
      "aria-label": "The numbers as a table",
    });
    const fillIn = () => {
      const { plane } = seen,
        [i, j] = this.grid.at;
      const a = clamp(i - TABLE / 2, 0, Math.max(0, plane.n - TABLE)),
        b = Math.min(a + TABLE, plane.n),
        c = clamp(j - TABLE / 2, 0, Math.max(0, plane.m - TABLE)),
        d = Math.min(c + TABLE, plane.m);
      const part =
        b - a < plane.n || d - c < plane.m
          ? `, queries ${a + 1} to ${b} of ${plane.n}, keys ${c + 1} to ${d} of ${plane.m} (around the cursor)`
          : "";
      const numbers = Array.from({ length: b - a }, (_, r) =>
        Array.from({ length: d - c }, (_, k) => plane.at(a + r, c + k)),
      );
      holder.replaceChildren(
        this.numbers(`${title}${part}`, seen.rows.slice(a, b), seen.columns.slice(c, d), numbers, 3, { plain: true }),
      );
    };
    return el(
      "details",
      {
        ontoggle: (event) => {
          if (event.target.open) fillIn();
        },
      },
      el("summary", {}, "The numbers as a table"),
      holder,
    );
  }

  numbers(
    caption,
    rows,
    columns,
    numbers,
    digits = 3,
    { plain = false, allowed = null, edit = null, on = -1, most = null, signed = false, plainFrom = Infinity } = {},
  ) {
    const cell = (x, i, j) => {
      if (allowed && !allowed[i][j]) return el("td", {}, "–");
      if (edit)
        return el(
          "td",
          {},
          el("input", {
            type: "number",
            step: "0.1",
            value: String(+x.toFixed(4)),
            "aria-label": `${rows[i]}, ${columns[j]}`,
            "data-keep": `in-${caption}-${i}-${j}`,
            onchange: (event) => edit(i, j, Number(event.target.value)),
          }),
        );
      if (plain || most === null || j >= plainFrom) return el("td", {}, show(x, digits));
      const back = this.colour(most ? x / most : 0, signed);
      return el("td", { class: "cell", style: { background: `rgb(${back})`, color: inkOn(back) } }, show(x, digits));
    };
    return el(
      "table",
      {},
      el("caption", {}, math(caption)),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("td", {}),
          columns.map((name) => el("th", { scope: "col" }, word(name))),
        ),
      ),
      el(
        "tbody",
        {},
        numbers.map((row, i) =>
          el(
            "tr",
            { class: i === on ? "on" : "" },
            el("th", { scope: "row" }, word(rows[i])),
            Array.from(row, (x, j) => cell(x, i, j)),
          ),
        ),
      ),
    );
  }

  /** From paper to ink of one hue: a word without weight looks like any word. */
  tint(share, signed) {
    return signed ? this.colour(share, true) : shade(share, ["--paper", "--hot"].map((name) => hexOf(this.css(name))));
  }

  /** What was read, as it is read: each word in the colour of the weight that one query gives to it. */
  async text() {
    const { state: s } = this,
      seen = await this.seen(s.map),
      { plane, rows, columns } = seen,
      i = clamp(s.row, 0, plane.n - 1),
      weights = plane.row(i),
      most = s.scale === "row" ? largest(sizes(weights)) : plane.most;
    const buttons = columns.map((name, j) => {
      const colour = this.tint(share(weights[j], most), plane.signed);
      const choose = (aloud) => {
        s.column = j;
        buttons.forEach((node, k) => node.classList.toggle("on", k === j));
        this.tell(i, j, seen, aloud, `${rows[i]} attends ${show(weights[j])} to ${name}`);
      };
      return el(
        "button",
        {
          "data-keep": `word-${j}`,
          "data-weight": weights[j],
          "aria-label": `${name}: ${show(weights[j])}`,
          style: { background: `rgb(${colour})`, color: inkOn(colour) },
          onpointerenter: () => choose(false),
          onfocus: () => choose(true),
          onclick: () => (choose(true), this.remember()),
        },
        word(name),
      );
    });
    this.tell(i, clamp(s.column, 0, columns.length - 1), seen, false, "");
    const all = rows.map((name, k) => [k, plane.n > 1 ? `${k + 1} ${name}` : name]);
    const side = el("div", { class: "top" });
    side.replaceChildren(
      ...this.bars(
        [word(rows[i]), " attends most to"],
        topOf(weights, 8).map((j) => [columns[j], weights[j]]),
        3,
      ),
    );
    return [
      this.tools(
        this.pickMap(),
        plane.n > 1 && this.pick("query", "pick-row", all, i, (value) => this.set({ row: Number(value) })),
        this.savers(() => this.drawFlow(rows[i], columns, weights, most, plane.signed)),
      ),
      this.said,
      el("div", { class: "side-by-side" }, el("div", { class: "flow", dir: "auto" }, buttons), side),
    ];
  }

  async lines() {
    const { state: s } = this,
      seen = await this.seen(s.map),
      { plane, rows, columns } = seen;
    const from = clamp(s.row - (LINES >> 1), 0, Math.max(0, plane.n - LINES)),
      start = clamp(s.row - (LINES >> 1), 0, Math.max(0, plane.m - LINES));
    const n = Math.min(plane.n - from, LINES),
      m = Math.min(plane.m - start, LINES),
      step = 24,
      height = Math.max(n, m) * step + 8;
    const room = Math.min(this.room, 640),
      side = Math.min(190, room * 0.32),
      gap = room - 2 * side,
      ratio = window.devicePixelRatio || 1;
    const canvas = el("canvas", {
      width: gap * ratio,
      height: height * ratio,
      "aria-hidden": "true",
      style: { position: "absolute", left: `${side}px`, top: "0", width: `${gap}px`, height: `${height}px` },
    });
    const brush = canvas.getContext("2d");
    const buttons = { query: [], key: [] };
    const paint = (i, j) => {
      brush.setTransform(ratio, 0, 0, ratio, 0, 0);
      brush.clearRect(0, 0, gap, height);
      const most = i >= 0 ? Math.max(...plane.row(i).map(Math.abs)) : plane.most,
        colour = { plus: this.css("--link"), minus: this.css("--inverted") };
      for (let a = from; a < from + n; a++)
        for (let b = start; b < start + m; b++) {
          if ((i >= 0 && a !== i) || (j >= 0 && b !== j)) continue;
          const w = plane.at(a, b),
            share = most ? Math.abs(w) / most : 0;
          if (share < 0.02) continue;
          const y = (a - from + 0.5) * step,
            z = (b - start + 0.5) * step;
          brush.globalAlpha = share;
          brush.lineWidth = 1 + 4 * share;
          brush.strokeStyle = w < 0 ? colour.minus : colour.plus;
          brush.beginPath();
          brush.moveTo(0, y);
          brush.bezierCurveTo(gap / 2, y, gap / 2, z, gap, z);
          brush.stroke();
        }
      buttons.query.forEach((node, a) => node.classList.toggle("on", a + from === i));
      buttons.key.forEach((node, b) => node.classList.toggle("on", b + start === j));
      if (i >= 0) {
        const best = topOf(plane.row(i), 1)[0] ?? 0;
        this.tell(i, j >= 0 ? j : best, seen, false, "");
      } else if (j >= 0)
        this.said.replaceChildren(
          word(columns[j]),
          " receives ",
          el("b", {}, show(sum(Array.from({ length: plane.n }, (_, a) => plane.at(a, j))), 2)),
          " in all",
        );
      else
        this.said.textContent = "Choose a word on the left to see what it attends to; on the right, who attends to it.";
    };
    let fixed = [-1, -1];
    const button = (kind, name, at, left) => {
      const pair = kind === "query" ? [at, -1] : [-1, at];
      const node = el(
        "button",
        {
          style: {
            top: `${(at - (kind === "query" ? from : start)) * step + 1}px`,
            ...(left ? { right: `calc(100% - ${side - 4}px)` } : { left: `${side + gap + 4}px` }),
          },
          "aria-label": `${kind}: ${name}`,
          onpointerenter: () => paint(...pair),
          onpointerleave: () => paint(...fixed),
          onfocus: () => {
            paint(...pair);
            this.live.textContent = this.said.textContent;
          },
          onblur: () => paint(...fixed),
          onclick: () => {
            fixed = fixed.join() === pair.join() ? [-1, -1] : pair;
            paint(...fixed);
          },
        },
        word(name),
      );
      buttons[kind].push(node);
      return node;
    };
    const holder = el(
      "div",
      { class: "lines", style: { width: `${room}px`, height: `${height}px` } },
      canvas,
      rows.slice(from, from + n).map((name, i) => button("query", name, i + from, true)),
      columns.slice(start, start + m).map((name, j) => button("key", name, j + start, false)),
    );
    requestAnimationFrame(() => paint(...fixed));
    const part =
      n < plane.n || m < plane.m
        ? el(
            "label",
            {},
            "around token",
            el("input", {
              type: "number",
              id: "around",
              min: 1,
              max: plane.n,
              value: s.row + 1,
              onchange: (event) => this.set({ row: clamp(Number(event.target.value) - 1 || 0, 0, plane.n - 1) }),
            }),
          )
        : null;
    return [this.tools(this.pickMap(), part), this.said, holder];
  }

  async overview() {
    const { payload: p, state: s } = this;
    const order = p.maps.map((_, i) => i);
    if (s.sort !== "order") order.sort((a, b) => p.maps[b].patterns[s.sort] - p.maps[a].patterns[s.sort]);
    const counts = p.layers ? p.layers.filter((layer) => layer === p.layers[0]).length : 0;
    const across = clamp(counts || Math.ceil(Math.sqrt(p.maps.length)), 2, Math.max(2, Math.floor(this.room / 68)));
    const thumbs = await Promise.all(
      order.map(async (i) => {
        const map = p.maps[i],
          plane = map.thumb ? await Plane.unpack(map.thumb) : this.planes.get(i) || (await Plane.unpack(map));
        const canvas = el("canvas", {
          width: Math.max(1, plane.m),
          height: Math.max(1, plane.n),
          "aria-hidden": "true",
        });
        paintCells(
          canvas.getContext("2d"),
          { plane, window: [0, plane.n, 0, plane.m], view: this, most: plane.most },
          plane.m,
          plane.n,
          1,
        );
        const value = s.sort === "order" ? "" : ` ${show(map.patterns[s.sort])}`;
        return el(
          "button",
          {
            class: i === s.map ? "now" : "",
            "data-map": i,
            "aria-label": `${map.name}${value ? `, ${SORTS[s.sort]}${value}` : ""}: open`,
            onclick: () => this.set({ view: "matrix", map: i, row: 0, column: 0, zoom: "", pins: "" }),
          },
          canvas,
          word(this.shortName(i), { title: map.name }),
          value ? el("span", { class: "quiet" }, value) : null,
        );
      }),
    );
    return [
      el(
        "div",
        { class: "tools" },
        this.pick("Sorted by", "sort", Object.entries(SORTS), s.sort, (value) => this.set({ sort: value })),
      ),
      el(
        "p",
        { class: "quiet" },
        "Entropy: how widely a query spreads, in nats. The others: the mean weight that a query gives to itself, ",
        "to the token before it, to the first token. Each map has its own scale of colours.",
      ),
      el(
        "div",
        {
          class: "maps",
          style: { "grid-template-columns": `repeat(${across}, minmax(0, 1fr))`, "max-width": `${across * 190}px` },
        },
        thumbs,
      ),
    ];
  }

  async alignment() {
    const { state: s } = this,
      seen = await this.seen(s.map),
      { plane, rows, columns } = seen,
      links = linksOf(plane),
      steps = plane.n;
    const grid = new Matrix(this, {
      ...seen,
      headless: true,
      tall: plane.n * 32,
      label: "Weights: rows are the words written, columns the words read",
      listen: {
        move: (i, j, aloud, g) => {
          this.tell(i, j, seen, aloud, g.spoken());
          for (const band of bands) band.path.classList.toggle("on", band.i === i && band.j === j);
          Object.assign(s, { row: i, column: j });
          if (aloud) this.remember();
        },
      },
    });
    const longest = Math.max(60, ...rows.map((r) => this.pen.measureText(r).width)),
      left = Math.min(longest * LABEL, 170) + 12,
      wide = Math.min(Math.min(this.room - 20, 1000) - left, Math.max(plane.n, plane.m) * 92),
      high = 170;
    const bands = bandsOf(plane, links, wide, high);
    for (const band of bands) {
      const choose = () => grid.move(band.i, band.j);
      band.path = svg("path", {
        d: band.d,
        "data-row": band.i,
        "data-column": band.j,
        style: { fill: `var(--${band.kind})` },
        onpointerenter: choose,
        onpointerdown: () => (choose(), grid.pin()),
      });
    }
    const ribbons = svg(
      "svg",
      {
        width: wide,
        height: high,
        viewBox: `0 0 ${wide} ${high}`,
        role: "img",
        "aria-label": `Ribbons from each of ${plane.n} queries above to the keys below, as wide as their weights`,
      },
      bands.map((band) => band.path),
    );
    const label = (name, i, n, kind) => {
      const style = { left: `${((i + 0.5) * wide) / n}px`, "max-width": `${wide / n + 14}px` };
      return word(name, { class: "label middle", style: { ...style, color: `var(--${kind})` } });
    };
    const written = rows.map((name, i) => label(name, i, plane.n, links.kindOfRow(i))),
      read = columns.map((name, j) => label(name, j, plane.m, links.kindOfColumn(j)));
    const named = (labels) => el("div", { class: "names", style: { width: `${wide}px` } }, labels);

    // The step at which the writer stands; after the last one, everything is shown.
    const slider = el("input", { type: "range", id: "step", min: 0, max: steps, oninput: () => advance(slider.value) }),
      said = el("span", { class: "step" });
    const advance = (value) => {
      const step = Number(value),
        whole = step >= steps;
      s.step = whole ? -1 : step;
      for (const label of grid.labels.children)
        label.style.setProperty("opacity", Number(label.dataset.row) <= step ? 1 : 0.25);
      for (const { path, i, main } of bands) {
        path.style.setProperty("display", i <= step ? "inline" : "none");
        path.style.setProperty("opacity", main ? (whole || i === step ? 0.85 : 0.45) : 0.22);
      }
      written.forEach((node, i) => {
        node.style.setProperty("opacity", i <= step ? 1 : 0.25);
        node.style.setProperty("font-weight", i === step ? 700 : 400);
      });
      fill(grid.canvas, { style: { "clip-path": `inset(0 0 ${whole ? 0 : (steps - step - 1) * grid.ch}px 0)` } }, []);
      fill(slider, { "aria-valuetext": whole ? "all words" : `word ${step + 1}: ${rows[step]}` }, []);
      said.replaceChildren(whole ? "all words" : word(rows[step]));
      if (!whole) grid.move(step, Math.max(links.key[step], 0));
      this.remember();
    };
    grid.left = left;
    grid.cw = wide / plane.m;
    grid.paint();
    grid.name();
    grid.root.id = "grid";
    grid.move(s.row, s.column);
    slider.value = s.step < 0 || s.step >= steps ? steps : s.step;
    advance(slider.value);
    this.grid = grid;

    const key = (name, text) =>
      el("span", { class: "quiet" }, el("span", { class: "key", style: { background: `var(--${name})` } }), text);
    return [
      this.tools(
        this.pickMap(),
        el("label", {}, "step", slider, said),
        this.savers(() => this.drawing([grid], { bands, wide, high, rows, columns, links })),
      ),
      this.said,
      el(
        "div",
        { class: "scroll" },
        el("div", { style: { "padding-left": `${left}px` } }, named(written), ribbons, named(read)),
        grid.root,
      ),
      el(
        "p",
        {},
        key("link", "strongest link"),
        links.inverted.some(Boolean) ? key("inverted", "order inverted") : null,
        links.shared.size ? key("shared", "several words to one") : null,
      ),
      this.fallback(seen),
    ];
  }

  async compare() {
    const { state: s } = this,
      one = await this.seen(s.map),
      two = await this.seen(s.other);
    const difference = one.plane.minus(two.plane),
      n = difference.n;
    let apart = 0;
    for (let i = 0; i < n; i++)
      for (let j = 0; j < difference.m; j++) apart += Math.abs(difference.at(i, j)) / 2 / Math.max(n, 1);
    const across = this.room > 980 ? 3 : this.room > 640 ? 2 : 1,
      room = (this.room - 30 * across) / across;
    const most = Math.max(one.plane.most, two.plane.most),
      grids = [];
    const listen = {
      move: (i, j, aloud, from) => {
        if (this.moving) return;
        this.moving = true;
        for (const grid of grids) if (grid !== from) grid.move(i, j);
        this.moving = false;
        const [a, b] = [one.plane.at(i, j), two.plane.at(i, j)];
        this.said.replaceChildren(
          word(one.rows[i]),
          " → ",
          word(one.columns[j]),
          ": ",
          el("b", {}, show(a, 3)),
          ` (${this.nameOf(s.map)}), `,
          el("b", {}, show(b, 3)),
          ` (${this.nameOf(s.other)}), difference `,
          el("b", {}, show(a - b, 3)),
        );
        if (aloud) this.live.textContent = this.said.textContent;
      },
    };
    const signed = new Plane(n, difference.m, difference.data);
    signed._signed = true;
    const block = (title, plane, top, spoken) => {
      const grid = new Matrix(this, {
        plane,
        rows: one.rows,
        columns: one.columns,
        label: title,
        most: top,
        room,
        tall: 460,
        listen: { ...listen, spoken },
      });
      grids.push(grid);
      return el(
        "div",
        { class: "scroll" },
        el("h2", { dir: "auto" }, title),
        grid.root,
        this.scaleBar(top, plane.signed),
      );
    };
    const blocks = [
      block(this.nameOf(s.map), one.plane, most),
      block(this.nameOf(s.other), two.plane, most),
      block(
        "difference",
        signed,
        difference.most,
        (i, j) => `${one.rows[i]} to ${one.columns[j]}: difference ${show(difference.at(i, j))}`,
      ),
    ];
    grids[0].move(clamp(s.row, 0, n - 1), clamp(s.column, 0, difference.m - 1));
    this.grid = grids[0];
    return [
      this.tools(
        this.pickMap("First", "map"),
        this.pickMap("second", "other"),
        this.savers(() => this.drawing(grids)),
      ),
      this.said,
      el(
        "p",
        { class: "quiet" },
        `On average a query puts ${show(apart, 3)} of its weight elsewhere `,
        "(total variation: 0 is the same, 1 is nothing in common where rows sum to 1).",
      ),
      el("div", { class: "side-by-side" }, blocks),
      this.fallback({ ...one, plane: signed }, "First less second: rows are queries, columns are keys"),
    ];
  }

  async statistics() {
    const { payload: p, state: s } = this,
      seen = await this.seen(s.map),
      { plane, rows, columns } = seen,
      map = p.maps[s.map];
    const entropies =
      p.pooled || !this.cuts.on ? Array.from(floats(map.entropy)) : rows.map((_, i) => entropyOf(plane.row(i)));
    const mass = columns.map((_, j) => {
      let all = 0;
      for (let i = 0; i < plane.n; i++) all += plane.at(i, j);
      return p.pooled ? (all * p.rows.length) / plane.n : all;
    });
    const names = p.pooled ? p.rows : rows;
    const bars = (title, note, names, values) => {
      const pairs = values.slice(0, LINES).map((x, i) => [names[i], x]),
        [heading, list] = this.bars(title, pairs, 2),
        cut = values.length > LINES && el("p", { class: "quiet" }, `the first ${LINES} of ${values.length}`);
      return el("div", { class: "top wide" }, heading, el("p", { class: "quiet" }, note), list, cut);
    };
    const parts = [
      bars("Entropy of each query", "exp of it: over how many keys a query spreads", names, entropies),
      bars("Weight each key receives", "summed over all queries", columns, mass),
    ];
    const rollout = [];
    if (p.rollout && !this.cuts.on) {
      const plane = await Plane.unpack(p.rollout),
        grid = new Matrix(this, {
          plane,
          rows: p.rows,
          columns: p.columns,
          label: "Attention rollout",
          room: Math.min(this.room, 620),
          tall: 480,
          listen: {
            move: (i, j, aloud, g) => {
              this.tell(i, j, { plane, rows: p.rows, columns: p.columns }, aloud, g.spoken());
            },
          },
        });
      rollout.push(
        el("h2", {}, "Attention rollout"),
        el(
          "p",
          { class: "quiet" },
          "Each layer's mean over heads, half of it kept for the token itself, ",
          "multiplied from the first layer to the last.",
        ),
        this.said,
        el("div", { class: "scroll" }, grid.root, this.scaleBar(plane.most, plane.signed)),
      );
    }
    const patterns = el(
      "div",
      { class: "scroll low", tabindex: "0", role: "region", "aria-label": "Patterns of all maps" },
      this.numbers(
        "Patterns of all maps: entropy in nats; mean weight on itself, on the token before, on the first token",
        p.maps.map((m) => m.name || "attention"),
        ["entropy", "diagonal", "previous", "first"],
        p.maps.map((m) => ["entropy", "diagonal", "previous", "first"].map((k) => m.patterns[k])),
        3,
        { plain: true, on: s.map },
      ),
    );
    return [
      this.tools(this.pickMap()),
      el("div", { class: "side-by-side" }, parts),
      rollout,
      el("h2", {}, "All maps"),
      patterns,
    ];
  }

  async vectors() {
    const { points, rows } = this.payload,
      width = Math.min(this.room, 760),
      height = width * 0.72,
      edge = 46;
    const unique = [...new Map(rows.map((name, i) => [`${name} ${points[i]}`, i])).values()];
    const range = (axis) => {
      const values = points.map((point) => point[axis]),
        low = -largest(
          values.map((x) => -x),
          -Infinity,
        );
      return [low, largest(values, -Infinity) - low || 1];
    };
    const [[left, wide], [low, high]] = [range(0), range(1)];
    const put = ([x, y]) => [
      edge + ((x - left) / wide) * (width - 2 * edge),
      height - edge - ((y - low) / high) * (height - 2 * edge),
    ];
    const taken = unique.map((i) => [...put(points[i]), 10, 10]); // middles and sizes of dots, then of words
    const marks = unique.map((i, n) => {
      const [x, y] = taken[n],
        wide = this.pen.measureText(rows[i]).width + 4,
        aside = wide / 2 + 7,
        free = ([a, b]) =>
          taken.every(([c, d, w, h], m) => m === n || Math.abs(a - c) * 2 > wide + w || Math.abs(b - d) * 2 > 16 + h);
      const beside = [
        [x, y - 14],
        [x, y + 14],
        [x + aside, y],
        [x - aside, y],
      ];
      const [left, top] = beside.find(free) || beside[0];
      taken.push([left, top, wide, 16]);
      return svg(
        "g",
        {},
        svg("circle", { cx: x, cy: y, r: 4, style: { fill: "var(--link)" } }),
        svg("text", { x: left, y: top + 5, "text-anchor": "middle", "font-size": 14 }, rows[i]),
      );
    });
    const frame = svg("rect", {
      ...{ x: 1, y: 1, width: width - 2, height: height - 2, rx: 8 },
      style: { fill: "none", stroke: "var(--edge)" },
    });
    const said = `Map of ${unique.length} word vectors`,
      box = { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said };
    const table = this.numbers(
      said,
      unique.map((i) => rows[i]),
      ["first", "second"],
      unique.map((i) => points[i]),
      3,
      { plain: true },
    );
    return [
      el(
        "p",
        { class: "quiet" },
        "The words' vectors on the two axes along which they differ most: ",
        "words that are used alike stand together, if the vectors are trained.",
      ),
      svg("svg", box, frame, marks),
      el("details", {}, el("summary", {}, "The numbers as a table"), el("div", { class: "scroll" }, table)),
    ];
  }

  async walk() {
    const { state: s } = this,
      w = this.payload.walk;
    this.inputs ||= w.a.map((row) => [...row]);
    const name = { score: w.scores[s.score] ? s.score : w.score },
      score = w.scores[name.score];
    name.normalizer = w.normalizers[s.normalizer] ? s.normalizer : w.normalizer;
    const normalizer = w.normalizers[name.normalizer],
      changed = this.inputs.some((row, i) => row.some((x, j) => x !== w.a[i][j])),
      own = name.score === w.score && name.normalizer === w.normalizer && !changed;
    const t = walkThrough({ ...w, a: this.inputs }, score, normalizer),
      torch = changed ? null : torchOf(w, name.score, name.normalizer),
      off = torch && apart(t, torch, w.allowed);
    this.walked = t;
    const i = clamp(s.row, 0, w.words.length - 1);
    const names = (letter, n) => (n === 1 ? [letter] : Array.from({ length: n }, (_, j) => `${letter}${j + 1}`));
    const table = (...all) => el("div", { class: "scroll" }, this.numbers(...all));
    const row = (...tables) => el("div", { class: "side-by-side" }, tables);
    const formula = (...text) =>
      el(
        "p",
        { class: "formula" },
        text.map((x) => (typeof x === "string" ? math(x) : x)),
      );
    const vectors = (letter) => {
      const rounded = t[letter].map((x) => Array.from(x, (y) => (Math.abs(y) < 1e-12 ? 0 : y)));
      return table(letter, w.words, names(letter, rounded[0].length), rounded, 2, { on: i });
    };
    const edit = (r, c, x) => {
      if (!Number.isFinite(x)) return;
      this.inputs[r][c] = x;
      setTimeout(() => this.draw()); // the focus has moved on by then
    };
    const inputs = table("a (change a number)", w.words, names("a", w.a[0].length), t.a, 2, {
      on: i,
      edit: w.a[0].length <= 12 ? edit : null,
    });
    const matrix = (x) => table(`W_${x}`, names("a", w.a[0].length), names(x, w.W[x][0].length), w.W[x], 1);
    const count = (n) => Array.from({ length: n }, (_, j) => String(j + 1));
    const parameters = Object.entries(score)
      .filter(([, x]) => Array.isArray(x) && Array.isArray(x[0]) && x.length <= 12)
      .map(([letter, x]) => table(letter, count(x.length), count(x[0].length), x, 1));
    const all = (rows) => rows.flatMap((xs) => sizes(xs));
    const scores = (numbers, caption, allowed = null) =>
      table(caption, w.words, w.words, numbers, 3, {
        allowed,
        on: i,
        most: largest(all(numbers), 1e-12),
        signed: true,
      });
    const summed = t.weights.map((xs) => [...xs, sum(Array.from(xs))]);
    return [
      this.walkTools(name, i, own),
      el("p", { class: "said", id: "agrees", "data-apart": off ?? "" }, agreement(off, changed)),
      el("h2", {}, "a: one vector for each word"),
      row(inputs),
      !w.identity && el("h2", {}, math("W_q, W_k, W_v: the same for every word")),
      !w.identity && row(...["q", "k", "v"].map(matrix)),
      el("h2", {}, "q, k, v: what each word asks, offers, and says"),
      formula(w.identity ? "q = k = v = a" : "q = a W_q,  k = a W_k,  v = a W_v"),
      !w.identity && row(...["q", "k", "v"].map(vectors)),
      el("h2", {}, "α: how well each key answers each query"),
      formula(score.formula.replace(/^s =/, "α =")),
      parameters.length > 0 && row(...parameters),
      t.dots && [
        scores(t.dots, "first q · k"),
        el("h2", {}, "scale: so that long vectors do not drown the others"),
        formula(`α = (q · k) × ${show(scaleOf(score, t.k[0].length), 3)}`),
      ],
      scores(t.scores, "rows are queries, columns are keys"),
      this.product(t, score, i, w.words),
      w.allowed && [
        el("h2", {}, "mask: who may attend to whom"),
        scores(t.scores, "– is a pair that does not exist: it gets no weight", w.allowed),
      ],
      el("h2", {}, "α′: the weights"),
      formula(normalizer.formula.replace(/\bs\b/g, "α").replace(/\bw\b/g, "α′")),
      table("each row is the attention of one word; Σ is its sum", w.words, [...w.words, "Σ"], summed, 3, {
        on: i,
        most: largest(all(t.weights)),
        signed: t.weights.some((xs) => xs.some((x) => x < 0)),
        plainFrom: w.words.length,
        allowed: w.allowed && w.allowed.map((xs) => [...xs, true]),
      }),
      el("h2", {}, "b: the output, a weighted sum of the values"),
      formula("b(", word(w.words[i]), ") = ", this.weighted(t.weights[i], w.words)),
      row(vectors("b")),
    ];
  }

  walkTools(name, i, own) {
    const w = this.payload.walk;
    const pick = (what, among) =>
      this.pick(
        what,
        `pick-${what}`,
        Object.keys(among).map((x) => [x, x]),
        name[what],
        (value) => this.set({ [what]: value }),
      );
    const reset = () => {
      this.inputs = null;
      this.set({ score: null, normalizer: null });
    };
    const words = w.words.map((x, j) => [j, x]);
    return this.tools(
      pick("score", w.scores),
      pick("normalizer", w.normalizers),
      this.pick("follow", "pick-row", words, i, (value) => this.set({ row: Number(value) })),
      own ? null : el("button", { id: "reset", onclick: reset }, "Reset"),
    );
  }

  /** One product written out, where the score is one: the followed word and the key it finds best. */
  product(t, score, i, words) {
    if (!["Dot", "ScaledDot"].includes(score.kind) || t.k[0].length > 6) return null;
    const j = t.scores[i].indexOf(Math.max(...t.scores[i]));
    const signs = (x) => (x < 0 ? `(${show(x)})` : show(x));
    const terms = Array.from(t.q[i], (x, c) => `${signs(x)} × ${signs(t.k[j][c])}`).join(" + ");
    const scale = t.dots ? ` = ${show(t.dots[i][j], 3)},  × ${show(scaleOf(score, t.k[0].length), 3)}` : "";
    return el(
      "p",
      { class: "quiet" },
      ...["α(", word(words[i]), ", ", word(words[j]), `) = ${terms}${scale} = ${show(t.scores[i][j], 3)}`],
    );
  }

  weighted(weights, words) {
    if (weights.length > 12) return "Σ α′ · v";
    const terms = Array.from(weights, (x, j) => [x, j]).filter(([x]) => x);
    if (!terms.length) return "0";
    return terms.flatMap(([x, j], n) => [n ? " + " : "", `${show(x, 3)} · v(`, word(words[j]), ")"]);
  }

  // ------------------------------------------------------------ a picture to keep

  savers(draw) {
    const save = (id, text, write) => el("button", { id, onclick: () => write(draw()) }, text);
    return [
      save("png", "Save PNG", async (drawing) => this.keep("png", await rasterized(drawing))),
      save("svg", "Save SVG", (drawing) => this.keep("svg", new Blob([svgText(drawing)], { type: "image/svg+xml" }))),
    ];
  }

  keep(ending, blob) {
    const name = (this.payload.title || "attention").replace(/[^\p{L}\p{M}\p{N}]+/gu, "-").slice(0, 60),
      address = URL.createObjectURL(blob);
    el("a", { href: address, download: `${name}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  /** Matrices side by side, an alignment's ribbons above, as one drawing that needs no style from elsewhere. */
  drawing(grids, ribbons = null) {
    const { title, note } = this.payload,
      edge = 16,
      text = (x, y, props, said) => svg("text", { x, y, fill: this.css("--ink"), "font-size": 14, ...props }, said);
    const parts = [text(edge, 30, { "font-size": 17, "font-weight": 600 }, title || "Attention")];
    let x = edge,
      y = 48,
      lowest = 0;
    if (ribbons) {
      parts.push(this.drawRibbons(ribbons, x + grids[0].left, y));
      y += ribbons.high + 52;
    }
    const several = grids.length > 1;
    for (const grid of grids) {
      const [r0, r1, c0, c1] = grid.window,
        wide = Math.max(grid.left + (c1 - c0) * grid.cw + grid.over, 240),
        high = grid.head + (r1 - r0) * grid.ch,
        down = y + (several ? 24 : 0);
      if (several) parts.push(text(x, y + 14, { "font-weight": 600 }, grid.label));
      parts.push(svg("g", { transform: `translate(${x},${down})` }, this.drawMatrix(grid)));
      parts.push(svg("g", { transform: `translate(${x + grid.left},${down + high + 10})` }, this.drawScale(grid)));
      x += wide + 28;
      lowest = Math.max(lowest, down + high + 20);
    }
    if (note) parts.push(text(edge, lowest + 26, { "font-size": 12, fill: this.css("--quiet") }, note));
    this.pen.font = `600 17px ${FONTS}`;
    const width = Math.ceil(Math.max(x - 28, 2 * edge + this.pen.measureText(title || "Attention").width) + edge),
      height = Math.ceil(lowest + (note ? 44 : edge));
    this.pen.font = `14px ${FONTS}`;
    const box = { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONTS };
    return svg("svg", box, svg("rect", { width, height, fill: this.css("--paper") }), parts);
  }

  /** Words in lines, each on its colour, from left to right. */
  drawFlow(name, columns, weights, most, signed) {
    const { title, note } = this.payload,
      width = 720,
      edge = 16,
      parts = [],
      ink = this.css("--ink"),
      line = (y, size, fill, said) => svg("text", { x: edge, y, fill, "font-size": size }, said);
    parts.push(line(30, 17, ink, title || "Attention"), line(54, 14, this.css("--quiet"), `${name} attends to`));
    let [x, y] = [edge, 68];
    this.pen.font = `15px ${FONTS}`;
    columns.forEach((said, j) => {
      const wide = this.pen.measureText(said).width + 10;
      if (x > edge && x + wide > width - edge) [x, y] = [edge, y + 28];
      const colour = this.tint(share(weights[j], most), signed);
      parts.push(svg("rect", { x, y, width: wide, height: 24, rx: 4, fill: `rgb(${colour})` }));
      const middle = { x: x + wide / 2, y: y + 17, "text-anchor": "middle", "font-size": 15 };
      parts.push(svg("text", { ...middle, fill: inkOn(colour) }, said));
      x += wide + 2;
    });
    this.pen.font = `14px ${FONTS}`;
    const height = y + (note ? 64 : 40);
    if (note) parts.push(line(y + 48, 12, this.css("--quiet"), note));
    const box = { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONTS };
    return svg("svg", box, svg("rect", { width, height, fill: this.css("--paper") }), parts);
  }

  drawMatrix(grid) {
    const [r0, r1, c0, c1] = grid.window,
      { cw, ch, left, head, plane } = grid,
      small = (r1 - r0) * (c1 - c0) <= CELLS,
      numbered = cw >= NUMBERS && ch >= 15,
      ink = this.css("--ink"),
      parts = [];
    if (!small) parts.push(this.drawPixels(grid));
    const whole = this.state.scale === "row" ? (i) => largest(sizes(plane.row(i))) : () => grid.most;
    for (let i = r0; small && i < r1; i++) {
      const most = whole(i);
      for (let j = c0; j < c1; j++) {
        const colour = this.colour(share(plane.at(i, j), most), plane.signed),
          [x, y] = [left + (j - c0) * cw, head + (i - r0) * ch],
          gap = Math.min(cw, ch) >= 9 ? 1 : 0;
        parts.push(svg("rect", { x, y, width: cw - gap, height: ch - gap, fill: `rgb(${colour})` }));
        if (!numbered) continue;
        const middle = { x: x + cw / 2, y: y + ch / 2 + 4, "text-anchor": "middle", "font-size": 12 };
        parts.push(svg("text", { ...middle, fill: inkOn(colour) }, show(plane.at(i, j))));
      }
    }
    const size = Math.min(15, Math.max(11, ch * 0.62));
    for (let i = r0; i < r1; i += grid.every.row) {
      const y = head + (i - r0 + 0.5) * ch + size * 0.35;
      parts.push(svg("text", { x: left - 7, y, "text-anchor": "end", "font-size": size, fill: ink }, grid.rows[i]));
    }
    for (let j = c0; !grid.headless && j < c1; j += grid.every.column) {
      const [x, y] = [left + (j - c0 + 0.5) * cw, head - 8];
      const turned = { transform: `translate(${x + 4},${y}) rotate(-45)` },
        upright = { x, y, "text-anchor": "middle" };
      const tall = grid.slanted ? Math.min(14, Math.max(11, cw * 0.7)) : 14;
      parts.push(svg("text", { "font-size": tall, fill: ink, ...(grid.slanted ? turned : upright) }, grid.columns[j]));
    }
    return parts;
  }

  drawScale({ plane, most }) {
    const stops = 32,
      said = (x, anchor, text) =>
        svg("text", { x, y: 9, "text-anchor": anchor, "font-size": 12, fill: this.css("--quiet") }, text);
    const strip = Array.from({ length: stops }, (_, n) => {
      const part = n / (stops - 1),
        colour = this.colour(plane.signed ? 2 * part - 1 : part, plane.signed);
      return svg("rect", { x: 42 + n * 4, width: 4.5, height: 10, fill: `rgb(${colour})` });
    });
    const ends = [plane.signed ? show(-most) : "0", this.state.scale === "row" ? "of each row" : show(most)];
    return [said(36, "end", ends[0]), strip, said(48 + stops * 4, "start", ends[1])];
  }

  /** Too many cells for a shape each: as pixels. */
  drawPixels(grid) {
    const [r0, r1, c0, c1] = grid.window,
      [width, height] = [(c1 - c0) * grid.cw, (r1 - r0) * grid.ch],
      cells = el("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
    paintCells(cells.getContext("2d"), grid, cells.width, cells.height, 2);
    return svg("image", { x: grid.left, y: grid.head, width, height, href: cells.toDataURL() });
  }

  drawRibbons({ bands, wide, high, rows, columns, links }, x, y) {
    const name = (said, i, n, at, kind) => {
      const middle = { x: ((i + 0.5) * wide) / n, y: at, "text-anchor": "middle", "font-size": 15 };
      return svg("text", { ...middle, fill: this.css(`--${kind}`) }, said);
    };
    const shown = bands.filter(({ i }) => this.state.step < 0 || i <= this.state.step);
    return svg(
      "g",
      { transform: `translate(${x},${y})` },
      rows.map((said, i) => name(said, i, rows.length, 14, links.kindOfRow(i))),
      svg(
        "g",
        { transform: "translate(0,22)" },
        shown.map(({ d, kind, main }) => svg("path", { d, fill: this.css(`--${kind}`), opacity: main ? 0.85 : 0.22 })),
      ),
      columns.map((said, j) => name(said, j, columns.length, high + 40, links.kindOfColumn(j))),
    );
  }
}

const svgText = (drawing) => new XMLSerializer().serializeToString(drawing);

/** The drawing in pixels, two for each of the screen's. */
async function rasterized(drawing) {
  const [width, height] = ["width", "height"].map((name) => 2 * Number(drawing.getAttribute(name))),
    image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(drawing))}`;
  await image.decode();
  const canvas = el("canvas", { width, height });
  canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

/** Which cell each token falls into, under the switches "whole words" and "hide special tokens"; -1 is hidden. */
function grouped(tokens, words, special, state) {
  const group = [],
    names = [];
  let last = null;
  tokens.forEach((token, i) => {
    if (state.bare && special[i]) {
      group.push(-1);
      return;
    }
    const own = state.words && words ? words[i] : i;
    if (own === last) names[names.length - 1] += token;
    else names.push(token);
    last = own;
    group.push(names.length - 1);
  });
  return { group, names };
}

function spans(tokens, cells) {
  const first = (i) => Math.ceil((i * tokens.length) / cells);
  return Array.from({ length: cells }, (_, i) =>
    first(i + 1) - first(i) > 1 ? `${tokens[first(i)]} … (${first(i) + 1}–${first(i + 1)})` : tokens[first(i)],
  );
}

// ---------------------------------------------------------------- the walk-through, in the open

const times = (x, w) => x.map((row) => w[0].map((_, j) => sum(row.map((v, i) => v * w[i][j]))));
const dot = (x, y) => {
  let total = 0;
  for (let i = 0; i < x.length; i++) total += x[i] * y[i];
  return total;
};
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** a → q, k, v → scores → weights → b, as the formulas say. */
export function walkThrough({ a, W, allowed, identity }, score, normalizer) {
  const [q, k, v] = identity ? [a, a, a] : ["q", "k", "v"].map((x) => times(a, W[x]));
  const pair = scoreOf(score, q, k);
  const scores = q.map((_, i) => k.map((_, j) => pair(i, j)));
  const weights = scores.map((row, i) => normalize(normalizer, row, allowed ? allowed[i] : row.map(() => true)));
  const b = weights.map((row) => v[0].map((_, c) => sum(row.map((w, j) => w * v[j][c]))));
  const dots = score.kind === "ScaledDot" ? q.map((x) => k.map((y) => dot(x, y))) : null;
  return { a, q, k, v, dots, scores, weights, b };
}

const scaleOf = (score, d) => score.scale ?? 1 / Math.sqrt(d);

/** What torch computed of this score and normalizer: of the first ones everything, of others enough to compare. */
function torchOf(w, score, normalizer) {
  if (score === w.score && normalizer === w.normalizer) return w.torch;
  const packed = { scores: w.checks?.scores[score], b: w.checks?.b[score]?.[normalizer] };
  if (!packed.b) return null;
  const rows = ([name, text]) => {
    const numbers = new Float64Array(bytesOf(text).buffer),
      m = numbers.length / w.words.length;
    return [name, w.words.map((_, i) => numbers.subarray(i * m, (i + 1) * m))];
  };
  return Object.fromEntries(Object.entries(packed).map(rows));
}

/** How far the page's numbers are from torch's. Scores of pairs that the mask forbids are nobody's. */
function apart(t, torch, allowed) {
  const counts = (name, i, j) => name === "b" || !allowed || allowed[i][j];
  const off = (name) =>
    t[name].flatMap((row, i) => Array.from(row, (x, j) => (counts(name, i, j) ? Math.abs(x - torch[name][i][j]) : 0)));
  return largest(Object.keys(torch).flatMap(off));
}

function agreement(off, changed) {
  if (off === null) return `Computed in this page${changed ? ", with your changes" : ""}.`;
  const most = off ? off.toExponential(1).replace("-", "−") : "0";
  return `Computed in this page; torch's numbers differ by at most ${most}.`;
}

/** The score as a function of the places of a query and a key. */
function scoreOf(s, q, k) {
  switch (s.kind) {
    case "Dot":
      return (i, j) => dot(q[i], k[j]);
    case "ScaledDot":
      return (i, j) => dot(q[i], k[j]) * scaleOf(s, k[j].length);
    case "Bilinear": {
      const folded = times(q, s.weight);
      return (i, j) => dot(folded[i], k[j]);
    }
    case "TanhSum":
      return (i, j) => sum(s.v[0].map((v, c) => v * Math.tanh(q[i][c] + k[j][c])));
    case "Additive": {
      const a = times(q, s.w_q),
        b = times(k, s.w_k);
      return (i, j) => sum(s.v[0].map((v, c) => v * Math.tanh(a[i][c] + b[j][c] + s.b[0][c])));
    }
    case "Gated": {
      const gate = s.gate.map(([x]) => x),
        d = q[0].length;
      return (i, j) => sigmoid(dot(q[i], gate.slice(0, d)) + dot(k[j], gate.slice(d))) * dot(q[i], k[j]);
    }
    case "Gaussian":
      return (i, j) => -sum(Array.from(q[i], (x, c) => (x - k[j][c]) ** 2)) / (2 * s.sigma ** 2);
    case "Exact":
      return (i, j) => (Array.from(q[i]).every((x, c) => x === k[j][c]) ? 1 : 0);
    case "SoftCap": {
      const inner = scoreOf(s.score, q, k);
      return (i, j) => s.cap * Math.tanh(inner(i, j) / s.cap);
    }
    case "Biased": {
      const inner = scoreOf(s.score, q, k);
      return (i, j) => inner(i, j) + s.bias[i][j];
    }
    default:
      return (i, j) => s.given[i][j]; // a score of one's own: torch's numbers
  }
}

function normalize(normalizer, row, allowed) {
  const places = [...row.keys()].filter((j) => allowed[j]),
    weights = new Float64Array(row.length);
  if (!places.length) return weights;
  const s = places.map((j) => row[j]),
    top = Math.max(...s);
  const set = (values) => {
    places.forEach((j, n) => {
      weights[j] = values[n];
    });
    return weights;
  };
  switch (normalizer.kind) {
    case "Softmax": {
      const most = normalizer.sink == null ? top : Math.max(top, normalizer.sink),
        raised = s.map((x) => Math.exp(x - most));
      const total = sum(raised) + (normalizer.sink == null ? 0 : Math.exp(normalizer.sink - most));
      return set(raised.map((x) => x / total));
    }
    case "Identity":
      return set(s);
    case "ReLU":
      return set(s.map((x) => Math.max(x, 0)));
    case "Sigmoid":
      return set(s.map((x) => sigmoid(x + normalizer.bias)));
    case "Entmax": {
      const { alpha } = normalizer,
        z = s.map((x) => (alpha - 1) * (x - top)),
        power = 1 / (alpha - 1),
        raised = (t) => z.map((x) => Math.max(x - t, 0) ** power);
      let low = -1,
        high = 0; // the sum falls from at least 1 to 0 between these
      for (let n = 0; n < 200; n++) {
        const t = (low + high) / 2;
        if (sum(raised(t)) > 1) low = t;
        else high = t;
      }
      const w = raised((low + high) / 2),
        total = sum(w);
      return set(w.map((x) => x / total));
    }
    case "Hard": {
      const best = s.indexOf(top);
      return set(s.map((_, n) => (n === best ? 1 : 0)));
    }
    default:
      throw new Error(`no normalizer is called ${normalizer.kind}`);
  }
}

const mounted = new WeakMap();

/**
 * Draw a payload into an element, in place of what was drawn there. Resolves when it is drawn, to the view.
 * Options: `address: false` leaves the page's address alone, `whole: true` fills the window.
 */
export async function mount(element, payload, options = {}) {
  mounted.get(element)?.close();
  const view = new View(element, payload, options);
  mounted.set(element, view);
  await view.draw();
  return view;
}
