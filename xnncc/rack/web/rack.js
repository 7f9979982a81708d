// The rack's page: what the broker says, drawn. Everything it is told is put in as text, never as HTML.
import { fillChart, makeChart } from "./charts.js";
import { ago, clock, left, number, seconds } from "./words.js";

const POLL_MS = 5000, SLOW_MS = 30000, EVENT_MS = 1000, LONGEST_WAIT_MS = 30000;
const STATES = ["free", "busy", "cooling", "offline", "quarantined"]; // who needs someone comes first
const POINTS = 720, MOST_JOBS = 40;
const byId = (id) => document.getElementById(id);
const list = (value) => (Array.isArray(value) ? value : []);
const table = (value) => (value && typeof value === "object" ? value : {});
const text = (value) => (value === null || value === undefined ? "" : String(value));

const histories = new Map(); // serial -> points of its curves, or null while they are fetched
let token = sessionStorage.getItem("token") || "";
let socket = null, tries = 0, timer = 0, pending = false, running = false, session = 0;
let isAdmin = true; // until the broker says no

// ---- asking the broker

class Refused extends Error {}

async function ask(path) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
  if (answer.status === 401) throw new Refused("The broker does not know this token.");
  if (!answer.ok) throw new Error(`the broker answered ${answer.status}`);
  return answer.json();
}

async function refresh() {
  if (running) { pending = true; return; }
  running = true;
  const mine = session;
  clearTimeout(timer);
  try {
    const [devices, jobs, errors] = await Promise.all([ask("/v1/devices"), ask("/v1/jobs"), ask("/v1/errors")]);
    const audit = isAdmin ? await ask("/v1/audit?count=50").catch(() => null) : null;
    if (mine === session) {
      isAdmin = audit !== null;
      const lines = list(audit?.audit);
      show(list(devices.devices), list(jobs.jobs), list(errors.errors), lines);
    }
  } catch (error) {
    if (mine === session) {
      if (error instanceof Refused) leave(error.message);
      else say("lost", `no answer since ${clock(Date.now() / 1000)}, trying again`);
    }
  }
  running = false;
  if (!token) return;
  const wait = pending ? EVENT_MS : document.body.dataset.link === "live" ? SLOW_MS : POLL_MS;
  pending = false;
  timer = setTimeout(refresh, wait);
}

function listen() {
  const mine = session;
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v1/events`);
  socket.onopen = () => socket.send(JSON.stringify({ token }));
  socket.onmessage = (message) => {
    if (mine !== session) return;
    let type = "";
    try { type = table(JSON.parse(message.data)).type; } catch { return; }
    if (type === "hello") { tries = 0; say("live", "live"); }
    if (!running) { clearTimeout(timer); timer = setTimeout(refresh, EVENT_MS); } else pending = true;
  };
  socket.onclose = (event) => {
    if (mine !== session) return;
    if (event.code === 4401) { leave("The broker does not know this token."); return; }
    if (document.body.dataset.link === "live") {
      say("polling", "asking every 5 s");
      clearTimeout(timer);
      timer = setTimeout(refresh, EVENT_MS);
    }
    const wait = Math.min(1000 * 2 ** tries++, LONGEST_WAIT_MS);
    setTimeout(() => { if (mine === session) listen(); }, wait * (0.75 + Math.random() / 2));
  };
}

function say(link, words) {
  document.body.dataset.link = link;
  byId("link").textContent = words;
}

function enter() {
  session += 1;
  tries = 0;
  isAdmin = true;
  byId("enter").hidden = true;
  byId("leave").hidden = byId("rack").hidden = false;
  say("polling", "asking the broker");
  refresh();
  listen();
}

function leave(why) {
  session += 1;
  token = "";
  sessionStorage.removeItem("token");
  clearTimeout(timer);
  socket?.close();
  histories.clear();
  for (const id of ["tiles", "device-cards", "job-cards", "queue-rows", "error-lines", "audit-lines"]) byId(id).replaceChildren();
  byId("leave").hidden = byId("rack").hidden = true;
  byId("enter").hidden = false;
  byId("refused").textContent = why;
  say("signed-out", "signed out");
  byId("token").focus();
}

// ---- drawing

function show(devices, jobs, errors, audit) {
  if (document.body.dataset.link === "lost") say(socket?.readyState === WebSocket.OPEN ? "live" : "polling", "connected again");
  if (document.body.dataset.link === "polling") say("polling", `asking every 5 s, last ${clock(Date.now() / 1000)}`);
  if (document.body.dataset.link === "live") say("live", "live");
  const open = jobs.filter((job) => job.state === "queued" || job.state === "running");
  const waiting = (job) => Number(table(job.batches).queued) || 0;
  const batches = open.reduce((sum, job) => sum + waiting(job), 0);
  const tiles = STATES.map((state) => [state, devices.filter((device) => device.state === state).length]);
  sync(byId("tiles"), [...tiles, ["jobs at work", open.length], ["batches waiting", batches]], ([name]) => name, (item) => {
    part(item, "b"), item.append(document.createTextNode(""));
  }, (item, [name, count]) => {
    item.firstChild.textContent = number(count);
    item.lastChild.textContent = name;
  });
  const order = (device) => STATES.indexOf(device.state);
  devices.sort((a, b) => order(b) - order(a) || nameOf(a).localeCompare(nameOf(b)));
  sync(byId("device-cards"), devices, (device) => text(device.serial), makeDevice, fillDevice);
  byId("no-devices").hidden = devices.length > 0;
  const rank = (job) => (job.state === "running" ? 0 : job.state === "queued" ? 1 : 2);
  jobs.sort((a, b) => rank(a) - rank(b) || (b.created || 0) - (a.created || 0));
  sync(byId("job-cards"), jobs.slice(0, MOST_JOBS), (job) => text(job.job), makeJob, fillJob);
  byId("no-jobs").hidden = jobs.length > 0;
  const queue = open.filter((job) => waiting(job) > 0).sort((a, b) => b.priority - a.priority || a.created - b.created);
  sync(byId("queue-rows"), queue, (job) => text(job.job), (row) => {
    for (let n = 0; n < 6; n += 1) part(row, "td", n > 1 ? "num" : "");
  }, (row, job) => {
    [job.name, job.key, job.priority, job.weight, waiting(job), table(job.batches).running].forEach((value, n) => { row.cells[n].textContent = text(value); });
  }, "tr");
  byId("queue-card").hidden = queue.length === 0;
  byId("no-queue").hidden = queue.length > 0;
  sync(byId("error-lines"), errors, (_, n) => `${n}`, makeLine, (item, error) => {
    const who = [error.serial || error.device, error.batch ? `batch ${error.batch}` : ""].map(text).filter(Boolean);
    const what = [error.state, error.reason, error.rung, error.outcome, error.words].map(text).filter(Boolean);
    fillLine(item, error.at, who.join(", "), what.join(": "));
  });
  byId("no-errors").hidden = errors.length > 0;
  byId("audit-section").hidden = !isAdmin;
  sync(byId("audit-lines"), audit, (_, n) => `${n}`, makeLine, (item, line) => {
    fillLine(item, line.at, line.who, `${text(line.what)}: ${text(line.outcome)}`);
  });
  document.body.dataset.shown = `${devices.length} ${jobs.length} ${errors.length} ${audit.length}`;
}

/** Make the children of `parent` those of `items`, in their order; a child that stays keeps its place in the focus. */
function sync(parent, items, key, make, fill, tag = "li") {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  items.forEach((item, n) => {
    const name = key(item, n);
    let child = known.get(name);
    known.delete(name);
    if (!child) {
      child = document.createElement(tag);
      child.dataset.key = name;
      make(child, item);
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    fill(child, item);
  });
  for (const child of known.values()) child.remove();
}

function part(parent, tag, name = "") {
  const child = document.createElement(tag);
  if (name) child.className = name;
  parent.append(child);
  return child;
}

function makeHead(item) {
  const head = part(item, "div", "head");
  part(head, "b");
  part(head, "span", "state");
  part(item, "p", "soft");
  part(item, "p", "reason");
}

function fillHead(item, name, state, facts, reason) {
  item.querySelector(".head b").textContent = name;
  const badge = item.querySelector(".state");
  badge.textContent = badge.dataset.state = state;
  item.querySelector(".soft").textContent = facts.filter(Boolean).join(" · ");
  item.querySelector(".reason").textContent = reason;
}

function makeDevice(item) {
  makeHead(item);
  const charts = part(item, "div", "charts");
  charts.append(makeChart("celsius"), makeChart("khz"));
}

function nameOf(device) {
  return text(device.name || device.serial);
}

function fillDevice(item, device) {
  const reading = table(device.reading), battery = reading.battery_percent;
  fillHead(item, nameOf(device), text(device.state), [
    device.key, device.name ? device.serial : "", device.system, Number.isFinite(battery) ? `battery ${number(battery)} %` : "",
    reading.throttled ? "throttled" : "", device.faults ? `${number(device.faults)} faults in a row` : "",
  ].map(text), text(device.reason));
  const points = curves(text(device.serial), reading);
  const [warm, fast] = item.querySelectorAll("figure");
  fillChart(warm, "Temperature", points.map((p) => [p.at, p.celsius]), (value) => `${number(value, 1)} °C`, ago);
  fillChart(fast, "Frequency", points.map((p) => [p.at, p.khz]), (value) => `${number(value / 1e6, 2)} GHz`, ago);
}

/** Return a device's readings: those the broker kept, fetched once, and what it said since. */
function curves(serial, reading) {
  if (!histories.has(serial)) {
    histories.set(serial, null);
    ask(`/v1/devices/${encodeURIComponent(serial)}/history`).then((answer) => {
      histories.set(serial, list(answer.readings).slice(-POINTS));
      refresh();
    }).catch(() => histories.delete(serial));
  }
  const points = histories.get(serial);
  if (points && Number.isFinite(reading.at) && !(reading.at <= points.at(-1)?.at)) {
    points.push(reading);
    if (points.length > POINTS) points.shift();
  }
  return points || [];
}

function makeJob(item) {
  makeHead(item);
  part(item, "progress");
  item.append(makeChart("best"));
}

function fillJob(item, job) {
  const progress = table(job.progress), batches = table(job.batches);
  const isOpen = job.state === "running" || job.state === "queued";
  fillHead(item, text(job.name), text(job.state), [
    job.owner, `wants ${text(job.key)}`, `priority ${text(job.priority)}`,
    isOpen ? `${number(job.devices)} devices fit` : "", batches.failed ? `${number(batches.failed)} batches failed` : "",
    Number.isFinite(job.used_s) ? `${seconds(job.used_s)} of devices used` : "",
  ].map(text), [progress.text, isOpen ? left(progress.left_s ?? job.left_s) : ""].map(text).filter(Boolean).join(" · "));
  const bar = item.querySelector("progress");
  bar.hidden = !(isOpen && progress.total > 0);
  if (!bar.hidden) {
    bar.max = progress.total;
    bar.value = Math.min(Number(progress.done) || 0, progress.total);
    bar.setAttribute("aria-label", `${number(progress.done)} of ${number(progress.total)}`);
  }
  const curve = list(progress.curve).filter((point) => Array.isArray(point));
  const figure = item.querySelector("figure");
  figure.hidden = curve.length === 0;
  fillChart(figure, "Best so far", curve, (value) => `${number(value, 1)} ${text(progress.unit)}`, ago, true);
}

function makeLine(item) {
  part(item, "time"), part(item, "b"), part(item, "span");
}

function fillLine(item, at, who, words) {
  const [time, name, rest] = item.children;
  time.textContent = clock(at);
  name.textContent = text(who);
  rest.textContent = text(words);
}

byId("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  byId("token").value = "";
  if (!token) return;
  sessionStorage.setItem("token", token);
  enter();
});
byId("leave").addEventListener("click", () => leave(""));
if (token) enter();
else leave("");
