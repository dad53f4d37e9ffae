// The page works without this script. It loads the page again when the server says that what it
// shows has changed, keeps the focus where it was and details open, and adds buttons that copy
// commands.
"use strict";
(() => {
  const announce = document.getElementById("announce");
  const standing = () => document.getElementById("standing")?.textContent ?? "";

  const buttons = () => {
    if (!navigator.clipboard) return;
    for (const command of document.querySelectorAll("pre.command")) {
      const text = command.textContent;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.setAttribute("aria-label", "Copy: " + text);
      button.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => { announce.textContent = "Copied"; }));
      command.after(button);
    }
  };

  // place is a path to an element, to find its successor after the page was loaded again.
  const place = (element) => {
    const steps = [];
    for (; element && element.id !== "main" && element.parentElement; element = element.parentElement) {
      steps.unshift([...element.parentElement.children].indexOf(element));
    }
    return steps;
  };

  let loading = false, again = false;
  const load = async () => {
    if (loading) { again = true; return; }
    loading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = document.getElementById("main");
      if (answer.redirected || !fresh.getElementById("main")) { location.reload(); return; }
      const before = standing(), focused = main.contains(document.activeElement) ? place(document.activeElement) : null;
      const open = [...main.querySelectorAll("details[open]")].map(details => details.id);
      main.replaceChildren(...fresh.getElementById("main").childNodes);
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
      document.title = fresh.title;
      buttons();
      if (focused) focused.reduce((at, i) => at?.children[i], main)?.focus({ preventScroll: true });
      if (standing() !== before) announce.textContent = standing();
    } catch {
      again = false; // the server is away; the next event comes when it is back
    } finally {
      loading = false;
      if (again) { again = false; setTimeout(load, 1000); }
    }
  };

  buttons();
  const events = document.body.dataset.events;
  if (events) {
    let version;
    new EventSource(events).addEventListener("version", (e) => {
      if (version !== undefined && version !== e.data) load();
      version = e.data;
    });
  }
})();
