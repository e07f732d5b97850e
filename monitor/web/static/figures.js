// Shared by the charts: times in the time zone of the daemon, values with their units, and colours of the theme.
"use strict";
const figures = (() => {
  const zone = document.body.dataset.zone;
  const form = { dateStyle: "short", timeStyle: "short" };
  const instant = (() => {  // Swedish writes times as 2026-01-31 08:15
    try {
      return new Intl.DateTimeFormat("sv-SE", { ...form, timeZone: zone });
    } catch {
      return new Intl.DateTimeFormat("sv-SE", form);  // the browser does not know the zone
    }
  })();
  const written = (at) => instant.format(new Date(at * 1000));
  const clock = (at) => written(at).slice(-5);
  const day = (at) => written(at).slice(5, 10);
  const moment = (at) => `${day(at)} ${clock(at)}`;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function size(amount) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let number = amount, unit = 0;
    while (number >= 1023.5 && unit < units.length - 1) { number /= 1024; unit += 1; }
    return `${number >= 100 ? Math.round(number) : Math.round(number * 10) / 10} ${units[unit]}`;
  }

  const formats = {
    "ratio": (value) => `${Math.round(value * 1000) / 10}%`,
    "gpus": (value) => String(Math.round(value * 100) / 100),
    "watts": (value) => `${Math.round(value)} W`,
    "celsius": (value) => `${Math.round(value * 10) / 10} °C`,
    "bytes": size,
    "bytes-per-second": (value) => `${size(value)}/s`,
  };
  const shown = (unit, value) => (value === null || value === undefined ? "–" : formats[unit](value));

  // The answer of the API as JSON; an error has its explanation as message
  async function ask(path, query) {
    const answer = await fetch(`${path}?${new URLSearchParams(query)}`, { headers: { Accept: "application/json" } });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error || `HTTP ${answer.status}`);
    return found;
  }

  // Calls `draw` when the colours of the page change
  function onTheme(draw) {
    new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  return { zone, clock, day, moment, css, formats, shown, ask, onTheme };
})();
