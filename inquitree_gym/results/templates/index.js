"use strict";
(() => {
  const PERIOD = 2000; // milliseconds between two readings of a run that is being played
  const form = document.getElementById("choice");
  const search = document.getElementById("search");
  const count = document.getElementById("count");
  const pair = document.getElementById("pair");
  const body = document.querySelector("tbody");
  const heads = [...document.querySelectorAll("thead th")];
  const names = heads.map((head) => head.textContent);
  const selects = [...form.querySelectorAll("select")];
  const collator = new Intl.Collator("en", { numeric: true });
  const lines = [...body.rows].map((row) => {
    const cells = [...row.cells].map((cell) => cell.textContent);
    return { row, cells, text: cells.join(" ").toLowerCase(), page: row.querySelector("a")?.getAttribute("href") };
  });
  const chosen = []; // lines to be shown side by side, two at most
  let sorted = { column: "", down: false };

  const column = (name) => names.indexOf(name);

  // The choice is in the address, so that a link can hold it and a reload keeps it.
  const keep = () => {
    const kept = new URLSearchParams();
    for (const each of selects) if (each.value) kept.set(each.dataset.column, each.value);
    if (search.value) kept.set("search", search.value);
    if (sorted.column) kept.set("sort", (sorted.down ? "-" : "") + sorted.column);
    history.replaceState(null, "", "#" + kept);
  };

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = selects.filter((each) => each.value).map((each) => [column(each.dataset.column), each.value]);
    let shown = 0;
    for (const { row, cells, text } of lines) {
      const fits = words.every((word) => text.includes(word)) && wanted.every(([i, value]) => cells[i] === value);
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    count.textContent = shown < lines.length ? shown + " of " + lines.length : "";
  };

  // Absent values stand last in either direction; equal lines keep their order.
  const compare = (i, sign) => (one, other) => {
    const [a, b] = [one.cells[i], other.cells[i]];
    if (a === "–" || b === "–") return (a === "–") - (b === "–");
    const [x, y] = [Number(a.replace(/,/g, "")), Number(b.replace(/,/g, ""))];
    return sign * (Number.isNaN(x) || Number.isNaN(y) ? collator.compare(a, b) : x - y);
  };

  const sort = (name, down) => {
    if (name === sorted.column && down === sorted.down) return;
    sorted = { column: name, down };
    heads.forEach((head, i) => {
      if (names[i] === name) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const order = column(name) < 0 ? lines : [...lines].sort(compare(column(name), down ? -1 : 1));
    body.append(...order.map((line) => line.row));
  };

  const told = (line) => form.dataset.told.split("|").map((name) => line.cells[column(name)]).join(" · ");

  const offer = () => {
    const [words, link] = [pair.querySelector("span"), pair.querySelector("a")];
    pair.hidden = !chosen.length;
    words.textContent = chosen.map(told).join("  beside  ") + (chosen.length === 1 ? " – choose another one" : "");
    link.hidden = chosen.length < 2;
    if (chosen.length === 2) {
      link.href = pair.dataset.page + "#" + new URLSearchParams({ a: chosen[0].page, b: chosen[1].page });
    }
    for (const line of lines) line.pick?.setAttribute("aria-pressed", String(chosen.includes(line)));
  };

  const pick = (line) => {
    if (chosen.includes(line)) chosen.splice(chosen.indexOf(line), 1);
    else chosen.push(line);
    if (chosen.length > 2) chosen.shift();
    offer();
  };

  const addPicks = () => {
    const head = document.createElement("th");
    head.className = "pick";
    head.scope = "col";
    head.textContent = "compare";
    heads[0].parentNode.append(head);
    for (const line of lines) {
      const cell = line.row.insertCell(-1);
      cell.className = "pick";
      if (!line.page) continue;
      line.pick = document.createElement("button");
      line.pick.type = "button";
      line.pick.textContent = "⇄";
      line.pick.setAttribute("aria-label", "side by side: " + told(line));
      line.pick.setAttribute("aria-pressed", "false");
      cell.append(line.pick);
    }
  };

  const addSorting = () => {
    heads.forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = names[i];
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        sort(names[i], sorted.column === names[i] && !sorted.down);
        keep();
      });
    });
  };

  const addValues = () => {
    for (const each of selects) {
      const values = new Set(lines.map((line) => line.cells[column(each.dataset.column)]));
      for (const value of [...values].sort(collator.compare)) each.add(new Option(value, value));
    }
  };

  const restore = () => {
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const each of selects) each.value = kept.get(each.dataset.column) ?? "";
    search.value = kept.get("search") ?? "";
    const order = kept.get("sort") ?? "";
    sort(order.replace(/^-/, ""), order.startsWith("-"));
    filter();
  };

  addValues();
  addSorting();
  if (lines.some((line) => line.page)) addPicks();
  body.addEventListener("click", (event) => {
    const button = event.target.closest(".pick button");
    if (button) pick(lines.find((line) => line.pick === button));
  });
  form.addEventListener("input", () => (filter(), keep()));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    history.replaceState(null, "", "#");
    restore();
  });
  pair.querySelector("button").addEventListener("click", () => (chosen.splice(0), offer()));
  window.addEventListener("hashchange", restore);
  form.hidden = false;
  restore();

  // Nothing is loaded again under the reader's hands.
  const isIdle = () => !chosen.length && !document.activeElement?.matches("input, select");
  if (document.body.dataset.live) setInterval(() => isIdle() && location.reload(), PERIOD);
})();
