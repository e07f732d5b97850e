// The heat map of the overview: GPU utilisation of nodes, or of groups of nodes, over time.
"use strict";
(() => {
  const REFRESH_MILLISECONDS = 60000;
  const HEIGHT_PIXELS = 340, MIN_ROW_PIXELS = 7, MAX_ROW_PIXELS = 24;
  const AXIS_PIXELS = 20, LABEL_PIXELS = 15, TICK_PIXELS = 48, MAX_NAME_RATIO = 0.28;
  const DAY_MINUTES = 1440, TICK_MINUTES = [5, 10, 15, 30, 60, 120, 180, 240, 360, 720];
  const FONT = "11px system-ui, sans-serif";
  const { clock, day, moment, css, formats } = figures;
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const minuteOfDay = (at) => Number(clock(at).slice(0, 2)) * 60 + Number(clock(at).slice(3));
  const known = (values) => values.filter((value) => value !== null);
  const mean = (values) => (values.length ? values.reduce((sum, each) => sum + each, 0) / values.length : null);

  class HeatMap {
    constructor(panel) {
      this.panel = panel;
      this.texts = JSON.parse(panel.dataset.texts);
      this.canvas = panel.querySelector("canvas");
      this.note = panel.querySelector("[data-heat-note]");
      this.cell = panel.querySelector("#heat-cell");
      this.open = panel.querySelector("[data-heat-open]");
      this.link = panel.querySelector("[data-heat-node]");
      this.all = panel.querySelector("[data-heat-all]");
      this.span = panel.querySelector("[data-span][aria-pressed=true]").dataset.span;
      this.range = {};  // names of the first and the last node; empty: all
      this.answer = this.hovered = this.chosen = null;
      this.asked = 0;
      this.listen();
      this.load();
    }

    listen() {
      this.panel.addEventListener("click", (event) => this.setSpan(event.target.closest("[data-span]")));
      this.all.addEventListener("click", () => this.zoom({}));
      this.open.addEventListener("click", () => this.enter());
      this.canvas.addEventListener("pointermove", (event) => this.point(event));
      this.canvas.addEventListener("pointerleave", () => this.hover(null));
      this.canvas.addEventListener("click", (event) => this.choose(this.at(event)));
      this.canvas.addEventListener("keydown", (event) => this.press(event));
      new ResizeObserver(() => this.draw()).observe(this.panel);
    }

    async load() {
      const asked = ++this.asked;
      try {
        const found = await figures.ask("/v1/history/nodes", { span: this.span, ...this.range });
        if (asked === this.asked) this.show(found);
      } catch (error) {
        if (asked === this.asked) this.say(this.texts["plot.failed"] + error.message);
      }
    }

    say(text) {
      if (this.note.textContent !== text) this.note.textContent = text;
      this.note.hidden = text === "";
    }

    show(answer) {
      const kept = this.answer && this.answer.start === answer.start && this.answer.rows?.length === answer.rows?.length;
      this.answer = answer;
      if (!kept) this.hovered = this.chosen = null;
      const rows = answer.rows || [], isEmpty = !rows.some((row) => known(row.mean).length);
      this.panel.querySelector("[data-heat-body]").hidden = isEmpty;
      this.all.hidden = !this.range.first;
      this.say(isEmpty ? this.texts["heat.empty"] : "");
      this.draw();
      this.tell();
      this.summarise(rows);
      this.panel.toggleAttribute("data-drawn", !isEmpty);
    }

    setSpan(button) {
      if (!button) return;
      for (const each of this.panel.querySelectorAll("[data-span]")) each.setAttribute("aria-pressed", String(each === button));
      this.span = button.dataset.span;
      this.load();
    }

    zoom(range) {
      this.range = range;
      this.load();
      this.canvas.focus({ preventScroll: true });
    }

    // Shows the nodes of the chosen row, or the page of its only node
    enter() {
      const row = this.chosen && this.answer.rows[this.chosen.row];
      if (!row) return;
      if (row.nodes > 1) this.zoom({ first: row.first, last: row.last });
      else location.assign(this.link.href);
    }

    // Geometry

    columns() {
      return this.answer.rows[0].mean.length;
    }

    measure(width) {
      const { rows } = this.answer;
      const context = this.canvas.getContext("2d");
      context.font = FONT;
      this.names = shortNames(rows.map((row) => row.first));
      const longest = Math.max(...this.names.map((name) => context.measureText(name).width));
      const left = Math.min(longest + 8, width * MAX_NAME_RATIO);
      const height = Math.min(MAX_ROW_PIXELS, Math.max(MIN_ROW_PIXELS, Math.floor(HEIGHT_PIXELS / rows.length)));
      return { left, row: height, column: (width - left) / this.columns(), width, height: height * rows.length + AXIS_PIXELS };
    }

    at(event) {
      const box = this.canvas.getBoundingClientRect(), { left, row, column } = this.shape;
      const found = { row: Math.floor((event.clientY - box.top) / row), column: Math.floor((event.clientX - box.left - left) / column) };
      const inside = found.row >= 0 && found.row < this.answer.rows.length && found.column >= 0 && found.column < this.columns();
      return inside ? found : null;
    }

    // Drawing

    draw() {
      const width = Math.floor(this.canvas.parentElement.clientWidth);
      if (!this.answer?.rows?.length || !width) return;
      const shape = this.shape = this.measure(width), ratio = devicePixelRatio || 1;
      this.canvas.width = Math.round(shape.width * ratio);
      this.canvas.height = Math.round(shape.height * ratio);
      this.canvas.style.height = `${shape.height}px`;
      const context = this.canvas.getContext("2d");
      context.scale(ratio, ratio);
      this.drawCells(context, shape);
      this.drawNames(context, shape);
      this.drawTimes(context, shape);
      this.drawMark(context, shape);
    }

    drawCells(context, { left, row, column }) {
      const colours = scale(), hatch = hatched(context), gap = column > 5 ? 1 : 0;
      this.answer.rows.forEach((each, line) => each.mean.forEach((value, number) => {
        context.fillStyle = value === null ? hatch : colours[Math.round(Math.min(1, value) * (colours.length - 1))];
        const from = Math.round(left + number * column), to = Math.round(left + (number + 1) * column);
        context.fillRect(from, line * row, to - from - gap, row - (row > 9 ? 1 : 0));
      }));
    }

    drawNames(context, { left, row }) {
      const every = Math.ceil(LABEL_PIXELS / row), { rows } = this.answer, marked = (this.hovered || this.chosen)?.row;
      context.font = FONT;
      context.textBaseline = "middle";
      for (let line = 0; line < rows.length; line += every) {
        context.fillStyle = css(line === marked ? "--ink" : "--dim");
        context.fillText(clipped(context, this.names[line], left - 6), 0, Math.max(LABEL_PIXELS / 2, (line + 0.5) * row), left - 6);
      }
    }

    drawTimes(context, { left, row, column, width }) {
      const { start, step_seconds: step, rows } = this.answer;
      const minutes = TICK_MINUTES.find((each) => each * 60 / step * column >= TICK_PIXELS) || DAY_MINUTES;
      const part = (at) => (minutes < DAY_MINUTES ? `${day(at)} ${Math.floor(minuteOfDay(at) / minutes)}` : day(at));
      context.fillStyle = css("--dim");
      context.textBaseline = "top";
      for (let number = 0; number < this.columns(); number += 1) {
        const at = start + number * step, x = left + number * column;
        const text = minutes < DAY_MINUTES && minuteOfDay(at) >= minutes ? clock(at) : day(at);
        if (part(at) !== part(at - step) && x + context.measureText(text).width <= width) context.fillText(text, x, rows.length * row + 5);
      }
    }

    drawMark(context, { left, row, column }) {
      const cell = this.hovered || this.chosen;
      if (!cell) return;
      context.strokeStyle = css("--ink");
      context.lineWidth = 2;
      context.strokeRect(Math.round(left + cell.column * column) - 1, cell.row * row - 1, Math.max(3, column) + 1, row + 1);
    }

    // Reading a cell

    point(event) {
      if (this.shape) this.hover(this.at(event));
    }

    hover(cell) {
      if (cell?.row === this.hovered?.row && cell?.column === this.hovered?.column) return;
      this.hovered = cell;
      this.draw();
      this.tell();
    }

    choose(cell) {
      this.chosen = cell;
      this.draw();
      this.tell();
    }

    press(event) {
      const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };
      if (event.key === "Enter") this.enter();
      else if (event.key === "Escape" && this.range.first) this.zoom({});
      else if (moves[event.key] && this.answer) this.move(...moves[event.key]);
      else return;
      event.preventDefault();
    }

    move(down, right) {
      const most = { row: this.answer.rows.length - 1, column: this.columns() - 1 };
      const from = this.chosen || { row: 0, column: most.column };
      const within = (value, top) => Math.min(top, Math.max(0, value));
      this.hovered = null;
      this.choose(this.chosen ? { row: within(from.row + down, most.row), column: within(from.column + right, most.column) } : from);
    }

    nameOf(row) {
      return row.nodes > 1 ? fill(this.texts["heat.group"], { first: row.first, last: row.last, count: row.nodes }) : row.first;
    }

    tell() {
      const cell = this.hovered || this.chosen;
      this.cell.textContent = cell ? this.textOf(cell) : this.texts["heat.hint"];
      const row = this.chosen && this.answer.rows[this.chosen.row];
      this.open.hidden = !row || row.nodes === 1;
      this.link.hidden = !row || row.nodes > 1;
      if (!row) return;
      this.open.textContent = fill(this.texts["heat.open"], { count: row.nodes });
      this.link.textContent = fill(this.texts["heat.open-node"], { name: row.first });
      this.link.href = `/nodes/${encodeURIComponent(row.first)}`;
    }

    textOf({ row, column }) {
      const { rows, start, step_seconds: step } = this.answer, value = rows[row].mean[column], from = start + column * step;
      const text = value === null ? this.texts["heat.unknown"] : formats.ratio(value);
      return `${this.nameOf(rows[row])} · ${moment(from)}–${clock(from + step)} · ${text}`;
    }

    // The same in words and as a table
    summarise(rows) {
      const means = rows.map((row) => ({ row, mean: mean(known(row.mean)) })).filter((each) => each.mean !== null);
      const body = this.panel.querySelector("tbody"), summary = this.panel.querySelector("#heat-summary");
      body.replaceChildren(...rows.map((row) => this.tableRow(row)));
      if (!means.length) return;
      const ordered = [...means].sort((one, other) => one.mean - other.mean), low = ordered[0], high = ordered[ordered.length - 1];
      summary.textContent = fill(this.texts["heat.summary"], {
        count: this.answer.nodes, span: this.panel.querySelector("[data-span][aria-pressed=true]").textContent,
        mean: formats.ratio(mean(means.map((each) => each.mean))),
        low: this.nameOf(low.row), low_mean: formats.ratio(low.mean), high: this.nameOf(high.row), high_mean: formats.ratio(high.mean),
      });
    }

    tableRow(row) {
      const values = known(row.mean), line = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.append(row.nodes > 1 ? this.nameOf(row) : Object.assign(document.createElement("a"), { href: `/nodes/${encodeURIComponent(row.first)}`, textContent: row.first }));
      const latest = row.mean.findLast((value) => value !== null) ?? null;
      const cells = values.length ? [mean(values), Math.min(...values), Math.max(...values), latest] : [null, null, null, null];
      const titles = [...this.panel.querySelectorAll("thead th")].slice(1).map((each) => each.textContent);
      line.append(head, ...cells.map((value) => Object.assign(document.createElement("td"), { className: "n", textContent: figures.shown("ratio", value) })));
      [...line.querySelectorAll("td")].forEach((each, number) => { each.dataset.label = titles[number]; });
      return line;
    }
  }

  // Colours from 0 to 100 %
  function scale() {
    const stops = [0, 1, 2, 3, 4].map((number) => css(`--heat${number}`).slice(1).match(/../g).map((hex) => parseInt(hex, 16)));
    return [...Array(101).keys()].map((percent) => {
      const place = percent / 100 * (stops.length - 1), below = Math.min(stops.length - 2, Math.floor(place));
      const parts = stops[below].map((from, part) => Math.round(from + (stops[below + 1][part] - from) * (place - below)));
      return `rgb(${parts.join(",")})`;
    });
  }

  // What is unknown is hatched
  function hatched(context) {
    const tile = document.createElement("canvas"), brush = tile.getContext("2d");
    tile.width = tile.height = 6;
    brush.strokeStyle = css("--heat-unknown");
    brush.lineWidth = 1;
    for (const offset of [-6, 0, 6]) { brush.moveTo(offset, 6); brush.lineTo(offset + 6, 0); }
    brush.stroke();
    return context.createPattern(tile, "repeat");
  }

  // Names without the domain that all of them share
  function shortNames(names) {
    let domain = names[0].includes(".") ? names[0].slice(names[0].indexOf(".")) : "";
    while (domain && !names.every((name) => name.endsWith(domain))) domain = domain.includes(".", 1) ? domain.slice(domain.indexOf(".", 1)) : "";
    return domain ? names.map((name) => name.slice(0, -domain.length)) : names;
  }

  function clipped(context, text, width) {
    let shorter = text;
    while (shorter.length > 1 && context.measureText(shorter).width > width) shorter = `…${shorter.slice(shorter.startsWith("…") ? 2 : 1)}`;
    return shorter;
  }

  const maps = [...document.querySelectorAll(".heat")].map((panel) => new HeatMap(panel));
  setInterval(() => document.hidden || maps.forEach((each) => each.load()), REFRESH_MILLISECONDS);
  figures.onTheme(() => maps.forEach((each) => each.draw()));
})();
