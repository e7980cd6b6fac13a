/* One's own account: its roles, second factor, password and address. Keys and visits have files of their own. */

import {
  InputProblem, begin, byId, dialog, element, labelled, samePassword, say, tell, tellProblem, text, texted,
  whenPressed, whenSent,
} from "/pages/page.js";
import { ask, forget, logOut, send, whenSessionChanges, whenStale } from "/pages/pool.js";
import { keepCodes, switchOn } from "/pages/second_factor.js";
import { showKeys } from "/pages/keys.js";
import { showVisits } from "/pages/visits.js";
import { showWork } from "/pages/work.js";

const FREE = ["customer", "provider"];
let account = null;

begin("account_title");
whenStale(askForPassword);
whenSessionChanges(() => location.reload());
whenPressed(byId("leave"), async () => { await logOut(); location.assign("/login"); });
try {
  show(await ask("GET", "/account"));
  await Promise.all([showKeys(account.roles), showVisits(), showWork(account)]);
  document.body.classList.add("known");
} catch (problem) {
  if (problem.status === 401) {
    location.replace("/login");
  } else {
    document.body.classList.add("known");
    tellProblem(document.querySelector("main"), problem);
  }
}

whenPressed(byId("factor-on"), async (button) => {
  button.hidden = true;
  try { await switchOn(byId("factor-steps"), account.address); } finally { await look(); }
});
whenPressed(byId("factor-codes"), async () => {
  let codes = null;
  const prompt = { title: "factor_codes_action", why: "factor_codes_why", action: "factor_codes_action" };
  await dialog(prompt, async () => {
    codes = (await ask("POST", "/account/second-factor/recovery-codes")).recovery_codes;
  });
  if (codes) await keepCodes(byId("factor-steps"), codes, account.address);
});
whenPressed(byId("factor-off"), async () => {
  const words = { title: "factor_off_action", why: "factor_off_why", action: "factor_off_action" };
  const prompt = { ...words, fields: [codeField()], danger: true };
  if (await dialog(prompt, ({ code }) => ask("POST", "/account/second-factor/remove", { code }))) {
    forget();
    location.assign("/login");
  }
});
whenSent(byId("roles-form"), async ({ roles }, form) => {
  if (!roles.length && !account.roles.some((role) => !FREE.includes(role))) throw new InputProblem("roles_missing");
  await ask("POST", "/account/roles", { roles });
  await look();
  await Promise.all([showKeys(account.roles), showWork(account)]);
  tell(form, () => text("saved"), "good");
});
whenSent(byId("kyc-form"), async () => { await ask("POST", "/account/kyc"); await look(); });
whenSent(byId("language-form"), async ({ language }, form) => {
  await ask("POST", "/account/language", { language });
  tell(form, () => text("saved"), "good");
});
whenSent(byId("address-form"), async ({ address }, form) => {
  await ask("POST", "/account/address", { address });
  form.reset();
  tell(form, () => text("address_asked", { address }), "good");
});
whenSent(byId("password-form"), async (typed, form) => {
  await ask("POST", "/account/password", { password: samePassword(typed) });
  form.elements.password.value = form.elements.again.value = "";
  tell(form, () => text("password_changed"), "good");
  await showVisits();
});
whenPressed(byId("delete"), async () => {
  const field = labelled("delete_address", { name: "typed", type: "email", required: true, autocomplete: "off" });
  const words = { title: "delete_title", why: "delete_type", action: "delete_action" };
  const prompt = { ...words, values: { address: account.address }, fields: [field], danger: true };
  const deleted = await dialog(prompt, async ({ typed }) => {
    if (typed !== account.address) throw new InputProblem("delete_differs");
    await ask("POST", "/account/delete");
  });
  if (!deleted) return;
  forget();
  const heading = texted("h1", "deleted", { tabIndex: -1 });
  document.querySelector("main").replaceChildren(element("section", { className: "card" }, heading));
  heading.focus();
});

async function look() { show(await ask("GET", "/account")); }

function show({ account: current, acting_as: acting }) {
  account = current;
  byId("address").textContent = current.address;
  byId("roles").replaceChildren(...current.roles.map((role) => texted("span", `role_${role}`, { className: "chip" })));
  byId("unsafe").hidden = !current.roles.includes("operator") || acting.includes("operator");
  const on = current.second_factor_on;
  say(byId("factor-state"), on ? "factor_is_on" : "factor_is_off");
  byId("factor-on").hidden = on;
  byId("factor-codes").hidden = byId("factor-off").hidden = !on;
  byId("roles-form").querySelectorAll("input").forEach((box) => { box.checked = current.roles.includes(box.value); });
  byId("language-form").elements.language.value = current.language;
  byId("password-form").elements.username.value = current.address;
  showVerification(current);
}

function showVerification({ roles, kyc, kyc_reason: reason }) {
  byId("kyc-form").hidden = !roles.includes("provider");
  say(byId("kyc-state"), `kyc_${kyc}`);
  byId("kyc-reason").textContent = reason;
  byId("kyc-form").querySelector("button").hidden = !["none", "rejected"].includes(kyc);
}

/** The password once more, and the code where there is a second factor. */
function askForPassword() {
  const name = element("input", { name: "username", autocomplete: "username", value: account.address, hidden: true });
  const properties = { name: "password", type: "password", autocomplete: "current-password", required: true };
  const field = labelled("password", properties);
  const fields = account.second_factor_on ? [name, field, codeField()] : [name, field];
  const prompt = { title: "again_title", why: "again_why", fields, action: "again_action" };
  return dialog(prompt, ({ password, code }) => send("POST", "/auth/reauthenticate", { password, code: code ?? null }));
}

function codeField() {
  return labelled("code", { name: "code", autocomplete: "one-time-code", required: true, maxLength: 64 });
}
