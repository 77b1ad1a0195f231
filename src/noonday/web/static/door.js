// What a script shows with whatever it changes: the token of this page, as `form_token` or `X-Form-Token`.
// @ts-check

export function formToken() {
  return document.querySelector("meta[name=form-token]")?.getAttribute("content") ?? "";
}
