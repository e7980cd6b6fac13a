/* Asking for an account. The answer is the same whether there is one already; only the letter says it. */

import { InputProblem, begin, byId, currentLanguage, samePassword, whenSent } from "/pages/page.js";
import { send } from "/pages/pool.js";

begin("register_title");
whenSent(byId("register"), async (typed) => {
  const { address, roles } = typed;
  const password = samePassword(typed);
  if (!roles.length) throw new InputProblem("roles_missing");
  await send("POST", "/auth/register", { address, password, roles, language: currentLanguage() });
  sessionStorage.setItem("tidemill_address", address);
  location.assign("/confirm");
});
