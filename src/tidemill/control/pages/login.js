/* Logging in: address and password, then the code where the account asks for one. */

import { begin, byId, whenSent } from "/pages/page.js";
import { goOn, logIn, maybeInside } from "/pages/pool.js";

const form = byId("login");

begin("login_title");
whenSent(form, async ({ address, password, remember, code }) => {
  try {
    await logIn({ address, password, remember, code: code || null });
  } catch (problem) {
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
  byId("second").hidden = false;
  Object.assign(form.elements.code, { disabled: false, required: true });
  form.elements.code.focus();
}
