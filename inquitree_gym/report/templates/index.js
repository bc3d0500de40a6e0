"use strict";
(() => {
  const field = document.getElementById("filter");
  const count = document.getElementById("count");
  const lines = [...document.querySelectorAll("tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of lines) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = words.length ? shown + " of " + lines.length : "";
  };
  field.addEventListener("input", apply);
  field.closest("p").hidden = false;
})();
