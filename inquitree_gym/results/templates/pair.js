"use strict";
(() => {
  const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last" };
  const places = ["", ""]; // turns that the two pages show
  const frames = document.getElementById("frames");

  // Only pages of the same place: the address comes from the fragment, which anybody may have written.
  const isPage = (address) => {
    const found = address && URL.canParse(address, location.href) ? new URL(address, location.href) : null;
    return found?.protocol === location.protocol && found.host === location.host && found.pathname.endsWith(".html");
  };

  const show = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    const pages = [given.get("a"), given.get("b")];
    document.getElementById("nothing").hidden = pages.every(isPage);
    frames.replaceChildren();
    if (!pages.every(isPage)) return;
    for (const [i, page] of pages.entries()) {
      const frame = document.createElement("iframe");
      frame.title = i ? "Second episode" : "First episode";
      frame.setAttribute("sandbox", "allow-scripts allow-top-navigation-by-user-activation");
      frame.src = page;
      frames.append(frame);
    }
  };

  const send = (what) => {
    for (const frame of frames.children) frame.contentWindow.postMessage({ go: what }, "*");
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-go]");
    if (button) send(button.dataset.go);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    send(keys[event.key]);
  });
  window.addEventListener("message", (event) => {
    const at = [...frames.children].findIndex((frame) => frame.contentWindow === event.source);
    if (at < 0) return;
    places[at] = String(event.data?.told ?? "").slice(0, 40);
    document.querySelector("output").textContent = places.join("  |  ");
  });
  window.addEventListener("hashchange", show);
  show();
})();
