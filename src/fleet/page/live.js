// Updates an open page: requests it again when the fleet changed and at least every 15 s, and replaces the part `#live`. Shows a lost
// connection and the age of the page. Without this script the page is the same, and the link Refresh updates it.
const main = document.querySelector('main[data-live-every-ms]');
const age = document.querySelector('#age time');
const link = document.querySelector('#link');
const leastMs = Number(main?.dataset.liveEveryMs);
const mostMs = 15_000;
let madeAt = age?.textContent;
let shownAt = performance.now();
let askedAt = performance.now();
let due = false;
let asking = false;
let lostAt;

function showStatus(text) {
  if (link.textContent !== text) link.textContent = text;
  document.body.classList.toggle('lost', text !== '');
}

// Keeps the focus, the scroll positions and the opened details.
function swap(fresh) {
  const old = document.querySelector('#live');
  if (old.outerHTML === fresh.outerHTML) return;
  const focused = old.contains(document.activeElement) ? document.activeElement : undefined;
  const all = (root) => [...root.querySelectorAll('a, summary, .scroll')];
  const place = focused ? all(old).indexOf(focused) : -1;
  for (const { id } of old.querySelectorAll('details[open]')) {
    fresh.querySelector(`details[id="${CSS.escape(id)}"]`)?.setAttribute('open', '');
  }
  const scrolled = [...old.querySelectorAll('.scroll')].map((one) => one.scrollLeft);
  old.replaceWith(fresh);
  fresh.querySelectorAll('.scroll').forEach((one, at) => {
    one.scrollLeft = scrolled[at] ?? 0;
  });
  const same = focused?.getAttribute('href');
  const links = all(fresh);
  const target = links.find((one) => same && one.getAttribute('href') === same) ?? links[place];
  target?.focus({ preventScroll: true });
}

const isBusy = () => {
  const field = document.activeElement?.matches('#live input') ?? false;
  return field || !(document.getSelection()?.isCollapsed ?? true);
};

async function ask() {
  asking = true;
  due = false;
  askedAt = performance.now();
  try {
    const signal = AbortSignal.timeout(10_000);
    const answer = await fetch(location.href, {
      headers: { accept: 'text/html' },
      redirect: 'manual',
      signal,
    });
    if (answer.type === 'opaqueredirect') return showStatus('Signed out: reload to sign in');
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    swap(document.importNode(page.querySelector('#live'), true));
    document.title = page.title;
    const made = page.querySelector('#age time');
    age.dateTime = made.dateTime;
    madeAt = made.textContent;
    shownAt = performance.now();
    lostAt = undefined;
    showStatus('');
  } catch {
    lostAt ??= performance.now();
    showStatus('No answer from the server: this is old');
  } finally {
    asking = false;
  }
}

function tick() {
  const now = performance.now();
  const seconds = Math.round((now - shownAt) / 1000);
  age.textContent =
    seconds < 2 ? 'now' : seconds < 120 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`;
  const since = now - askedAt;
  if (asking || document.hidden || isBusy()) return;
  if (since >= mostMs || (due && since >= leastMs) || (lostAt !== undefined && since >= 2000)) void ask();
}

if (main && age && link) {
  const events = new EventSource('/v1/events');
  events.addEventListener('summary', () => {
    due = true;
    tick();
  });
  events.addEventListener('error', () => {
    due = true;
  });
  document.querySelector('#age').firstChild.textContent = 'as of ';
  // A printed page shows the time in place of "now".
  addEventListener('beforeprint', () => {
    age.textContent = madeAt;
  });
  setInterval(tick, 500);
}
