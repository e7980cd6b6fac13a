/* The first operator: an account by the link that `tidemill up` prints, and its second factor right away. */

import { attempt, begin, byId, currentLanguage, samePassword, takeFragment, whenSent } from "/pages/page.js";
import { logIn, send } from "/pages/pool.js";
import { switchOn } from "/pages/second_factor.js";

const token = takeFragment();

byId("lost").hidden = token !== "";
byId("first").hidden = token === "";
begin("setup_title");
whenSent(byId("first"), async (typed) => {
  const { address } = typed;
  const password = samePassword(typed);
  await send("POST", "/setup", { token, address, password, language: currentLanguage() });
  await logIn({ address, password });
  show("first", "factor");
  attempt(byId("factor"), () => secondFactor(address));
});

async function secondFactor(address) {
  try {
    await switchOn(byId("factor-steps"), address);
  } catch (problem) {
    byId("later").hidden = false;  // the account is there all the same, and its page lets one try again
    throw problem;
  }
  show("factor", "done");
}

function show(from, to) {
  byId(from).hidden = true;
  byId(to).hidden = false;
  byId(to).querySelector("h1").focus();
}
