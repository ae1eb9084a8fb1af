"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("live").textContent);
  const tone = (n) => getComputedStyle(document.documentElement).getPropertyValue("--" + n).trim();
  const dashes = { 2: [7, 3], 3: [2, 3], 4: [9, 3, 2, 3], 5: [4, 4], 6: [1, 4] };
  const short = (v) => {
    const a = Math.abs(v);
    const cut = (x) => String(Number(x.toPrecision(4)));
    return a >= 1e9 ? cut(v / 1e9) + "G" : a >= 1e6 ? cut(v / 1e6) + "M" : a >= 1e4 ? cut(v / 1e3) + "k" : cut(v);
  };
  const drawn = new Map();

  function draw(plot, figure) {
    const ink = tone("ink"), soft = tone("soft"), line = tone("line");
    const width = figure.clientWidth;
    const axis = (spec, scale, side) => ({
      scale, side, stroke: soft, label: spec.label, labelSize: 18, labelFont: "12px system-ui", font: "11px system-ui",
      size: scale === "x" ? 34 : 52, grid: { show: scale !== "right", stroke: line, width: 1 },
      ticks: { stroke: line }, values: (_, all) => all.map((v) => (v === null ? "" : short(v))),
    });
    // Names of ranges stand above what is drawn.
    const room = plot.ranges.some(([, , name]) => name) ? 0.15 : 0.06;
    const scale = (spec) => spec.log ? { distr: 3 } : {
      range: (_, low, high) => {
        if (low === null) return [0, 1];
        const from = spec.zero ? Math.min(0, low) : low - (high - low || Math.abs(low) || 1) * 0.04;
        return [from, high + (high - from || 1) * room];
      },
    };
    const marks = (u) => {
      const c = u.ctx, box = u.bbox, ratio = devicePixelRatio;
      c.save();
      c.beginPath(); c.rect(box.left, box.top, box.width, box.height); c.clip();
      c.font = 11 * ratio + "px system-ui"; c.textAlign = "left"; c.lineJoin = "round";
      // Words stand over lines and points: what is under them is kept off their letters, and they come last.
      const told = [];
      const tell = (text, x, y, side) => told.push([text, x, y, side]);
      for (const [from, to, name] of plot.ranges) {
        const a = Math.max(u.valToPos(from, "x", true), box.left), b = u.valToPos(to, "x", true);
        c.fillStyle = tone("shade"); c.fillRect(a, box.top, Math.max(b - a, 2), box.height);
        tell(name, a + 4, box.top + 12 * ratio, "left");
      }
      const at = (x, y, right) => [u.valToPos(x, "x", true), u.valToPos(y, right ? "right" : "left", true)];
      for (const [number, points] of plot.areas) {
        c.beginPath();
        for (const [x, , high] of points) c.lineTo(...at(x, high));
        for (const [x, low] of [...points].reverse()) c.lineTo(...at(x, low));
        c.fillStyle = tone("t" + number) + "29"; c.fill();
      }
      c.lineWidth = 1.4 * ratio;
      for (const [x, low, high, number, right] of plot.bars) {
        const [px, below] = at(x, low, right), [, above] = at(x, high, right);
        c.strokeStyle = tone("t" + number); c.beginPath();
        c.moveTo(px, below); c.lineTo(px, above);
        for (const y of [below, above]) { c.moveTo(px - 3 * ratio, y); c.lineTo(px + 3 * ratio, y); }
        c.stroke();
      }
      for (const [x, y, number, right] of plot.hollow) {
        c.beginPath(); c.arc(...at(x, y, right), 3.6 * ratio, 0, 7);
        c.fillStyle = tone("paper"); c.fill(); c.strokeStyle = tone("t" + number); c.stroke();
      }
      const written = [];
      for (const [x, y, text] of plot.words) {
        const [a, b] = at(x, y);
        if (written.some(([p, q]) => Math.abs(p - a) < plot.apart[0] * ratio && Math.abs(q - b) < plot.apart[1] * ratio)) continue;
        written.push([a, b]);
        tell(text, a - 6 * ratio, b - 7 * ratio, "right");
      }
      c.lineWidth = ratio;
      c.setLineDash([5 * ratio, 4 * ratio]);
      const taken = [];
      for (const [at, name] of plot.marks) {
        const x = u.valToPos(at, "x", true);
        const length = c.measureText(name).width + 10;
        const right = x + length > box.left + box.width;
        const from = right ? x - length : x;
        let row = taken.findIndex((end) => end <= from);
        if (row < 0) row = taken.length;
        taken[row] = from + length;
        c.strokeStyle = ink; c.beginPath(); c.moveTo(x, box.top); c.lineTo(x, box.top + box.height); c.stroke();
        tell(name, x + (right ? -5 : 5), box.top + box.height - (7 + 14 * row) * ratio, right ? "right" : "left");
      }
      for (const [at, name] of plot.levels) {
        const y = u.valToPos(at, "left", true);
        c.strokeStyle = tone("t4"); c.beginPath(); c.moveTo(box.left, y); c.lineTo(box.left + box.width, y); c.stroke();
        tell(name, box.left + box.width - 5, y - 5, "right");
      }
      c.setLineDash([]); c.lineWidth = 3 * ratio; c.strokeStyle = tone("paper"); c.fillStyle = ink;
      for (const [text, x, y, side] of told) { c.textAlign = side; c.strokeText(text, x, y); c.fillText(text, x, y); }
      c.restore();
    };
    const axes = [axis(plot.x, "x", 2), axis(plot.left, "left", 3)];
    const scales = { x: { time: false, ...scale({ ...plot.x, zero: false }) }, left: scale(plot.left) };
    if (plot.right) { axes.push(axis(plot.right, "right", 1)); scales.right = scale(plot.right); }
    const series = [{ label: plot.x.label, value: (_, v) => (v === null ? "–" : short(v)) }];
    for (const s of plot.series) {
      const colour = tone("t" + s.tone);
      const strip = s.full ? "strip" + s.full : null;
      if (strip) scales[strip] = { auto: false, range: [0, s.full / plot.strip] };
      series.push({
        label: s.name, scale: strip || (s.right ? "right" : "left"), stroke: colour, width: s.dots ? 0 : strip ? 1 : 1.8, dash: s.dots || strip ? undefined : dashes[s.tone],
        fill: strip ? colour + "38" : undefined,
        spanGaps: true, points: { show: s.dots, size: 7, fill: colour, stroke: colour }, paths: s.dots ? () => null : undefined,
        value: (_, v) => (v === null || v === undefined ? "–" : short(v)),
      });
    }
    const place = figure.querySelector(".live");
    place.textContent = "";
    const options = { width, height: Math.max(240, Math.min(340, width * 0.5)), axes, scales, series, hooks: { draw: [marks] }, legend: { live: true } };
    return new uPlot(options, [plot.at, ...plot.series.map((s) => s.y)], place);
  }

  function show(plot) {
    const figure = document.getElementById(plot.id);
    const old = drawn.get(plot.id);
    if (old) old.destroy();
    figure.classList.add("has-live");
    figure.querySelector(".still").removeAttribute("tabindex");
    drawn.set(plot.id, draw(plot, figure));
  }

  const byId = new Map(plots.map((plot) => [plot.id, plot]));
  // Only the observer says what is near: any look at a place would lay out sections that the style leaves alone. Its
  // first answer tells of every plot.
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { watch.unobserve(entry.target); show(byId.get(entry.target.id)); }
    }
    ready();
  }, { rootMargin: "300px" });
  const root = document.documentElement;
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
  const far = [...document.querySelectorAll("main > section")];
  // Some sections at a time: each change of style costs as much as many sections, and none is to keep a reader waiting.
  // What is read stays where it is.
  function lay() {
    const read = document.elementFromPoint(innerWidth / 2, innerHeight / 3) ?? root;
    const place = () => read.getBoundingClientRect().top;
    const before = place();
    for (const section of far.splice(0, 24)) section.classList.add("laid");
    if (far.length === 0) root.classList.remove("opening");
    scrollBy(0, place() - before);
    if (far.length > 0) idle(lay);
  }
  function ready() {
    if (root.dataset.ready) return;
    root.dataset.ready = Math.round(performance.now());
    idle(lay);
  }
  for (const plot of plots) {
    const figure = document.getElementById(plot.id);
    const place = document.createElement("div");
    place.className = "live";
    place.setAttribute("aria-hidden", "true");
    figure.querySelector(".still").before(place);
    watch.observe(figure);
  }
  // What is far away is drawn again when it comes near.
  const again = () => { for (const id of drawn.keys()) watch.observe(document.getElementById(id)); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(again, 150); });

  for (const table of document.querySelectorAll("pre.csv")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Save " + table.dataset.name;
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([table.textContent], { type: "text/csv" }));
      link.download = table.dataset.name;
      link.click();
    });
    table.before(button);
  }
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  if (plots.length === 0) ready();
})();
