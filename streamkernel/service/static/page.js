// The page: models, jobs and numbers of the service, requested every two seconds.

import { Card } from "/static/card.js";
import { Jobs } from "/static/jobs.js";
import { rates } from "/static/rates.js";
import { lead, ordered, places } from "/static/standings.js";

const REFRESH = 2000;
const TOKEN = "streamkernel.token";
const at = (id) => document.getElementById(id);
const cards = new Map();
let timer = null;
const jobs = "jobs" in document.body.dataset ? new Jobs(ask) : null;

export async function ask(path, options = {}) {
  const headers = new Headers(options.headers);
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return fetch(path, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(30000) });
}

function status(kind, text) {
  at("status").className = `status ${kind}`;
  if (at("status-text").textContent !== text) at("status-text").textContent = text;
}

function askForToken() {
  const given = sessionStorage.getItem(TOKEN) !== null;
  sessionStorage.removeItem(TOKEN);
  at("token-wrong").hidden = !given;
  at("token-form").hidden = false;
  for (const id of ["numbers", "models-section"]) at(id).hidden = true;
  jobs?.stop();
  status("", "token needed");
  at("token").focus();
}

at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, at("token").value.trim());
  at("token").value = "";
  at("token-form").hidden = true;
  refresh();
});

async function showModels(listed, stale) {
  const list = ordered(listed), ranked = places(listed);
  const names = new Set(list.map((model) => model.name));
  for (const [name, card] of cards) {
    if (!names.has(name)) {
      card.root.remove();
      cards.delete(name);
    }
  }
  let before = null;
  for (const model of list) {
    let card = cards.get(model.name);
    if (!card) {
      card = new Card(model.name, ask);
      cards.set(model.name, card);
    }
    // Move a card only if needed, so that a field with the focus keeps it.
    const place = before === null ? at("models").firstElementChild : before.nextElementSibling;
    if (place !== card.root) at("models").insertBefore(card.root, place);
    before = card.root;
    await card.update(model, ranked.get(model.name));
  }
  at("empty").hidden = list.length > 0 || stale !== null;
  for (const id of ["numbers", "models-section"]) at(id).hidden = false;
  const failing = list.filter((model) => model.error !== null).length;
  at("n-models").textContent = String(list.filter((model) => model.ready).length);
  const text = stale ? `New models cannot be read since ${new Date(1000 * stale.since).toLocaleString()}: ${stale.error.message}. The models are served as they last were.` : "";
  if (at("stale").textContent !== text) at("stale").textContent = text;
  at("stale").hidden = !stale;
  if (stale) status("troubled", "stale");
  else status(failing ? "troubled" : "live", failing ? `${failing} cannot be loaded` : "live");
  if (list.some((model) => model.ready)) at("lead").textContent = lead(list);
}

async function refresh() {
  clearTimeout(timer);
  try {
    const answer = await ask("/v1/models");
    if (answer.status === 401) return askForToken();
    if (!answer.ok) throw new Error(String(answer.status));
    const { models, stale } = await answer.json();
    await showModels(models, stale);
    jobs?.start();
    const counted = await ask("/metrics");
    if (counted.ok) {
      for (const [id, text] of Object.entries(rates(await counted.text()))) at(id).textContent = text;
    }
  } catch {
    status("troubled", "the service does not answer");
  }
  timer = setTimeout(refresh, document.hidden ? 5 * REFRESH : REFRESH);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  refresh();
  jobs?.wake();
});
refresh();
