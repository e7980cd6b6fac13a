/* The page that a newcomer opens first: the state of the pool, its events, and the way to log in. */

import { begin, byId, element, moment, texted } from "/pages/page.js";
import { Problem, ask, maybeInside } from "/pages/pool.js";

const EVENTS_MAX = 20;

begin("welcome_title");
showState();
setInterval(showState, 5000);
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

function showEvent(event) {
  const { at, kind, body } = JSON.parse(event.data);
  const words = Object.entries(body).map(([name, value]) => `${name}: ${value}`).join(", ");
  byId("none")?.remove();
  byId("events").prepend(element("li", {}, element("strong", {}, kind), moment(at),
    element("span", { className: "soft wide" }, words)));
  while (byId("events").children.length > EVENTS_MAX) byId("events").lastChild.remove();
}
