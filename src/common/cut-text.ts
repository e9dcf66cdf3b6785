/**
 * Cuts a text at this many UTF-16 units, or one before, so that no character is halved. A lone surrogate, which JSON may
 * hold, becomes U+FFFD: UTF-8 has none, and many clients reject it.
 */
export function cutText(text: string, maxLength: number): string {
  const isHalved = text.length > maxLength && (text.codePointAt(maxLength - 1) ?? 0) > 0xffff;
  return text.slice(0, isHalved ? maxLength - 1 : maxLength).toWellFormed();
}
