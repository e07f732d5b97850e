// Ages and times, user state that survives updates of sections, the GPU map, and confirmation of changes.
// All content is rendered by the server.
"use strict";
(() => {
  const body = document.body;
  const words = JSON.parse(body.dataset.words);
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Times

  function age(seconds) {
    const units = [[86400, words.d], [3600, words.h], [60, words.min], [1, words.s]];
    let rest = Math.max(0, Math.round(seconds));
    const first = units.findIndex(([length]) => rest >= length);
    if (first < 0) return `0 ${words.s}`;
    const [length, unit] = units[first];
    const count = Math.floor(rest / length);
    rest -= count * length;
    const next = units[first + 1];
    const more = next && count < 10 && first < 3 ? Math.floor(rest / next[0]) : 0;
    return `${count} ${unit}` + (more ? ` ${more} ${next[1]}` : "");
  }

  function brief(seconds) {
    const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
    const [length, unit] = units.find(([each]) => seconds >= each) || [1, "s"];
    return `${Math.max(0, Math.floor(seconds / length))}${unit}`;
  }

  function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function updateTimes(root) {
    const now = Date.now() / 1000;
    for (const each of all("time[data-s]", root)) {
      const passed = now - each.dataset.s;
      write(each, passed < -1 ? words.soon + age(-passed) : age(passed));
      if (!each.title) each.title = moment(each.dataset.s);
    }
    for (const each of all("time[data-a]", root)) write(each, brief(now - each.dataset.a));
    for (const each of all("time[data-m]", root)) write(each, moment(each.dataset.m));
  }

  // Times are those of the daemon's time zone, as in messages; Swedish writes them as 2026-01-31 08:15:00.
  function clockIn(timeZone) {
    const form = { dateStyle: "short", timeStyle: "medium" };
    try {
      return new Intl.DateTimeFormat("sv-SE", { ...form, timeZone });
    } catch {
      return new Intl.DateTimeFormat("sv-SE", form); // the browser does not know the zone
    }
  }
  const clock = clockIn(body.dataset.zone);

  function moment(at) {
    const [day, time] = clock.format(new Date(at * 1000)).split(" ");
    return day === clock.format(new Date()).split(" ")[0] ? time : `${day} ${time}`;
  }

  // Tables: on a narrow screen each row is a card, in which each cell has the heading of its column

  function labelCells(root) {
    for (const table of all("table", root)) {
      if (!table.tHead) continue;
      const heads = [...table.tHead.rows[0].cells].map((each) => each.textContent.trim());
      table.classList.add("stacked");
      for (const row of table.tBodies[0].rows) {
        [...row.cells].forEach((cell, place) => { if (cell.colSpan === 1) cell.dataset.label = heads[place] || ""; });
      }
    }
  }

  function prepare(root) {
    updateTimes(root);
    labelCells(root);
  }

  prepare(document);
  const nav = $("header nav"), current = $("[aria-current]", nav);
  if (current) nav.scrollLeft = current.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;
  setInterval(() => document.hidden || updateTimes(document), 1000);

  // Updates: send the versions of the sections; preserve selection, open details and focus.

  body.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt.id !== "poll") return;
    event.detail.parameters.v = all("section[data-v]").map((each) => `${each.id}.${each.dataset.v}`).join(",");
  });
  body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt.id === "poll" && document.hidden) event.preventDefault();
  });
  const lost = (yes) => { const note = $(".lost"); if (note) note.hidden = !yes; };
  body.addEventListener("htmx:sendError", () => lost(true));
  body.addEventListener("htmx:timeout", () => lost(true));
  body.addEventListener("htmx:afterRequest", (event) => event.detail.successful && lost(false));

  const kept = new Map();
  body.addEventListener("htmx:oobBeforeSwap", (event) => {
    const old = event.detail.target;
    const focus = document.activeElement;
    kept.set(old.id, {
      chosen: all("input[type=checkbox][value]:checked", old).map((each) => each.value),
      open: all("details[id]", old).filter((each) => each.open).map((each) => each.id),
      focus: old.contains(focus) ? all("a, button, input, summary", old).indexOf(focus) : -1,
    });
  });
  body.addEventListener("htmx:oobAfterSwap", (event) => {
    const section = document.getElementById(event.detail.target.id);
    const was = kept.get(event.detail.target.id);
    if (!section || !was) return;
    kept.delete(section.id);
    for (const box of all("input[type=checkbox][value]", section)) box.checked = was.chosen.includes(box.value);
    for (const own of was.open) { const there = document.getElementById(own); if (there) there.open = true; }
    const again = all("a, button, input, summary", section)[was.focus];
    if (again) again.focus({ preventScroll: true });
    prepare(section);
    count();
    narrow();
  });
  body.addEventListener("htmx:afterSettle", (event) => prepare(event.target));

  // Theme

  $("[data-theme-toggle]").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme || (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
  });

  // Guide of the demo: hidden until the browser is closed, or shown again by the button in the header

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-guide-toggle]")) return;
    const off = body.dataset.guide !== "off";
    if (off) body.dataset.guide = "off"; else delete body.dataset.guide;
    document.cookie = `guide=${off ? "off" : "on"}; path=/; samesite=lax`;
    $(off ? ".guide-show" : "#guide [data-guide-toggle]").focus();
  });

  // Map: filter by state, node or owner; show the owner of a square

  let only = "";
  function narrow() {
    const map = $(".map");
    if (!map) return;
    if (only) map.dataset.only = only; else delete map.dataset.only;
    for (const each of all("[data-only]", $("#legend"))) {
      each.setAttribute("aria-pressed", String(each.dataset.only === only));
    }
    const wanted = $("[data-map-filter]").value.trim().toLowerCase();
    for (const node of all(".node", map)) {
      const text = `${node.dataset.n} ${node.dataset.o || node.textContent}`.toLowerCase();
      node.hidden = wanted !== "" && !text.includes(wanted);
    }
  }
  document.addEventListener("input", (event) => event.target.matches("[data-map-filter]") && narrow());

  function square(target) {
    if (target.tagName !== "I" || !target.closest(".map.compact")) return null;
    const node = target.closest(".node");
    const place = [...target.parentElement.children].indexOf(target);
    return { node, place, index: Number(node.dataset.i) + place };
  }
  document.addEventListener("mouseover", (event) => {
    const found = square(event.target);
    if (!found || event.target.title) return;
    const owner = found.node.dataset.o.split("|")[found.place];
    const since = found.node.dataset.t.split("|")[found.place];
    const letter = event.target.className[0];
    const state = $(`[data-only="${letter}"]`);
    const said = [`${found.node.dataset.n} GPU ${found.index}`, state && state.firstChild.nextSibling.textContent.trim(), owner];
    if (since) said.push(age(Date.now() / 1000 - since));
    event.target.title = said.filter(Boolean).join(" · ");
  });

  // Search: suggestions while typing, and / to begin

  let typing, asked;
  async function suggest(typed) {
    asked?.abort();
    asked = new AbortController();
    const query = new URLSearchParams({ q: typed, lang: body.dataset.lang });
    try {
      const answer = await fetch(`/suggest?${query}`, { signal: asked.signal });
      if (answer.ok) $("#suggestions").innerHTML = await answer.text();  // rendered and escaped by our own server
    } catch (error) {
      if (error.name !== "AbortError") $("#suggestions").replaceChildren();
    }
  }
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-search]")) return;
    clearTimeout(typing);
    typing = setTimeout(suggest, 150, event.target.value);
  });
  document.addEventListener("keydown", (event) => {
    const writes = event.target.matches("input, select, textarea") || event.target.isContentEditable;
    if (event.key !== "/" || writes || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    $("[data-search]").focus();
  });

  // Confirmation of changes

  const dialog = $("#confirm");
  const said = $("#said");
  function show(text, bad) {
    said.textContent = text;
    said.className = bad ? "bad" : "good";
    clearTimeout(show.timer);
    show.timer = setTimeout(() => { said.textContent = ""; said.className = ""; }, 12000);
  }

  async function send(method, path, content) {
    const headers = { "X-CSRF-Token": body.dataset.csrf, Accept: "application/json", "Accept-Language": body.dataset.lang };
    if (content !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { method, headers, body: content === undefined ? undefined : JSON.stringify(content) });
    const told = await answer.json().catch(() => ({}));
    if (answer.status === 401) location.href = `/login?next=${encodeURIComponent(location.pathname)}`;
    if (!answer.ok) throw new Error(told.error || `HTTP ${answer.status}`);
    return told;
  }

  async function fragment(path) {
    const answer = await fetch(path, { headers: { "Accept-Language": body.dataset.lang } });
    const made = document.createElement("div");
    made.innerHTML = await answer.text();  // rendered and escaped by our own server
    prepare(made);
    return made;
  }

  // Request body for the selected GPUs, pods or nodes.
  function requestBody(act, targets) {
    const halves = targets.map((each) => { const cut = each.lastIndexOf("/"); return [each.slice(0, cut), each.slice(cut + 1)]; });
    if (act === "release-gpu") return { node: halves[0][0], gpu: halves[0][1] };
    if (act === "delete-pods") return { pods: halves.map(([namespace, name]) => ({ namespace, name })) };
    return { nodes: targets };
  }

  function list(answer) {
    const made = document.createElement("ul");
    made.className = "steps";
    for (const step of answer.steps) {
      const line = made.appendChild(document.createElement("li"));
      line.textContent = step.text;
      for (const each of step.warnings || []) line.append(Object.assign(document.createElement("em"), { textContent: each }));
    }
    if (!answer.steps.length) made.append(Object.assign(document.createElement("li"), { textContent: words.nothing }));
    made.toggleAttribute("data-refused", !answer.steps.length);
    return made;
  }

  // Show the plan, and return whether the user confirms it.
  async function agreed(title, find) {
    const what = $("#confirm-what"), yes = $("#confirm-yes");
    $("#confirm-title").textContent = title;
    what.textContent = words.asking;
    yes.disabled = true;
    dialog.returnValue = "no";
    dialog.showModal();
    const closed = new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
    try {
      const found = await find();
      what.replaceChildren(found);
      yes.disabled = $("[data-refused]", dialog) !== null;
    } catch (error) {
      what.textContent = words.refused + error.message;
    }
    return closed;
  }

  async function change(title, find, act) {
    if (!(await agreed(title, find))) return;
    show(words.doing);
    try {
      const told = await act();
      const steps = told.steps || (told.items || []).map((each) => ({ ...each, target: each.item.name }));
      const bad = steps.filter((each) => each.state && each.state !== "done");
      const why = (each) => `${each.target}: ${[each.said, each.message || each.outcome].filter(Boolean).join(" ")}`;
      show(bad.length ? words.refused + bad.map(why).join("; ") : words.done, bad.length > 0);
      htmx.trigger(body, "again");
    } catch (error) {
      show(words.failed + error.message, true);
    }
  }

  function chosen(own) {
    return all(`[data-pods="${own}"] input[type=checkbox][value]:checked`).map((each) => each.value);
  }
  function count() {
    for (const each of all("[data-chosen]")) {
      const some = chosen(each.dataset.chosen).length;
      each.textContent = some;
      each.closest("button").disabled = some === 0;
    }
  }
  document.addEventListener("change", (event) => {
    const own = event.target.dataset.all;
    if (own !== undefined) {
      for (const box of all(`[data-pods="${own}"] input[type=checkbox][value]`)) box.checked = event.target.checked;
    }
    count();
  });

  document.addEventListener("click", (event) => {
    const found = square(event.target);
    if (found) location.href = `/gpus/${encodeURIComponent(found.node.dataset.n)}/${found.index}`;
    const button = event.target.closest("button");
    if (!button) return;
    const { only: state, act, title, run, restore, unsilence, acknowledge, about, again } = button.dataset;
    if (state !== undefined) { only = only === state ? "" : state; narrow(); }
    if (again !== undefined) htmx.trigger(body, "again");
    if (act) {
      const targets = button.dataset.from ? chosen(button.dataset.from) : button.dataset.targets.split(" ");
      const ask = (more) => send("POST", `/v1/actions/${act}?lang=${body.dataset.lang}`, { ...requestBody(act, targets), ...more });
      let plan;
      const find = async () => { const would = await ask({ dry_run: true }); plan = would.plan; return list(would); };
      change(title, find, () => ask({ expect: plan }));
    }
    if (run) {
      event.preventDefault();
      const node = button.dataset.node || null;
      const query = new URLSearchParams({ policy: run, node: node || "", lang: body.dataset.lang });
      change(title, () => fragment(`/cleanup/preview-run?${query}`), () => send("POST", "/v1/cleanup/run", { policy: run, node }));
    }
    if (restore) {
      const told = document.createTextNode(words.restore);
      change(title, async () => told, () => send("POST", `/v1/cleanup/restore/${encodeURIComponent(restore)}`, {}));
    }
    if (acknowledge) {
      const path = `/v1/alerts/acknowledge/${encodeURIComponent(acknowledge)}`;
      change(title, async () => document.createTextNode(about), () => send("POST", path, {}));
    }
    if (unsilence) {
      change(title, async () => document.createTextNode(""), () => send("DELETE", `/v1/silences/${encodeURIComponent(unsilence)}`));
    }
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-silence]")) return;
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    const matchers = given.scope ? JSON.parse(given.scope) : given.matchers.trim().split(/\s+/);
    const query = new URLSearchParams({ duration: given.duration, lang: body.dataset.lang });
    for (const each of matchers) query.append("matcher", each);
    const wanted = { matchers, duration: given.duration, comment: given.comment };
    const silence = () => send("POST", "/v1/silences", wanted).then((made) => { form.closest("details")?.removeAttribute("open"); return made; });
    change(form.dataset.title, () => fragment(`/alerts/preview-silence?${query}`), silence);
  });
})();
