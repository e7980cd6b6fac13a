/* Visits: the sessions of an account, which can be ended, and the history of logins. */

import { byId, element, moment, tell, text, texted, whenPressed } from "/pages/page.js";
import { ask } from "/pages/pool.js";

const BROWSERS = { Edg: "Edge", OPR: "Opera", Firefox: "Firefox", Chrome: "Chrome", Safari: "Safari" };
const SYSTEMS = {
  Android: "Android", iPhone: "iPhone", iPad: "iPad", Windows: "Windows", "Mac OS": "macOS", Linux: "Linux",
};
const AT_ONCE = 5;

let after = null;

whenPressed(byId("end-others"), async () => {
  const { ended } = await ask("POST", "/account/sessions/end-others");
  await showSessions();
  tell(byId("sessions"), () => text("sessions_ended", { n: ended }), "good");
});
whenPressed(byId("more-logins"), showMoreLogins);

export async function showVisits() {
  after = null;
  byId("login-list").replaceChildren();
  await Promise.all([showSessions(), showMoreLogins()]);
}

async function showSessions() {
  const { items } = await ask("GET", "/account/sessions");
  byId("session-list").replaceChildren(...items.map(sessionItem));
  byId("end-others").hidden = items.length < 2;
}

async function showMoreLogins() {
  const page = await ask("GET", `/account/logins?limit=${AT_ONCE}${after ? `&after=${after}` : ""}`);
  after = page.after;
  byId("login-list").append(...page.items.map(loginItem));
  byId("more-logins").hidden = !page.has_more;
}

function sessionItem(session) {
  const end = texted("button", "session_end", { type: "button", className: "quiet" });
  whenPressed(end, async () => {
    await ask("DELETE", `/account/sessions/${session.id}`);
    await showSessions();
    byId("sessions").querySelector("button:not([hidden])")?.focus();
  });
  const mark = session.current ? texted("span", "session_this", { className: "chip good" }) : end;
  return element("li", {}, device(session.user_agent), element("span", { className: "actions" }, mark),
    element("span", { className: "soft wide" }, from(session), " · ",
      texted("span", "session_seen"), " ", moment(session.seen_at)));
}

function loginItem(attempt) {
  const how = attempt.result === "ok" ? "good" : attempt.result === "code_missing" ? "" : "bad";
  return element("li", {}, device(attempt.user_agent),
    element("span", { className: "actions" },
      texted("span", `login_${attempt.result}`, { className: `chip ${how}` })),
    element("span", { className: "soft wide" },
      from(attempt), " · ", moment(attempt.at)));
}

function from({ address }) {
  return texted("span", "session_from", {}, { address });
}

/** The common name of a browser and its system; the title shows the whole user agent. */
function device(userAgent) {
  const named = (table) => table[Object.keys(table).find((mark) => userAgent.includes(mark))];
  const browser = named(BROWSERS), system = named(SYSTEMS);
  const label = browser && system
    ? texted("strong", "device_on", {}, { browser, system })
    : element("strong", {}, userAgent.slice(0, 80) || "–");
  return Object.assign(label, { title: userAgent });
}
