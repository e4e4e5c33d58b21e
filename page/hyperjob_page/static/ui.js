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

  // Fetch the page again and replace all parts: after a pause, or after parts were added or removed.
  const refresh = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.redirected) return location.reload();
    if (!answer.ok) return;
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

  let stopLive = () => {};
  const follow = () => {
    stopLive();
    if (!document.documentElement.hasAttribute("data-live") || !window.EventSource) return;
    let source = null, retry = 0;
    const open = () => {
      source = new EventSource("/live?page=" + encodeURIComponent(location.pathname + location.search));
      source.addEventListener("marks", (event) => {
        say("on", "live");
        const marks = JSON.parse(event.data);
        const parts = [...document.querySelectorAll(".part")];
        const same = parts.length === Object.keys(marks).length
          && parts.every((part) => marks[part.id] === part.dataset.mark);
        if (!same) refresh();
      });
      source.addEventListener("parts", (event) => {
        say("on", "live");
        for (const [id, html] of Object.entries(JSON.parse(event.data))) {
          const part = document.getElementById(id);
          if (part) put(part, html, "");
        }
      });
      source.addEventListener("reload", refresh);
      source.addEventListener("beat", () => say("on", "live"));
      source.onerror = () => {
        say("off", "not connected");
        if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, 5000);
      };
    };
    stopLive = () => { clearTimeout(retry); source?.close(); };
    open();
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
      refresh();
      follow();
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

  // Follow logs: append lines as text, and keep only the last few thousand.
  const following = () => {
    const button = document.getElementById("follow"), log = document.getElementById("log");
    if (!button || !log || !window.EventSource) return;
    let source = null;
    const add = (className, from, text) => {
      const line = document.createElement("div");
      if (className) line.className = className;
      if (from) {
        const label = document.createElement("span");
        label.className = "from";
        label.textContent = from;
        line.append(label, " ");
      }
      line.append(text);
      log.append(line);
    };
    const take = (event) => {
      const end = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      const found = JSON.parse(event.data);
      for (const text of found.remarks) add("remark", "", text);
      for (const [from, text, level] of found.lines) add(level && "l-" + level, from, text);
      while (log.childElementCount > 5000) log.firstElementChild.remove();
      if (end) log.scrollTop = log.scrollHeight;
    };
    const stop = (text) => {
      source?.close();
      source = null;
      button.setAttribute("aria-pressed", "false");
      button.textContent = "Follow";
      if (text) add("remark", "", text);
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      if (source) return stop("");
      log.replaceChildren();
      button.setAttribute("aria-pressed", "true");
      button.textContent = "Stop";
      source = new EventSource(location.pathname + "/follow?" + new URLSearchParams(new FormData(button.form)));
      source.addEventListener("lines", take);
      source.addEventListener("end", (event) => { take(event); stop("The logs have ended."); });
      source.onerror = () => stop("The connection was lost.");
    });
    addEventListener("pagehide", () => source?.close());
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
  addEventListener("pagehide", () => stopLive());
  addEventListener("pageshow", (event) => { if (event.persisted) follow(); });
  start(document);
  setInterval(() => ages(document), 5000);
  const again = document.querySelector("[data-again]");
  if (again) setInterval(() => document.hidden || refresh(), 1000 * again.dataset.again);
  following();
  follow();
})();
