// Shows the page anew every two seconds, while somebody looks at it. What is the same stays, and so does all while text is
// selected, so that a screen reader and a copy are not interrupted.
setInterval(() => void reload(), 2000);

async function reload() {
  if (document.hidden || !getSelection()?.isCollapsed) return;
  const response = await fetch(location.href).catch(() => undefined);
  if (!response?.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const [shown, loaded] = [mainOf(document), mainOf(page)];
  if (shown.children.length !== loaded.children.length) {
    shown.replaceWith(loaded);
    return;
  }
  // A part that moves into the page leaves the one that was loaded.
  const parts = [...loaded.children];
  for (const [index, part] of [...shown.children].entries()) {
    const next = parts[index];
    if (next && !part.isEqualNode(next)) part.replaceWith(next);
  }
}

/** @param {Document} page */
function mainOf(page) {
  return /** @type {HTMLElement} */ (page.querySelector('main'));
}
