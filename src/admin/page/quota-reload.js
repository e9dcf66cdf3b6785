// Shows the page anew every two seconds, while somebody looks at it. What is the same stays, and so does all while text is
// selected or the page is held, so that a screen reader and a copy are not interrupted.
const EVERY_MS = 2_000;
const TIMEOUT_MS = 5_000;

const contact = document.createElement('p');
contact.setAttribute('role', 'status');
const hold = document.createElement('button');
hold.type = 'button';
hold.textContent = 'Hold this page';
hold.setAttribute('aria-pressed', 'false');
hold.addEventListener('click', () => hold.setAttribute('aria-pressed', String(!isHeld())));
document.querySelector('header')?.append(hold, contact);

let loadedAt = new Date();
void follow();

/** One request at a time: a petql that hangs gets no more. */
async function follow() {
  for (;;) {
    await new Promise((resolve) => void setTimeout(resolve, EVERY_MS));
    if (!document.hidden && !isHeld() && getSelection()?.isCollapsed) await reload();
  }
}

function isHeld() {
  return hold.getAttribute('aria-pressed') === 'true';
}

async function reload() {
  const text = await load().catch(() => undefined);
  if (text === undefined) {
    const since = loadedAt.toISOString().slice(0, 19).replace('T', ' ');
    say(`No contact with petql since ${since} UTC. What stands below is of then.`);
    return;
  }
  loadedAt = new Date();
  say('');
  // What was held or selected meanwhile stays.
  if (isHeld() || !getSelection()?.isCollapsed) return;
  show(new DOMParser().parseFromString(text, 'text/html'));
}

async function load() {
  const response = await fetch(location.href, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  return response.ok ? response.text() : undefined;
}

/** A screen reader says it again where it changes. @param {string} text */
function say(text) {
  if (contact.textContent !== text) contact.textContent = text;
}

/** @param {Document} page */
function show(page) {
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
