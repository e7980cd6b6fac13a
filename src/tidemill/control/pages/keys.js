/* API keys: the list, the form to make one, and the key itself, which is shown once. */

import { InputProblem, byId, dialog, element, moment, texted, whenPressed, whenSent } from "/pages/page.js";
import { ask } from "/pages/pool.js";
import { copying } from "/pages/second_factor.js";

const form = byId("key-form");

form.elements.role.addEventListener("change", showScopes);
whenSent(form, async ({ name, role, scopes, networks, expires, cap }) => {
  if (!scopes.length) throw new InputProblem("key_scopes_missing");
  const created = await ask("POST", "/account/keys", {
    name, role, scopes,
    networks: networks.split(/[\s,]+/).filter((network) => network),
    expires_at: expires ? endOf(expires) : null,
    spending_cap: cap.trim() || null,
  });
  form.reset();
  showScopes();
  form.closest("details").open = false;
  showOnce(created.key);
  await showList();
});

/** Show the keys of an account, and the roles that new keys can have. */
export async function showKeys(roles) {
  form.elements.role.replaceChildren(...roles.map((role) => texted("option", `role_${role}`, { value: role })));
  showScopes();
  await showList();
}

async function showList() {
  const { items } = await ask("GET", "/account/keys");
  byId("key-list").replaceChildren(...items.map(keyItem));
}

function keyItem(key) {
  return element("li", {},
    element("span", {},
      element("strong", {}, key.name), " ", element("code", { className: "soft" }, `${key.prefix}…`)),
    element("span", { className: "actions" }, key.revoked_at ? null : rotating(key), revoking(key)),
    element("span", { className: "soft wide" }, ...joined(about(key))));
}

function about(key) {
  const scopes = key.scopes.map((scope) => texted("span", `scope_${scope.replace(":", "_")}`));
  return [
    [texted("span", `role_${key.role}`), ": ", ...joined(scopes.map((scope) => [scope]), ", ")],
    key.networks.length ? [texted("span", "key_only_from", {}, { networks: key.networks.join(", ") })] : null,
    key.spending_cap === null ? null : [texted("span", "key_spent", {}, { spent: key.spent, cap: key.spending_cap })],
    [texted("span", "key_made"), " ", moment(key.made_at)],
    key.last_used_at ? [texted("span", "key_used"), " ", moment(key.last_used_at)] : [texted("span", "key_unused")],
    key.expires_at ? [texted("span", "key_good_until"), " ", moment(key.expires_at)] : null,
    key.revoked_at ? [texted("span", "key_until"), " ", moment(key.revoked_at)] : null,
  ].filter((part) => part !== null);
}

function rotating(key) {
  const button = texted("button", "key_rotate", { type: "button", className: "quiet" });
  whenPressed(button, async () => {
    const words = { title: "key_rotate_title", why: "key_rotate_why", values: { name: key.name } };
    let created = null;
    await dialog({ ...words, action: "key_rotate" }, async () => {
      created = await ask("POST", `/account/keys/${key.id}/rotate`);
    });
    if (!created) return;
    showOnce(created.key);
    await showList();
  });
  return button;
}

function revoking(key) {
  const button = texted("button", "key_revoke", { type: "button", className: "quiet danger" });
  whenPressed(button, async () => {
    const words = { title: "key_revoke_title", why: "key_revoke_why", values: { name: key.name } };
    const prompt = { ...words, action: "key_revoke", danger: true };
    if (await dialog(prompt, () => ask("DELETE", `/account/keys/${key.id}`))) await showList();
  });
  return button;
}

function showOnce(key) {
  const kept = texted("button", "key_kept", { type: "button" });
  const container = byId("key-new");
  kept.addEventListener("click", () => container.replaceChildren());
  container.replaceChildren(element("div", { className: "steps" },
    texted("p", "key_shown"),
    element("p", { className: "secret" }, element("code", { id: "key-secret" }, key)),
    element("p", { className: "actions" }, copying(key), kept)));
}

/** The pool's scopes are for operators' keys. */
function showScopes() {
  const operator = form.elements.role.value === "operator";
  form.querySelectorAll(".pool").forEach((label) => {
    label.hidden = !operator;
    label.querySelector("input").disabled = !operator;
  });
}

function endOf(day) {
  return new Date(`${day}T23:59:59`).toISOString();
}

function joined(parts, between = " · ") {
  return parts.flatMap((part, number) => (number ? [between, ...part] : part));
}
