/* Switching a second factor on, step by step: the secret for the device, its first code, ten recovery codes.

   The picture of the secret comes as SVG and is shown as an image, in which no script runs. */

import { copy, element, labelled, text, texted, whenPressed, whenSent } from "/pages/page.js";
import { ask } from "/pages/pool.js";

/** Go through all steps in `container`; done when the recovery codes are kept. */
export async function switchOn(container, address) {
  const { secret, qr_svg: picture } = await ask("POST", "/account/second-factor");
  const codes = await firstCode(container, secret, picture);
  await keepCodes(container, codes, address);
}

/** Show recovery codes until they are kept. */
export function keepCodes(container, codes, address) {
  const kept = element("input", { type: "checkbox", name: "kept", required: true });
  const form = element("form", {},
    element("label", { className: "tick" }, kept, texted("span", "codes_kept")),
    texted("button", "codes_done", { type: "submit" }),
    element("p", { className: "said", ariaLive: "assertive" }));
  const heading = texted("h2", "codes_title", { tabIndex: -1 });
  container.replaceChildren(element("section", { className: "steps" },
    heading,
    texted("p", "codes_why", { className: "soft" }),
    element("ul", { className: "codes" }, ...codes.map((code) => element("li", {}, code))),
    element("p", { className: "actions" }, copying(codes.join("\n")), saving(codes, address)),
    form));
  heading.focus();
  return new Promise((resolve) => {
    whenSent(form, async () => { container.replaceChildren(); resolve(); });
  });
}

/** A button that copies words. */
export function copying(words) {
  const button = texted("button", "copy", { type: "button", className: "quiet" });
  whenPressed(button, () => copy(words, button));
  return button;
}

function firstCode(container, secret, picture) {
  const code = { name: "code", inputMode: "numeric", autocomplete: "one-time-code", required: true, maxLength: 10 };
  const form = element("form", {},
    labelled("factor_first_code", code),
    texted("button", "factor_confirm", { type: "submit" }),
    element("p", { className: "said", ariaLive: "assertive" }));
  const image = element("img", { className: "qr", src: `data:image/svg+xml,${encodeURIComponent(picture)}` });
  image.dataset.alternative = "factor_qr";
  image.alt = text("factor_qr");
  container.replaceChildren(element("div", { className: "steps" },
    texted("p", "factor_scan"), image,
    texted("p", "factor_type", { className: "soft" }),
    element("p", { className: "secret" }, element("code", {}, secret.match(/.{1,4}/g).join(" "))),
    form));
  form.elements.code.focus({ preventScroll: true });
  return new Promise((resolve) => {
    whenSent(form, async (typed) => {
      const answer = await ask("POST", "/account/second-factor/confirm", { code: typed.code });
      resolve(answer.recovery_codes);
    });
  });
}

function saving(codes, address) {
  const button = texted("button", "download", { type: "button", className: "quiet" });
  button.addEventListener("click", () => {
    const words = `${text("codes_file", { address })}\n\n${codes.join("\n")}\n`;
    const link = URL.createObjectURL(new Blob([words], { type: "text/plain" }));
    element("a", { href: link, download: "tidemill-recovery-codes.txt" }).click();
    URL.revokeObjectURL(link);
  });
  return button;
}
