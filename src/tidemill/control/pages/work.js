/* Work: one's jobs with what they cost, and one's nodes with what they do. Each opens to what there is to know. */

import { byId, element, moment, texted, unit, whenPressed } from "/pages/page.js";
import { ask } from "/pages/pool.js";

const AT_ONCE = 10;
const SHORT = 8;
const GOOD = new Set(["completed", "running", "online", "active"]);
const BAD = new Set(["failed", "expired", "offline", "suspended", "degraded", "deregistered"]);

let owner = null;

const lists = {
  jobs: { path: "/marketplace/jobs", items: "job-list", none: "no-jobs", more: "more-jobs", item: jobItem },
  nodes: { path: "/nodes", items: "node-list", none: "no-nodes", more: "more-nodes", item: nodeItem },
};
for (const list of Object.values(lists)) whenPressed(byId(list.more), () => showMore(list));

/** Show the jobs of a customer and the nodes of a provider; an operator sees no others' here. */
export async function showWork({ id, roles }) {
  owner = id;
  byId("jobs").hidden = !roles.includes("customer");
  byId("nodes").hidden = !roles.some((role) => role === "provider" || role === "data_centre");
  const shown = Object.entries(lists).filter(([name]) => !byId(name).hidden);
  await Promise.all(shown.map(([, list]) => showFirst(list)));
}

async function showFirst(list) {
  list.after = null;
  byId(list.items).replaceChildren();
  await showMore(list);
}

async function showMore(list) {
  const page = await ask("GET", `${list.path}?owner=${owner}&limit=${AT_ONCE}${list.after ? `&after=${list.after}` : ""}`);
  list.after = page.after;
  byId(list.items).append(...page.items.map(list.item));
  byId(list.none).hidden = byId(list.items).children.length > 0;
  byId(list.more).hidden = !page.has_more;
}

function jobItem(job) {
  const { progress } = job;
  const cost = job.ended_at ? ["job_cost", job.spent] : job.confirmed_at ? ["job_held", job.held] : ["job_unpaid", ""];
  return element("li", {}, element("strong", {}, `${job.name || job.kind} `, shortId(job.id)), chip(job.state),
    element("span", { className: "soft wide" }, texted("span", cost[0], {}, { amount: cost[1], currency: unit(job.currency) }),
      " · ", moment(job.made_at)),
    details([
      ["job_kind", job.kind], ["id", job.id],
      ["job_tasks", `${progress.completed ?? 0} / ${progress.tasks ?? 0}`],
      ["job_deadline", job.deadline_at && moment(job.deadline_at)], ["job_over", job.ended_at && moment(job.ended_at)],
      ["terminal", element("code", {}, `tidemill jobs show ${job.id.slice(-SHORT)}`)],
    ]));
}

function nodeItem(node) {
  const devices = node.devices.map((device) => device.name).join(", ");
  const offline = node.conditions.find((condition) => BAD.has(condition));
  return element("li", {}, element("strong", {}, `${node.name} `, shortId(node.id)), chip(offline ?? node.life),
    element("span", { className: "soft wide" }, devices || "–", " · ",
      node.heard_at ? texted("span", "node_heard") : texted("span", "node_silent"), " ",
      node.heard_at ? moment(node.heard_at) : ""),
    details([
      ["id", node.id], ["node_conditions", node.conditions.join(", ")],
      ["node_cores", node.measured_cores && String(node.measured_cores)],
      ["node_suspended", node.suspended_reason],
      ["terminal", element("code", {}, `tidemill nodes show ${node.id.slice(-SHORT)}`)],
    ]));
}

function details(rows) {
  const known = rows.filter(([, value]) => value);
  return element("details", { className: "wide" }, texted("summary", "details"), element("dl", {},
    ...known.flatMap(([name, value]) => [texted("dt", `detail_${name}`), element("dd", {}, value)])));
}

function shortId(id) { return element("code", { className: "soft", title: id }, id.slice(-SHORT)); }

function chip(state) {
  const how = GOOD.has(state) ? "good" : BAD.has(state) ? "bad" : "";
  return element("span", { className: "actions" }, texted("span", `state_of_${state}`, { className: `chip ${how}` }));
}
