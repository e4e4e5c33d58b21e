// Live parts, filters that submit themselves, ages, copying. The page is readable without scripts.
"use strict";
(() => {
  const live = document.getElementById("live");
  const say = (state, text) => {
    if (!live || live.textContent === text) return;
    live.className = "live " + state;
    live.textContent = text;
  };

  // Replace a part, and keep the focus, open details and scroll position in it.
  const put = (part, html, mark) => {
    const held = document.activeElement;
    const inside = held && part.contains(held) ? held : null;
    const path = inside && (inside.id ? "#" + CSS.escape(inside.id)
      : inside.getAttribute("href") ? `${inside.localName}[href="${CSS.escape(inside.getAttribute("href"))}"]` : null);
    const open = [...part.querySelectorAll("details[open][id]")].map((each) => each.id);
    const scrolled = [...part.querySelectorAll(".scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
    part.innerHTML = html;
    part.dataset.mark = mark;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    part.querySelectorAll(".scroll").forEach((each, at) => {
      if (scrolled[at]) [each.scrollLeft, each.scrollTop] = scrolled[at];
    });
    if (path) part.querySelector(path)?.focus({ preventScroll: true });
    ages(part);
  };

  // Ask for the page again with the mark of what is shown, and replace the parts that differ.
  let mark = "";
  const refresh = async () => {
    const headers = { Accept: "text/html", ...(mark && { "If-None-Match": mark }) };
    const answer = await fetch(location.href, { headers, cache: "no-store" }).catch(() => null);
    if (answer?.redirected || answer?.status === 401) return location.reload();
    if (!answer || !(answer.ok || answer.status === 304)) return say("off", "not connected");
    say("on", "live");
    if (answer.status === 304) return;
    mark = answer.headers.get("ETag") || "";
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const ids = (doc) => [...doc.querySelectorAll(".part")].map((each) => each.id).join("\n");
    if (ids(fresh) !== ids(document)) {
      const now = fresh.getElementById("main");
      if (now) { document.getElementById("main").innerHTML = now.innerHTML; start(document.getElementById("main")); }
      return;
    }
    for (const part of fresh.querySelectorAll(".part")) {
      const mine = document.getElementById(part.id);
      if (mine && mine.dataset.mark !== part.dataset.mark) put(mine, part.innerHTML, part.dataset.mark);
    }
  };

  // Update ages between changes, in the format of kubectl.
  const two = (first, unit, second, smaller) => first + unit + (second ? second + smaller : "");
  const words = (seconds) => {
    const s = Math.max(0, Math.floor(seconds)), m = Math.floor(s / 60), h = Math.floor(s / 3600), d = Math.floor(s / 86400);
    if (s < 120) return s + "s";
    if (m < 10) return two(m, "m", s % 60, "s");
    if (m < 180) return m + "m";
    if (h < 8) return two(h, "h", m % 60, "m");
    if (h < 48) return h + "h";
    if (d < 8) return two(d, "d", h % 24, "h");
    if (d < 730) return d + "d";
    return two(Math.floor(d / 365), "y", d % 365, "d");
  };
  const ages = (root) => {
    for (const each of root.querySelectorAll("time[datetime]")) {
      const text = words((Date.now() - Date.parse(each.dateTime)) / 1000);
      if (each.textContent !== text) each.textContent = text;
    }
  };

  // Submit a form of filters at every change; without scripts its button submits it.
  const filters = (form) => {
    let timer = 0;
    const go = () => {
      const url = new URL(form.action);
      for (const [name, value] of new FormData(form)) if (value) url.searchParams.append(name, value);
      if (url.href === location.href) return;
      history.replaceState(null, "", url);
      mark = "";
      refresh();
    };
    form.addEventListener("input", (event) => {
      clearTimeout(timer);
      timer = setTimeout(go, event.target.type === "checkbox" || event.target.localName === "select" ? 900 : 600);
    });
  };

  const copying = (button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.querySelector("span").textContent = "Copied";
      setTimeout(() => { button.querySelector("span").textContent = "Copy"; }, 1500);
    });
  };

  // Follow logs: read the last lines of the chosen logs again and again.
  const following = () => {
    const button = document.getElementById("follow"), log = document.getElementById("log");
    if (!button || !log) return;
    let timer = 0;
    const look = async () => {
      const address = location.pathname + "?" + new URLSearchParams(new FormData(button.form));
      const answer = await fetch(address, { cache: "no-store" }).catch(() => null);
      if (!answer?.ok) return stop();
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("log");
      const end = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      if (fresh && fresh.innerHTML !== log.innerHTML) log.innerHTML = fresh.innerHTML;
      if (end) log.scrollTop = log.scrollHeight;
      if (timer) timer = setTimeout(look, 5000);
    };
    const stop = () => {
      clearTimeout(timer);
      timer = 0;
      button.setAttribute("aria-pressed", "false");
      button.textContent = "Follow";
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      if (timer) return stop();
      button.setAttribute("aria-pressed", "true");
      button.textContent = "Stop";
      timer = setTimeout(look, 0);
    });
  };

  const start = (root) => {
    root.querySelectorAll("form[data-auto]").forEach(filters);
    root.querySelectorAll("button[data-copy]").forEach(copying);
    ages(root);
  };

  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.nodeName)) {
      const search = document.getElementById("search");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
  });
  start(document);
  setInterval(() => ages(document), 5000);
  const again = Number(document.documentElement.dataset.again);
  if (again) setInterval(() => document.hidden || refresh(), 1000 * again);
  following();
})();
