import { createHash } from 'node:crypto';

/**
 * Runs in the browser: shows the page anew every two seconds, while somebody looks at it. What is the same stays, and so does all
 * while text is selected, so that a screen reader and a copy are not interrupted.
 */
export const QUOTA_RELOAD = `
setInterval(async () => {
  if (document.hidden || !getSelection().isCollapsed) return;
  const response = await fetch(location.href).catch(() => undefined);
  if (!response || !response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const [shown, current] = [document, page].map((each) => [...each.querySelector('main').children]);
  const isSame = shown.length === current.length;
  if (!isSame) return document.querySelector('main').replaceWith(page.querySelector('main'));
  shown.forEach((part, index) => part.isEqualNode(current[index]) || part.replaceWith(current[index]));
}, 2000);
`;

/** Allows this script alone: a source of Content-Security-Policy. */
export const QUOTA_RELOAD_SOURCE = `'sha256-${createHash('sha256').update(QUOTA_RELOAD).digest('base64')}'`;
