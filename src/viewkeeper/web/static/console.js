// What pages need of script: news without reloading, charts, ages that grow, and rows on demand.
"use strict";
(() => {
  const page = () => document.getElementById("page");

  // Ages, as the server writes them.
  const age = (seconds) => {
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) {
      if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
    }
    return `${Math.max(0, Math.floor(seconds))} s`;
  };
  const grow = () => {
    for (const each of document.querySelectorAll("time[data-age]")) {
      each.textContent = `${age((Date.now() - Date.parse(each.dateTime)) / 1000)} ago`;
    }
  };
  setInterval(grow, 5000);

  // Charts: compute and install, one on the other, by epoch.
  let charts = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const draw = () => {
    for (const each of charts) each.destroy();
    charts = [];
    for (const box of document.querySelectorAll("[data-chart]")) {
      const data = JSON.parse(box.dataset.chart);
      if (!window.uPlot || !data.epochs.length) continue;
      const places = data.epochs.map((_, at) => at);
      const total = data.compute.map((seconds, at) => seconds + data.install[at]);
      const grid = { stroke: colour("--vk-rule"), width: 1 };
      const bars = uPlot.paths.bars({ size: [0.7, 40], align: 0 });
      const seconds = (value) => (value == null ? "" : `${value.toFixed(2)} s`);
      const series = (label, name, value) => ({ label, fill: colour(name), stroke: colour(name), width: 0, paths: bars, points: { show: false }, value });
      charts.push(new uPlot({
        width: Math.max(240, box.clientWidth - 20), height: 240,
        cursor: { y: false }, legend: { live: true },
        scales: { x: { time: false, range: [-0.6, Math.max(places.length, 8) - 0.4] }, y: { range: (_, low, high) => [0, high * 1.08 || 1] } },
        axes: [
          { stroke: colour("--vk-muted"), grid: { show: false }, ticks: grid, incrs: [1, 2, 5, 10, 20, 50, 100], values: (_, splits) => splits.map((at) => data.epochs[at] ?? "") },
          { stroke: colour("--vk-muted"), grid, ticks: grid, size: 56, values: (_, splits) => splits.map((value) => `${+value.toFixed(2)} s`) },
        ],
        series: [
          { label: "Epoch", value: (_, at) => (at == null ? "" : `${data.epochs[at]}, ${data.strategy[at]}, ${data.rows[at].toLocaleString("en")} rows`) },
          series("Install", "--vk-install", (_, value, __, at) => (at == null ? "" : seconds(data.install[at]))),
          series("Compute", "--vk-compute", (_, value) => seconds(value)),
        ],
      }, [places, total, data.compute], box));
    }
  };
  addEventListener("resize", () => { clearTimeout(draw.later); draw.later = setTimeout(draw, 150); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  // The page again, without reloading: what is open stays open, and the focus where it was.
  const markOf = (node) => node && (node.id ? `#${CSS.escape(node.id)}` : node.getAttribute && node.getAttribute("href") ? `[href="${CSS.escape(node.getAttribute("href"))}"]` : null);
  let turn = 0;
  const swap = async (address) => {
    const mine = ++turn;
    let answer;
    try { answer = await fetch(address, { headers: { Accept: "text/html" } }); } catch { return; }
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = made.getElementById("page");
    if (!fresh || mine !== turn) return;
    const open = [...page().querySelectorAll("details[open][id]")].map((each) => each.id);
    const typed = document.activeElement && /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (typed) return;
    const rows = document.getElementById("rows");
    const mark = page().contains(document.activeElement) ? markOf(document.activeElement) : null;
    const scrolled = [...page().querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    page().replaceChildren(...fresh.childNodes);
    document.title = made.title;
    for (const id of open) { const each = document.getElementById(id); if (each) each.open = true; }
    const place = document.getElementById("rows");
    if (rows && place && rows.childNodes.length) place.replaceWith(rows);
    [...page().querySelectorAll(".scroll")].forEach((each, at) => { if (scrolled[at]) [each.scrollLeft, each.scrollTop] = scrolled[at]; });
    if (mark) page().querySelector(mark)?.focus({ preventScroll: true });
    draw();
  };

  // News.
  const live = document.getElementById("live");
  const say = (text, kind) => {
    live.hidden = false;
    live.className = `live ${kind}`;
    document.getElementById("live-text").textContent = text;
    clearTimeout(say.later);
    if (kind === "done") say.later = setTimeout(() => { live.hidden = true; }, 8000);
  };
  let news = null;
  const listen = () => {
    news = new EventSource("/events");
    news.addEventListener("progress", (event) => {
      const told = JSON.parse(event.data);
      say(told.text, told.failed ? "bad" : told.running ? "running" : "done");
    });
    news.addEventListener("changed", () => swap(location.href));
    news.addEventListener("trouble", (event) => { say(JSON.parse(event.data).text, "bad"); });
    news.addEventListener("recovered", () => { say("The ledger is back.", "done"); swap(location.href); });
    let lost = false;
    news.addEventListener("error", () => { lost = true; });
    news.addEventListener("open", () => { if (lost) { lost = false; swap(location.href); } });
  };

  // Links that fill a place of the page instead of leaving it.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-into], a[data-swap]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    link.setAttribute("aria-busy", "true");
    if (link.dataset.into) {
      const place = document.getElementById(link.dataset.into);
      place.textContent = "Spark is asked; the first time it has to start, which takes a while …";
      try {
        const answer = await fetch(link.href, { headers: { Accept: "text/html" } });
        const made = new DOMParser().parseFromString(await answer.text(), "text/html");
        place.replaceChildren(...(made.getElementById(link.dataset.into) || made.getElementById("page")).childNodes);
      } catch { place.textContent = "The console does not answer."; }
    } else {
      await swap(link.href);
    }
    link.removeAttribute("aria-busy");
  });

  document.addEventListener("DOMContentLoaded", () => {
    draw();
    if (location.pathname === "/login") return;
    listen();
    // Browsers allow a few connections to one address: tabs that nobody looks at must not hold them.
    addEventListener("pagehide", () => news.close());
    document.addEventListener("visibilitychange", () => {
      news.close();
      if (document.hidden) return;
      listen();
      swap(location.href);
    });
  });
})();
