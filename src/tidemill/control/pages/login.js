/* Logging in: address and password, then the code where the account asks for one. */

import { begin, byId, whenSent } from "/pages/page.js";
import { goOn, logIn, maybeInside } from "/pages/pool.js";

const form = byId("login");

begin("login_title");
whenSent(form, async ({ address, password, remember, code }) => {
  try {
    await logIn({ address, password, remember, code: code || null });
  } catch (problem) {
    // Behind a lock the code lets the owner in; whether there is one, the answer does not tell.
    if (problem.code === "login_locked") offerCode();
    if (problem.code !== "second_factor_needed") throw problem;
    askForCode();
    return;
  }
  location.assign("/account");
});
// A person who is logged in already goes on.
if (maybeInside() && await goOn()) location.replace("/account");

function askForCode() {
  byId("who").hidden = true;
  offerCode();
  form.elements.code.required = true;
}

function offerCode() {
  byId("second").hidden = false;
  form.elements.code.disabled = false;
  form.elements.code.focus();
}
