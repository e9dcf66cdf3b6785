/**
 * On every answer that does not say otherwise. An answer is data: no browser is to guess a type for it, run or frame it,
 * or hand it to a page of another origin that did not ask by the rules of CORS.
 */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};
