"use strict";
(() => {
  const turns = [...document.querySelectorAll(".turn")];
  const links = [...document.querySelectorAll(".strip a")];
  const where = document.getElementById("where");
  const help = document.getElementById("help");
  const all = document.querySelector('[data-go="all"]');
  const small = window.matchMedia("(max-width: 52rem)");
  const PERIOD = 2000; // milliseconds between two readings of an episode that is being played
  const framed = window.parent !== window; // beside another episode
  const live = Boolean(document.body.dataset.live);
  const newest = Math.max(0, turns.length - 2); // the scores stand last
  let at = -1;

  // A piece of the trail: an arc from the place before, so that it keeps apart from the arrows.
  const bend = ([x, y], i, points) => {
    if (!i) return "M" + x + " " + y;
    const [u, v] = points[i - 1];
    return "Q" + ((x + u) / 2 + (y - v) * 0.18) + " " + ((y + v) / 2 - Math.abs(x - u) * 0.18) + " " + x + " " + y;
  };

  // The picture of the tree as it was after a turn.
  const draw = (turn) => {
    const path = (turn.dataset.path || "").split(" ").filter(Boolean);
    const order = [...new Set(path)];
    const results = new Map((turn.dataset.results || "").split(" ").filter(Boolean).map((pair) => pair.split(":")));
    const points = [];
    for (const node of document.querySelectorAll(".node")) {
      const id = node.dataset.node;
      node.classList.toggle("visited", order.includes(id));
      node.classList.toggle("current", turn.dataset.current === id);
      const studies = [...node.querySelectorAll(".dot")];
      const aimed = studies.some((dot) => dot.dataset.study === turn.dataset.target);
      node.classList.toggle("target", id === turn.dataset.target || aimed);
      node.querySelector(".order").textContent = order.includes(id) ? order.indexOf(id) + 1 : "";
      for (const dot of studies) {
        const seen = results.get(dot.dataset.study);
        dot.classList.toggle("true", seen === "0");
        dot.classList.toggle("fake", seen !== undefined && seen !== "0");
        dot.firstChild.nodeValue = seen === undefined ? "○" : seen === "0" ? "●" : "✕";
      }
    }
    for (const id of path) {
      const node = document.getElementById("node-" + id);
      if (node) points.push([Number(node.dataset.x), Number(node.dataset.y)]);
    }
    document.getElementById("trail")?.setAttribute("d", points.map(bend).join("")); // not every kind has a tree
  };

  // With room enough the picture stays in view beside or above the turn.
  const goal = () => {
    const apart = small.matches || !document.body.classList.contains("stepping");
    return apart ? turns[at] : document.querySelector(".columns");
  };

  // Scrolls the strip alone: scrollIntoView would take the page along, and its title out of sight.
  const reveal = (link) => {
    const strip = link.closest(".strip");
    const [box, frame] = [link.getBoundingClientRect(), strip.getBoundingClientRect()];
    if (box.top < frame.top) strip.scrollTop -= frame.top - box.top;
    if (box.bottom > frame.bottom) strip.scrollTop += box.bottom - frame.bottom;
  };

  const show = (index, scroll) => {
    at = Math.max(0, Math.min(turns.length - 1, index));
    turns.forEach((turn, i) => turn.classList.toggle("now", i === at));
    links.forEach((link, i) => (i === at ? link.setAttribute("aria-current", "step") : link.removeAttribute("aria-current")));
    reveal(links[at]);
    draw(turns[at]);
    const told = at === turns.length - 1 ? "scores" : "turn " + (at + 1) + " of " + (turns.length - 1);
    where.textContent = told;
    if (framed) window.parent.postMessage({ told }, "*");
    if (!scroll) return; // an address given while the page loads would be scrolled to
    history.replaceState(null, "", live && at === newest ? "#" : "#" + turns[at].id); // stay with the newest turn
    goal().scrollIntoView({ block: "start", behavior: "instant" });
  };

  const toggle = () => {
    const stepping = document.body.classList.toggle("stepping");
    all.setAttribute("aria-pressed", String(!stepping));
    show(at, true);
  };

  const go = {
    first: () => show(0, true),
    back: () => show(at - 1, true),
    on: () => show(at + 1, true),
    last: () => show(turns.length - 1, true),
    all: toggle,
    help: () => (help.open ? help.close() : help.showModal()),
  };
  const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", a: "all", "?": "help" };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const what = keys[event.key];
    if (!what || (help.open && what !== "help")) return;
    event.preventDefault();
    go[what]();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-go]");
    if (button) go[button.dataset.go]();
    const link = event.target.closest(".strip a");
    if (link) {
      event.preventDefault();
      show(links.indexOf(link), true);
    }
  });
  window.addEventListener("hashchange", () => {
    const index = turns.findIndex((turn) => "#" + turn.id === location.hash);
    if (index >= 0 && index !== at) show(index, true);
  });

  // The page that shows two episodes moves both.
  window.addEventListener("message", (event) => {
    const what = event.data?.go;
    if (event.source === window.parent && ["first", "back", "on", "last"].includes(what)) go[what]();
  });

  document.body.classList.toggle("framed", framed);
  document.querySelector(".controls").hidden = false;
  document.body.classList.add("stepping");
  const named = turns.findIndex((turn) => "#" + turn.id === location.hash);
  show(named >= 0 ? named : live ? newest : 0, false);
  if (live) setInterval(() => help.open || location.reload(), PERIOD);
})();
