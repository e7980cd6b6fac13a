/* The page that a newcomer opens first: the state of the pool, what it has for sale, its events, the way to log in. */

import { begin, byId, element, moment, say, texted, unit } from "/pages/page.js";
import { Problem, ask, maybeInside, send } from "/pages/pool.js";

const EVENTS_MAX = 20;

begin("welcome_title");
showState();
showSupply();
setInterval(showState, 5000);
setInterval(showSupply, 30000);
if (maybeInside()) await showWhoIsInside();
new EventSource("/api/v1/events?after=recent").onmessage = showEvent;

async function showWhoIsInside() {
  try {
    const { account } = await ask("GET", "/account");
    byId("address").textContent = account.address;
    byId("door").hidden = true;
    byId("inside").hidden = false;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;  // without an answer the page shows the way to log in
  }
}

async function showState() {
  let answer = null;
  try { answer = await (await fetch("/readyz")).json(); } catch { /* shown below */ }
  const words = answer === null ? "state_silent" : answer.ready ? "state_ready" : "state_not_ready";
  const dot = element("span", { className: `dot ${answer?.ready ? "good" : "bad"}` });
  byId("state").replaceChildren(dot, texted("span", words, {}, { version: answer?.version }));
  const stopped = Object.entries(answer?.stopped ?? {}).flatMap(([name, reason]) =>
    [texted("dt", "state_stopped"), texted("dd", "state_because", {}, { name, reason })]);
  const checks = Object.entries(answer?.checks ?? {}).flatMap(([name, outcome]) =>
    [element("dt", {}, name), element("dd", {}, outcome)]);
  byId("checks").replaceChildren(...stopped, ...checks);
}

/** What there is and what it costs, all owners together: a line for each model of device. */
async function showSupply() {
  let cluster, pricing, queue;
  try {
    const parts = ["cluster/status", "pricing", "queue"].map((part) => send("GET", `/marketplace/${part}`));
    [cluster, pricing, queue] = await Promise.all(parts);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    return say(byId("supply"), "supply_unknown");  // a pool without an operator shows nothing to strangers
  }
  say(byId("supply"), cluster.nodes ? "supply_now" : "supply_none", {
    ...cluster, gib: Math.round(cluster.memory_mib / 1024), gpu_gib: Math.round(cluster.gpu_memory_mib / 1024),
  });
  byId("prices").replaceChildren(...pricing.items.map((price) => priceItem(price, pricing.currency)));
  const waiting = Object.values(queue.waiting).reduce((sum, count) => sum + count, 0);
  say(byId("queue"), "supply_queue", { waiting, placed: queue.placed });
}

function priceItem({ model, nodes, low, median, high }, currency) {
  const name = model === "cpu" ? texted("strong", "supply_cpu") : element("strong", {}, model);
  const words = low === high ? "supply_price" : "supply_prices";
  return element("li", {}, name, texted("span", words, {}, { median, low, high, currency: unit(currency) }),
    texted("span", "supply_nodes", { className: "soft wide" }, { nodes }));
}

function showEvent(event) {
  const { at, kind, sentence } = JSON.parse(event.data);
  byId("none")?.remove();
  byId("events").prepend(element("li", { title: kind }, element("span", { lang: "en" }, sentence), moment(at)));
  while (byId("events").children.length > EVENTS_MAX) byId("events").lastChild.remove();
}
