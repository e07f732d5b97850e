// Charts of the history: requests the figures of an entity, and draws those of one unit together with uPlot.
"use strict";
(() => {
  const REFRESH_MILLISECONDS = 60000;
  const HEIGHT_PIXELS = 190;
  const MAX_BRIDGED_STEPS = 3.5;  // a longer time without values is a gap in the line
  const lang = document.body.dataset.lang;
  const tzDate = (at) => uPlot.tzDate(new Date(at * 1000), figures.zone);
  const { clock, day, moment, css, formats, shown, ask } = figures;
  // Steps of the axis: powers of two, so that its labels are round in binary units.
  const BYTE_STEPS = [...Array(51).keys()].map((power) => 2 ** power);

  class Plots {
    constructor(panel) {
      this.panel = panel;
      this.texts = JSON.parse(panel.dataset.texts);
      this.grid = panel.querySelector(".plot-grid");
      this.note = panel.querySelector("[data-plot-note]");
      this.span = panel.querySelector("[data-span][aria-pressed=true]").dataset.span;
      this.drawn = [];
      this.answer = null;
      this.asked = 0;
      panel.addEventListener("click", (event) => this.choose(event.target.closest("[data-span]")));
      new ResizeObserver(() => this.resize()).observe(this.grid);
      this.load();
    }

    choose(button) {
      if (!button) return;
      for (const each of this.panel.querySelectorAll("[data-span]")) {
        each.setAttribute("aria-pressed", String(each === button));
      }
      this.span = button.dataset.span;
      this.load();
    }

    async load() {
      const asked = ++this.asked;
      const { subject, name } = this.panel.dataset;
      try {
        const found = await ask("/v1/history", { subject, name, span: this.span, lang });
        if (asked === this.asked) this.show(found);
      } catch (error) {
        if (asked === this.asked) this.say(this.texts.failed + error.message);
      }
      if (asked === this.asked) this.panel.removeAttribute("aria-busy");
    }

    say(text) {
      if (this.note.textContent !== text) this.note.textContent = text;
      this.note.hidden = text === "";
    }

    show(answer) {
      this.answer = answer;
      this.draw();
      this.list(answer.alerts || []);
      if (!(answer.series || []).length) this.say(this.texts.empty);
      else this.say(this.forecastText(answer.forecast));
    }

    forecastText(forecast) {
      if (!forecast) return "";
      const text = forecast.latest_at ? this.texts["forecast-range"] : this.texts["forecast-later"];
      return text.replace("{when}", moment(forecast.full_at)).replace("{earliest}", moment(forecast.earliest_at))
        .replace("{latest}", forecast.latest_at ? moment(forecast.latest_at) : "");
    }

    // One chart per unit
    draw() {
      for (const each of this.drawn) each.destroy();
      this.drawn = [];
      this.grid.replaceChildren();
      if (!this.answer) return;
      const units = new Map();
      for (const each of this.answer.series || []) units.set(each.unit, [...(units.get(each.unit) || []), each]);
      const figures = [...units].map(() => this.grid.appendChild(document.createElement("figure")));  // before one is measured
      [...units].forEach(([unit, series], number) => this.drawn.push(this.plot(figures[number], unit, series)));
      this.panel.toggleAttribute("data-drawn", this.drawn.length > 0);
    }

    plot(figure, unit, series) {
      figure.className = "plot";
      const caption = series.length > 1 ? this.texts[`unit.${unit}`] : this.texts[`metric.${series[0].metric}`];
      figure.appendChild(document.createElement("figcaption")).textContent = caption;
      const { start, step_seconds: step } = this.answer;
      const times = series[0].mean.map((_, index) => start + index * step);
      const data = [times], lines = [{ label: this.texts.time, value: (drawn, at) => moment(at ?? this.last(series)) }], bands = [];
      const wide = ([from, to], drawn) => drawn.posToVal(to, "x", true) - drawn.posToVal(from, "x", true) > MAX_BRIDGED_STEPS * step;
      const gaps = (drawn, line, first, last, found) => found.filter((each) => wide(each, drawn));
      series.forEach((each, index) => {
        const colour = css(`--plot${index % 3}`), label = this.texts[`metric.${each.metric}`];
        const value = (_, found, line, at) => this.figures(unit, each, at);
        bands.push({ series: [lines.length + 1, lines.length], fill: `${colour}2b` });
        lines.push({ label, value, stroke: colour, width: 1.6, gaps, points: { size: 4 } });
        lines.push({ class: "plot-max", stroke: `${colour}80`, width: 1, gaps, points: { show: false } });
        data.push(each.mean, each.max);
      });
      const end = times[times.length - 1] + step;
      const foreseen = unit === "ratio" && this.answer.forecast ? this.foresee(data, lines, bands, end) : end;
      const drawn = new uPlot(this.options(unit, lines, bands, [start, foreseen]), data, figure);
      figure.querySelector("canvas").setAttribute("role", "img");
      figure.querySelector("canvas").setAttribute("aria-label", `${caption}: ${this.figures(unit, series[0], null)}`);
      return drawn;
    }

    // Index of the latest step that is known
    latest(series) {
      return Math.max(...series.map((each) => each.mean.findLastIndex((value) => value !== null)));
    }

    last(series) {
      return this.answer.start + this.latest(series) * this.answer.step_seconds;
    }

    // Mean and maximum below the crosshair, else the latest ones
    figures(unit, each, at) {
      const index = at ?? this.latest([each]), mean = each.mean[index], top = each.max[index];
      if (mean === null || mean === undefined) return "–";
      const known = formats[unit](mean), most = formats[unit](top);
      return known === most ? known : `${known} (${this.texts.max} ${most})`;
    }

    // Dashed lines of a disk's growth, from its last value until it is full, or as far ahead as the chart goes back
    foresee(data, lines, bands, end) {
      const { forecast } = this.answer, times = data[0];
      const until = Math.min(forecast.latest_at || forecast.full_at, end + (end - times[0]));
      const at = [...Array(25).keys()].map((number) => forecast.at + (until - forecast.at) * number / 24).filter((each) => each >= end);
      const before = times.length;
      for (const column of data.slice(1)) column.push(...at.map(() => null));
      times.push(...at);
      const first = lines.length;
      for (const rate of [forecast.max_rate, forecast.rate, forecast.min_rate]) {
        const colour = css("--plot1");
        data.push(times.map((each, index) => (index < before - 1 ? null : Math.min(1, forecast.used + rate * (each - forecast.at)))));
        lines.push({
          label: this.texts.forecast, value: (_, found) => shown("ratio", found), class: rate === forecast.rate ? "plot-main" : "plot-max", stroke: rate === forecast.rate ? colour : `${colour}66`,
          width: rate === forecast.rate ? 1.6 : 1, dash: [6, 4], points: { show: false },
        });
      }
      bands.push({ series: [first, first + 2], fill: `${css("--plot1")}1c` });
      return until;
    }

    options(unit, lines, bands, range) {
      const axis = { stroke: css("--dim"), grid: { stroke: css("--plot-grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
      const spans = range[1] - range[0];
      const labels = (_, found) => found.map((at) => (spans > 2 * 86400 || clock(at) === "00:00" ? day(at) : clock(at)));
      const scale = unit === "ratio" ? { range: (_, low, high) => [0, Math.max(1, high)] } : { range: (_, low, high) => [0, (high || 1) * 1.1] };
      return {
        width: this.width(), height: HEIGHT_PIXELS, series: lines, bands, tzDate,
        scales: { x: { time: true, range }, y: scale },
        axes: [
          { ...axis, size: 28, values: labels, space: spans > 2 * 86400 ? 60 : 52, incrs: [60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400] },
          { ...axis, size: 62, ...(unit.startsWith("bytes") && { incrs: BYTE_STEPS }), values: (_, found) => found.map((value) => shown(unit, value)) },
        ],
        cursor: { sync: { key: "history", setSeries: false }, points: { size: 6 }, drag: { x: false, y: false } },
        legend: { live: true },
        hooks: { draw: [(drawn) => this.mark(drawn)] },
      };
    }

    // A line where an alert fired, and a dashed one where it was resolved
    mark(drawn) {
      const { ctx, bbox } = drawn;
      ctx.save();
      for (const alert of this.answer.alerts || []) {
        const x = Math.round(drawn.valToPos(alert.at, "x", true));
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        const fired = alert.what === "fired";
        ctx.strokeStyle = ctx.fillStyle = fired ? css(alert.severity === "critical" ? "--critical" : "--warning") : css("--good");
        ctx.setLineDash(fired ? [] : [4, 4]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.beginPath();
        ctx.moveTo(x - 5, bbox.top);
        ctx.lineTo(x + 5, bbox.top);
        ctx.lineTo(x, bbox.top + 8);
        ctx.fill();
      }
      ctx.restore();
    }

    // The same alerts in words, newest first
    list(alerts) {
      const box = this.panel.querySelector(".plot-alerts");
      box.hidden = alerts.length === 0;
      box.querySelector("ul").replaceChildren(...[...alerts].reverse().slice(0, 8).map((alert) => {
        const line = document.createElement("li"), link = document.createElement("a");
        link.href = `/alerts/${encodeURIComponent(alert.fingerprint)}`;
        link.textContent = alert.title;
        line.append(`${moment(alert.at)} `, link, ` ${this.texts[alert.what] || alert.what} · ${alert.what === "resolved" ? this.texts.was : ""}${alert.headline}`);
        return line;
      }));
    }

    width() {
      const columns = getComputedStyle(this.grid).gridTemplateColumns.split(" ").map(parseFloat);
      return Math.max(200, Math.floor(columns[0] || this.grid.clientWidth));
    }

    resize() {
      const width = this.width();
      for (const each of this.drawn) if (each.width !== width) each.setSize({ width, height: HEIGHT_PIXELS });
    }
  }

  const panels = [...document.querySelectorAll(".plots")].map((panel) => new Plots(panel));
  setInterval(() => document.hidden || panels.forEach((each) => each.load()), REFRESH_MILLISECONDS);
  figures.onTheme(() => panels.forEach((each) => each.draw()));
})();
