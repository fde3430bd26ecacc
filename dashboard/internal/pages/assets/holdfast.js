// The script of the pages. They are complete without it: it follows their links
// and forms without a reload, asks for the page again when the stream says that
// something happened, and puts in what differs. No HTML is made here of data: what
// is shown came through the server's templates, or is set as text.

const body = document.body;
const prefix = body.dataset.prefix;
document.documentElement.classList.add("js");

// segment is an id in an address, as client.EscapeID makes it: a browser takes "."
// and ".." for directories, whatever their encoding.
const segment = (id) => (/^~*(\.\.?|history)$/.test(id) ? "~" + id : encodeURIComponent(id));

// ---- the page, put in place ----

// morph makes the children of `old` those of `now`, changing as little as it can:
// focus, selection and scroll positions stay. data-key tells elements apart;
// data-keep are ours and stay.
function morph(old, now) {
  const keyed = new Map();
  for (const c of old.children) if (c.dataset.key) keyed.set(c.dataset.key, c);
  let at = old.firstChild;
  for (const n of [...now.childNodes]) {
    while (at && at.nodeType === 1 && "keep" in at.dataset && !(n.nodeType === 1 && "keep" in n.dataset)) at = at.nextSibling;
    const key = n.nodeType === 1 ? n.dataset.key : undefined;
    const known = key && keyed.get(key);
    if (known && known !== at) old.insertBefore(known, at);
    const have = known || at;
    if (have && have.nodeType === n.nodeType && have.nodeName === n.nodeName && (known || !(have.dataset?.key)) ) {
      sync(have, n);
      at = have.nextSibling;
    } else {
      old.insertBefore(document.importNode(n, true), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    if (!(at.nodeType === 1 && "keep" in at.dataset)) at.remove();
    at = next;
  }
}

function sync(have, n) {
  if (have.nodeType !== 1) {
    if (have.data !== n.data) have.data = n.data;
    return;
  }
  if ("keep" in have.dataset) return;
  for (const a of [...have.attributes]) if (!n.hasAttribute(a.name) && !(a.name === "open" && have.matches("details")) && !(a.name === "class" && have.classList.contains("cur"))) have.removeAttribute(a.name);
  for (const a of n.attributes) if (have.getAttribute(a.name) !== a.value) have.setAttribute(a.name, a.value);
  // What somebody is typing stays.
  if (have.matches("textarea, input:not([type=hidden])")) {
    if (have.type === "checkbox" && have.checked !== n.checked && !dirty.has(have)) have.checked = n.checked;
    return;
  }
  if (have.matches("select")) { if (!dirty.has(have)) { morph(have, n); have.value = n.value; } return; }
  morph(have, n);
}
const dirty = new WeakSet();
addEventListener("input", (e) => dirty.add(e.target));

let address = location.href;
let pending = null;

// load fetches a page of ours and puts it in place. hold keeps new rows of a list
// back.
async function load(url, { hold = false, top = false } = {}) {
  if (hold && pending && !pending.hold) return (again = true); // somebody is on the way elsewhere
  pending?.abort();
  const mine = (pending = new AbortController());
  mine.hold = hold;
  // What somebody has asked for and waits for; a repaint is nobody's wait.
  const slow = hold ? 0 : setTimeout(() => document.querySelector("main").setAttribute("aria-busy", "true"), 200);
  try {
    const res = await fetch(url, { headers: { Accept: "text/html" }, signal: mine.signal });
    const doc = new DOMParser().parseFromString(await res.text(), "text/html");
    const main = doc.querySelector("main");
    if (!main) throw new Error(`The server answered ${res.status}`);
    if (!res.ok && hold) throw new Error(doc.querySelector("[role=alert] p")?.textContent || `The server answered ${res.status}`);
    if (hold) holdRows(main);
    document.title = doc.title;
    for (const sel of [".top .nav", "main"]) {
      const a = document.querySelector(sel), b = doc.querySelector(sel);
      if (a && b) morph(a, b);
    }
    if (body.dataset.stream !== doc.body.dataset.stream) {
      body.dataset.stream = doc.body.dataset.stream;
      body.toggleAttribute("data-ended", doc.body.hasAttribute("data-ended"));
      listen();
    }
    address = url;
    decorate();
    if (top) scrollTo(0, 0);
    return true;
  } catch (err) {
    if (err.name === "AbortError") return false;
    if (!hold) toast(unreached(err) ? `The server does not answer (${err.message}). What is shown stays, data of ${seenAt()}.` : err.message, "Not opened");
    throw err;
  } finally {
    clearTimeout(slow);
    document.querySelector("main").removeAttribute("aria-busy");
    if (pending === mine) pending = null;
  }
}

// holdRows keeps rows that are new behind a button, so that a list does not move
// under the pointer; rows that are shown are brought up to date where they stand.
function holdRows(main) {
  const have = document.querySelector("[data-hold]"), now = main.querySelector("[data-hold]");
  if (!have || !now || !have.children.length) return;
  const shown = new Map([...have.children].map((tr) => [tr.dataset.key, tr]));
  const rows = new Map([...now.children].map((tr) => [tr.dataset.key, tr]));
  const newer = [];
  for (const tr of now.children) {
    if (shown.has(tr.dataset.key)) break;
    newer.push(tr);
  }
  now.replaceChildren(...[...shown].map(([key, tr]) => rows.get(key) || tr.cloneNode(true)));
  if (!newer.length) return;
  const b = document.createElement("button");
  b.className = "newer";
  b.type = "button";
  b.dataset.newer = "";
  b.textContent = `${newer.length} newer`;
  now.closest("table").before(b);
}

// ---- links and forms ----

function soft(url, options) {
  history.pushState(null, "", url);
  return load(url, options).catch(() => {});
}

// A server that does not answer is no reason to give up what is shown.
addEventListener("popstate", () => load(location.href).catch((err) => { if (!unreached(err)) location.reload(); }));

// unreached reports whether a request came to no answer at all.
const unreached = (err) => err instanceof TypeError;

// follow leaves for another page once the server answers: the browser's own page of
// an error would take the place of what is shown.
async function follow(url) {
  try {
    await fetch(url, { method: "HEAD" });
    location.assign(url);
  } catch (err) {
    toast(`The server does not answer (${err.message}). What is shown stays, data of ${seenAt()}.`, "Not opened");
  }
}

addEventListener("click", (e) => {
  if (e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey) return;
  if (e.target.closest("[data-newer]")) return void load(address);
  if (e.target.closest("[data-copy]")) return void copy(e.target.closest("section").querySelector("pre"));
  const a = e.target.closest("a[href]");
  if (!a) return;
  if (!("soft" in a.dataset)) {
    const here = a.hash && a.pathname === location.pathname && a.search === location.search;
    if (!live.classList.contains("bad") || here || a.target || a.origin !== location.origin || a.hasAttribute("download")) return;
    e.preventDefault();
    return void follow(a.href);
  }
  e.preventDefault();
  soft(a.href).then(() => focusPanel());
});

// copy puts a text into the clipboard, which browsers allow on safe addresses alone.
function copy(pre) {
  navigator.clipboard.writeText(pre.textContent).then(() => toast("Copied.", "", "", true), (err) => toast(err.message, "Not copied"));
}

addEventListener("submit", (e) => {
  const form = e.target;
  if (form.dataset.act !== undefined) {
    e.preventDefault();
    return void act(form, e.submitter);
  }
  if (form.dataset.soft === undefined) return;
  e.preventDefault();
  soft(formURL(form, e.submitter)).then(() => focusPanel());
});

function formURL(form, submitter) {
  const url = new URL(form.getAttribute("action"), location.href);
  const data = new FormData(form, submitter);
  // A button that opens a panel keeps what the address says besides.
  if (submitter?.name === "panel") for (const [k, v] of new URL(address, location.href).searchParams) if (!data.has(k) && !["panel", "at", "from", "reset", "force", "planned", "done", "edit"].includes(k)) url.searchParams.append(k, v);
  for (const [k, v] of data) if (v !== "") url.searchParams.append(k, v);
  return url.href;
}

// An act on many runs goes on by itself, slice by slice, until it is stopped: all
// of them were confirmed at once.
function goOn() {
  const form = document.querySelector("form[data-go-on]");
  if (!form) return;
  const next = setTimeout(() => form.requestSubmit(), 600);
  form.querySelector("[data-stop]").addEventListener("click", () => clearTimeout(next));
}
goOn();

// A plan is made anew when one of its options changes.
addEventListener("change", (e) => {
  const form = e.target.closest("form[data-plan]");
  if (form) soft(formURL(form));
});

function focusPanel() {
  const p = document.querySelector("[data-panel] h2");
  if (p && document.activeElement?.closest("[data-panel]") === null) p.focus();
}

// act sends a form to the API as JSON. A refusal is shown as the server says it.
async function act(form, submitter) {
  // Values are JSON texts that go as they were typed: read and written by a script,
  // a large number would be another one.
  const fields = new Map(), many = new Map();
  let url = form.dataset.act;
  for (const el of form.elements) {
    if (!el.name || el.tagName === "BUTTON") continue;
    const { kind } = el.dataset, at = el.name.indexOf(":");
    if (kind !== "jsons" && el.value === "") continue;
    if (kind === "json" || kind === "jsons") {
      const key = el.name.slice(at + 1); // one of several: "edits:charge"
      try { JSON.parse(el.value); } catch {
        el.focus();
        return toast(`The result${kind === "jsons" ? " of " + key : ""} is not JSON: a text needs quotation marks around it, and nothing is null.`, "Not done");
      }
      if (kind === "json") fields.set(el.name, el.value);
      else many.set(el.name.slice(0, at), [...(many.get(el.name.slice(0, at)) || []), JSON.stringify(key) + ":" + el.value]);
    } else fields.set(el.name, kind === "number" ? String(Number(el.value)) : kind === "flag" ? "true" : JSON.stringify(el.value));
  }
  for (const [name, values] of many) fields.set(name, "{" + values.join() + "}");
  const json = "{" + [...fields].map(([name, value]) => JSON.stringify(name) + ":" + value).join() + "}";
  if (form.dataset.verdict !== undefined) url += submitter.value;
  const label = (submitter || form.querySelector("button")).textContent.trim();
  const buttons = form.querySelectorAll("button:not([hidden])");
  for (const b of buttons) b.disabled = true;
  try {
    const res = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json" }, body: json });
    const answer = await res.json().catch(() => ({}));
    if (!res.ok) return toast(answer.message || `The server answered ${res.status}`, `${label}: not done`, answer.error?.next);
    toast(answer.message || `${label}: done.`, "", "", true);
    if (form.dataset.open !== undefined && answer.run_id) return void soft(`${prefix}/runs/${segment(answer.run_id)}`, { top: true });
    await soft(document.querySelector("[data-close]")?.href || address, { top: form.closest("[data-panel]") !== null });
  } catch (err) {
    // The request may have come through, and its answer not.
    toast(`The server did not answer (${err.message}). It may have been done all the same: look at the run before you do it again.`, `${label}: it is not known whether it was done`);
  } finally {
    for (const b of buttons) b.disabled = false;
  }
}

// visible writes out what acts on a reader instead of being seen, as the server does
// in its pages: controls, changes of direction, what has no width.
const visible = (text) => String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, (c) =>
  /[\n\t\r\u200d]|\p{M}/u.test(c) ? c : [...Array(c.length)].map((_, i) => "\\u" + c.charCodeAt(i).toString(16).padStart(4, "0")).join(""));

// toast shows a message. Errors stay until they are dismissed.
function toast(message, title = "Not done", next = "", ok = false) {
  [message, next] = [visible(message), visible(next)];
  const t = document.createElement("div");
  t.className = ok ? "toast ok" : "toast";
  t.setAttribute("role", ok ? "status" : "alert");
  const icon = symbol(ok ? "done" : "recoverable", ok ? "c-done" : "c-fail");
  const b = document.createElement("b");
  b.textContent = ok ? message : title;
  const close = document.createElement("button");
  close.type = "button";
  close.setAttribute("aria-label", "Dismiss");
  close.textContent = "×";
  close.onclick = () => t.remove();
  t.append(icon, b, close);
  for (const text of ok ? [] : [message, next]) {
    if (!text) continue;
    const p = document.createElement("p");
    p.textContent = text;
    t.append(p);
  }
  document.getElementById("toasts").append(t);
  if (ok) setTimeout(() => t.remove(), 6000);
}

function symbol(name, cls) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg"), use = document.createElementNS(ns, "use");
  svg.setAttribute("class", "i " + cls);
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", "#i-" + name);
  svg.append(use);
  return svg;
}

// ---- live ----

const live = document.querySelector("[data-live]");
let source = null, timer = 0, painted = 0, failed = 0, said = "";

function say(text, cls) {
  if (said === text) return;
  said = text;
  live.className = "live " + cls;
  live.querySelector("span").textContent = text;
}

// seenAt is when the server was heard of last.
const seenAt = () => new Date(painted + performance.timeOrigin).toLocaleTimeString();

// changed paints again, ten times a second at most, and less often where a paint
// takes long. What happens during a paint is in the next one.
let took = 0, again = false;
function changed() {
  again = true;
  if (!timer) timer = setTimeout(paint, Math.max(Math.max(100, 4 * took) - (performance.now() - painted), 0));
}

async function paint() {
  const begin = performance.now();
  again = false;
  try {
    if (!document.hidden) await load(address, { hold: true });
    failed = 0;
  } catch {
    // What is shown stays, and says how old it is.
    say(`Data of ${seenAt()}; trying again`, "bad");
    await new Promise((done) => setTimeout(done, Math.min(1000 * 2 ** failed++, 30000)));
    again = true;
  }
  if (!failed) painted = performance.now();
  took = performance.now() - begin;
  timer = 0;
  if (again) changed();
}

function listen(was = "") {
  source?.close();
  source = null;
  if (!body.dataset.stream) return say("ended" in body.dataset ? "Final" : "As loaded", "off");
  let nobody = was;
  source = new EventSource(body.dataset.stream);
  source.onopen = () => { say(nobody || "Live", nobody ? "off" : ""); changed(); };
  source.onerror = () => say((source.readyState === 2 ? "Not connected" : "Reconnecting") + ", data of " + seenAt(), "bad");
  for (const name of ["event", "run", "counts", "approval", "answered", "queues", "schedules"]) {
    source.addEventListener(name, changed);
  }
  source.addEventListener("executor", (e) => {
    const d = JSON.parse(e.data);
    nobody = d.executed === false && d.nobody ? "Nobody executes this run" : "";
    say(nobody || "Live", nobody ? "off" : "");
    changed();
  });
  source.addEventListener("problem", () => say("Reconnecting", "bad"));
  source.addEventListener("end", (e) => {
    const d = JSON.parse(e.data);
    changed();
    if (d.resumable) return; // it failed, and the stream goes on
    source?.close();
    source = null;
    // Nobody executes the run: somebody may later, so the page asks again.
    if (d.executed === false || document.querySelector("[data-failed]")) setTimeout(() => source || listen(nobody), 2000);
  });
}
addEventListener("visibilitychange", () => { if (!document.hidden) changed(); });
// A page that is left must not hold one of the browser's connections.
addEventListener("pagehide", () => source?.close());
addEventListener("pageshow", (e) => { if (e.persisted) listen(); });
// Ages grow without events.
setInterval(() => { if (!document.hidden && body.dataset.stream) changed(); }, 15000);

// ---- long timelines: only what is seen is in the page ----

const chunk = 200;
const seer = new IntersectionObserver((entries) => {
  for (const e of entries) e.isIntersecting ? fill(e.target) : empty(e.target);
}, { rootMargin: "800px" });

function ghosts() {
  const table = document.querySelector("table[data-rows]");
  if (!table) return;
  const total = Number(table.dataset.total), have = table.querySelectorAll("tbody.chunk");
  const want = Math.max(0, Math.ceil((total - chunk) / chunk));
  for (let i = want; i < have.length; i++) have[i].remove();
  for (let i = have.length; i < want; i++) {
    const tb = document.createElement("tbody");
    tb.className = "chunk";
    tb.dataset.keep = "";
    tb.dataset.from = (i + 1) * chunk;
    table.append(tb);
    ghost(tb, Math.min(chunk, total - (i + 1) * chunk) * 33);
    seer.observe(tb);
  }
  if (table.dataset.selected) reach(Number(table.dataset.selected), true);
  for (const tb of have) if (tb.dataset.full && tb.dataset.full !== stamp(table)) fill(tb, true);
}

const stamp = (table) => table.dataset.rows + " " + table.dataset.total;

function ghost(tb, height) {
  const tr = document.createElement("tr"), td = document.createElement("td");
  tr.className = "ghost";
  td.colSpan = 3;
  td.style.height = height + "px";
  tr.append(td);
  tb.replaceChildren(tr);
  delete tb.dataset.full;
}

async function fill(tb, again) {
  if (tb.dataset.full && !again) return;
  const table = tb.closest("table"), at = stamp(table);
  tb.dataset.full = at;
  const res = await fetch(`${table.dataset.rows}&from=${tb.dataset.from}&n=${chunk}`, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!res?.ok || tb.dataset.full !== at) return void (delete tb.dataset.full);
  // Parsed as a document of its own: nothing in it runs.
  const doc = new DOMParser().parseFromString("<table><tbody>" + (await res.text()) + "</tbody></table>", "text/html");
  if (tb.dataset.full === at) tb.replaceChildren(...[...doc.querySelector("tbody").children].map((tr) => document.importNode(tr, true)));
}

function empty(tb) {
  if (!tb.dataset.full || "held" in tb.dataset) return;
  ghost(tb, tb.getBoundingClientRect().height);
}

// reach puts the row with this number into the page, and returns it. A row that is
// held stays there, wherever somebody looks.
async function reach(n, hold) {
  const table = document.querySelector("table.tl[data-total]");
  const row = () => table.querySelector(`tr[aria-rowindex="${n}"]`);
  if (row()) return row();
  const tb = [...table.querySelectorAll("tbody.chunk")].findLast((t) => Number(t.dataset.from) < n);
  if (tb && hold) tb.dataset.held = "";
  if (tb) await fill(tb);
  for (let i = 0; tb && !row() && i < 40; i++) await new Promise((done) => setTimeout(done, 50)); // asked for already
  return row();
}

// nextFailure goes to the next call that failed, wherever it is. Of a page without a
// timeline the rows themselves say it.
async function nextFailure() {
  const table = document.querySelector("table.tl[data-failures]");
  if (!table) return move(1, (a) => a.closest("tr").querySelector("th .c-fail, .st.fail"));
  const from = document.activeElement?.closest?.("tr[aria-rowindex]") || table.querySelector("[aria-selected=true]");
  const after = Number(from?.getAttribute("aria-rowindex") || 0);
  const n = table.dataset.failures.split(",").map(Number).find((x) => x > after);
  const a = n && (await reach(n))?.querySelector("a[data-nav]");
  a?.focus();
  a?.scrollIntoView({ block: "center" });
}

// ---- keyboard ----

const keysOn = () => localStorage.getItem("holdfast.keys") !== "off";
const links = () => [...document.querySelectorAll("a[data-nav]")].filter((a) => a.offsetParent);

function move(by, match) {
  const all = links();
  let i = all.indexOf(document.activeElement);
  if (i < 0) i = all.findIndex((a) => a.closest("[aria-selected=true]"));
  for (let n = i + by; n >= 0 && n < all.length; n += by) {
    if (match && !match(all[n])) continue;
    all[n].focus();
    all[n].scrollIntoView({ block: "nearest" });
    return;
  }
}

addEventListener("keydown", (e) => {
  if (e.key === "Escape") {
    const t = document.querySelector("#toasts .toast button"), c = document.querySelector("[data-close]");
    if (t) t.click(); else if (c) c.click(); else if (e.target.matches("input")) e.target.blur();
    return;
  }
  if (e.metaKey || e.ctrlKey || e.altKey || e.target.matches("input, textarea, select") || document.querySelector("dialog[open]") || !keysOn()) return;
  const row = document.activeElement?.closest?.("tr");
  const fold = (open) => { const f = row?.querySelector(".fold"); if (f && f.classList.contains("open") !== open) f.click(); };
  const keys = {
    "/": () => (document.querySelector("[data-add]") || document.querySelector("[data-find]")).focus(),
    j: () => move(1), k: () => move(-1), ArrowDown: row && (() => move(1)), ArrowUp: row && (() => move(-1)),
    ArrowRight: row && (() => fold(true)), ArrowLeft: row && (() => fold(false)),
    f: () => void nextFailure(),
    b: () => pressLink("This branch only"), "+": () => pressLink("Zoom in"), "-": () => pressLink("Whole time"),
    r: () => document.querySelector("button[name=panel][value=resume]")?.click(),
    "?": () => help(),
  };
  if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
});

function pressLink(label) {
  [...document.querySelectorAll("a[data-soft].btn.sm")].find((a) => a.textContent === label)?.click();
}

function help() {
  let d = document.querySelector("dialog.help");
  if (!d) {
    d = document.createElement("dialog");
    d.className = "help";
    d.setAttribute("aria-label", "Keyboard");
    const h = document.createElement("h2");
    h.textContent = "Keyboard";
    const dl = document.createElement("dl");
    for (const [k, what] of [["/", "find"], ["j k", "next, previous row"], ["← →", "fold, unfold"], ["Enter", "open or select"], ["f", "next failure"], ["b", "this branch only"], ["+ −", "zoom in to the selected row, out"], ["r", "what Resume would do"], ["Esc", "close"], ["?", "this list"]]) {
      const dt = document.createElement("dt"), dd = document.createElement("dd"), kbd = document.createElement("kbd");
      kbd.textContent = k;
      dt.append(kbd);
      dd.textContent = what;
      dl.append(dt, dd);
    }
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.className = "ck";
    box.checked = keysOn();
    box.onchange = () => localStorage.setItem("holdfast.keys", box.checked ? "on" : "off");
    label.append(box, " Keys are on");
    const p = document.createElement("form");
    p.method = "dialog";
    const close = document.createElement("button");
    close.className = "btn sm";
    close.textContent = "Close";
    p.append(close);
    d.append(h, dl, label, p);
    body.append(d);
  }
  d.showModal();
}

// ---- theme ----

const themes = ["system", "light", "dark"];
function theme(t) {
  const root = document.documentElement;
  t === "system" ? delete root.dataset.theme : (root.dataset.theme = t);
  document.querySelector("[data-theme-button]").setAttribute("aria-label", "Theme: " + t);
}
theme(localStorage.getItem("holdfast.theme") || "system");
document.querySelector("[data-theme-button]").onclick = () => {
  const next = themes[(themes.indexOf(localStorage.getItem("holdfast.theme") || "system") + 1) % 3];
  localStorage.setItem("holdfast.theme", next);
  theme(next);
};

// decorate shows what needs the script, after each page.
function decorate() {
  for (const el of document.querySelectorAll("[data-theme-button], [data-help], [data-keys]")) el.hidden = false;
  if (navigator.clipboard) for (const el of document.querySelectorAll("[data-copy]")) el.hidden = false;
  ghosts();
  ticked();
}

// ticked says how many rows are ticked. An act on them needs one.
function ticked() {
  const form = document.getElementById("ticked"), all = document.querySelector("[data-tick-all]");
  if (!form) return;
  const boxes = ticks(), n = boxes.filter((b) => b.checked).length;
  const text = form.querySelector("[data-ticked]");
  text.hidden = all.hidden = false;
  text.textContent = n ? n + " ticked" : "";
  for (const b of form.querySelectorAll("button")) b.disabled = n === 0;
  all.checked = n > 0 && n === boxes.length;
  all.indeterminate = n > 0 && n < boxes.length;
}
const ticks = () => [...document.querySelectorAll("input[name=run][form=ticked]")];
addEventListener("change", (e) => {
  if (e.target.matches("[data-tick-all]")) for (const b of ticks()) { b.checked = e.target.checked; dirty.add(b); }
  ticked();
});
// A menu closes when something else is touched.
addEventListener("click", (e) => {
  for (const d of document.querySelectorAll("details.menu[open]")) if (!d.contains(e.target) || e.target.closest(".pop a, .pop button")) d.open = false;
});
document.querySelector("[data-help]").onclick = help;
decorate();
listen();
body.dataset.ready = "";
