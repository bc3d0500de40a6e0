"use strict";
const by = id => document.getElementById(id);
let state = null, busy = false, shown = 0, looking = false;

function make(name, text, ...inside) {
  const made = document.createElement(name);
  made.textContent = text;
  made.append(...inside);
  return made;
}

function tell(name, text, kind) {
  const said = make("div", text), part = make("details", "", make("summary", name), said);
  said.className = `said ${kind}`;
  part.open = true;
  by("story").append(part);
  return part;
}

function showStory() {
  const known = shown, texts = [...state.turns.flat(), state.observation];
  let newest = null;
  for (; shown < texts.length; shown++) {
    const turn = (shown >> 1) + 1, mine = shown % 2;
    const name = mine ? `Your move ${turn}` : state.over && shown === texts.length - 1 ? "End" : `Turn ${turn}`;
    const part = tell(name, texts[shown], mine ? "action" : "observation");
    if (!mine) newest = part;
  }
  if (shown > known) [...by("story").children].slice(0, -2).forEach(part => { part.open = false; });
  return newest;
}

function outline(node) {
  const item = make("li", "", make("b", node.heading), document.createTextNode(node.text));
  if (node.parts.length) item.append(make("ul", "", ...node.parts.map(outline)));
  return item;
}

function showBeliefs() {
  const table = state.beliefs, wanted = state.over || looking;
  by("look").disabled = false;
  by("look").hidden = by("warning").hidden = state.over;
  by("look").setAttribute("aria-pressed", String(looking));
  by("none").hidden = !wanted || Boolean(table && table.lines.length);
  by("beliefs").hidden = !wanted || !by("none").hidden;
  if (by("beliefs").hidden) return;
  const head = make("tr", "", ...table.heads.map((text, i) => cell("th", text, i)));
  const rows = table.lines.map((line, row) => make("tr", "", ...line.map((text, i) =>
    cell(i === 1 ? "th" : "td", i === 0 && row && table.lines[row - 1][0] === text ? "" : text, i))));
  by("beliefs").replaceChildren(make("table", "", make("caption", table.caption), make("thead", "", head), make("tbody", "", ...rows)));
}

function cell(name, text, place) {
  const made = make(name, text);
  if (name === "th") made.scope = place === 1 && text !== "possible answer" ? "row" : "col";
  if (place < state.beliefs.labels) made.className = "word";
  return made;
}

function choice(name, value, text, checked) {
  const button = document.createElement("input"), label = make("label", "", button, make("span", text));
  Object.assign(button, {type: "radio", name, value, checked});
  button.addEventListener("change", write);
  return label;
}

function write() {
  const chosen = state.items.map(([number], i) => [number, document.querySelector(`input[name="item${i}"]:checked`).value]);
  by("text").value = chosen.filter(([, letter]) => letter).map(pair => pair.join(" ").trim()).join("\n");
}

function showItems() {
  by("items").replaceChildren(...state.items.map(([number, statements], i) => make("fieldset", "",
    make("legend", number ? `Item ${number}` : "Answer"), choice(`item${i}`, "", "leave out", true),
    ...statements.map(([letter, text]) => choice(`item${i}`, letter, `${letter}. ${text}`, false)))));
}

function show() {
  const newest = showStory(), left = state.left === null ? "" : `, ${state.left} left`;
  by("status").textContent = state.over ? "The episode is over." : `Turn ${state.turn + 1}${left}${state.place && ` · ${state.place}`}`;
  by("form").hidden = state.over;
  by("end").hidden = !state.over;
  document.querySelector(".skip").href = state.over ? "#end" : "#text";
  by("observer-part").hidden = !state.observer;
  by("found-part").hidden = !state.found;
  if (state.found) by("found").replaceChildren(make("ul", "", outline(state.found)));
  showBeliefs();
  if (newest) showItems();
  if (newest && state.turn && !state.over) newest.scrollIntoView({block: "start"});
  if (!state.over) return;
  by("log").textContent = state.log;
  by("scores").replaceChildren(...Object.entries(state.score || {}).map(([name, value]) =>
    make("div", "", make("dt", name.replaceAll("_", " ")), make("dd", Number.isInteger(value) ? value : value.toFixed(2)))));
  if (newest) by("end-title").focus();
}

async function ask(path, order) {
  const sent = {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(order)};
  const answer = await fetch(path, order && sent), told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

async function act(order, doing) {
  if (busy) return false;
  busy = true;
  by("said").textContent = "";
  by("status").textContent = doing;
  for (const each of document.querySelectorAll("button")) each.setAttribute("aria-disabled", "true");
  let fault = "";
  try { state = await ask(order ? "act" : "state", order); }
  catch (error) {
    fault = error instanceof TypeError ? "The command does not answer. Start it again with the same --log to play on." : error.message;
    if (order && !(error instanceof TypeError)) state = await ask("state").catch(() => state);
  }
  for (const each of document.querySelectorAll("button")) each.removeAttribute("aria-disabled");
  busy = false;
  if (state && state.task) show(); else by("status").textContent = fault ? "The episode cannot be shown." : "";
  by("said").textContent = fault;
  return !fault;
}

async function send() {
  if (!by("text").value.trim()) { by("said").textContent = "A move has at least one word. Yours is empty."; by("text").focus(); return; }
  if (await act({do: "move", turn: state.turn, text: by("text").value}, "Your move is being read.")) {
    by("text").value = "";
    if (looking && !state.over) await act({do: "look"}, "");
  }
}

async function look() {
  looking = !looking;
  if (looking) await act({do: "look"}, "The observer thinks."); else showBeliefs();
}

async function finish() {
  if (busy) return;
  await ask("act", {do: "finish"}).catch(() => {});
  for (const each of document.querySelectorAll("button, textarea, input")) each.disabled = true;
  by("status").textContent = "The command has ended. You can close this page." + (state && !state.over ? ` To play on, start it with --log ${state.log}` : "");
}

addEventListener("beforeprint", () => { for (const part of by("story").children) part.open = true; });
by("form").addEventListener("submit", event => { event.preventDefault(); send(); });
by("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); }
});
by("look").addEventListener("click", look);
by("leave").addEventListener("click", finish);
by("close").addEventListener("click", finish);
act(null, by("status").textContent);
