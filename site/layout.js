// The frame around a page: head, search field, sidebar, what comes before and after. Pure text; every link in it is relative.
import { linkBetween } from './places.js';

const escaped = (text) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

/** @param page { path, title, html, headings }. @param menu groups of { title, folded, entries: [{ path, label }] } */
export function layOut(page, menu) {
  const to = (path) => escaped(linkBetween(page.path, path));
  const name = page.path === 'index.html' ? 'Writ' : `${page.title} - Writ`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(name)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${to('assets/site.css')}">
<script defer src="${to('assets/search.js')}"></script>
</head>
<body data-root="${to('index.html').replace(/index\.html$/, '')}">
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="home" href="${to('index.html')}">Writ</a>
<form class="search" role="search" hidden><input type="search" aria-label="Search" placeholder="Search" autocomplete="off" spellcheck="false"><div class="found" role="status" hidden></div></form>
<input type="checkbox" id="menu" class="menu" aria-label="Show all pages"><label for="menu">Pages</label>
<nav aria-label="Pages">
${menu.map((group) => menuGroup(group, page, to)).join('\n')}
</nav>
</header>
<main id="content">
${contents(page)}${page.html}${neighbours(page, menu, to)}</main>
</body>
</html>
`;
}

function menuGroup({ title, folded, entries }, page, to) {
  const isHere = entries.some(({ path }) => path === page.section);
  const items = entries.map(({ path, label }) => {
    const current = path === page.path ? ' aria-current="page"' : '';
    return `<li><a href="${to(path)}"${current}>${escaped(label)}</a></li>`;
  });
  const list = `<ul>\n${items.join('\n')}\n</ul>`;
  if (!folded) return `<h2>${title}</h2>\n${list}`;
  return `<details${isHere ? ' open' : ''}><summary>${title}</summary>\n${list}\n</details>`;
}

const fewHeadings = 3;

function contents({ headings, path }) {
  const shown = headings.filter(({ level }) => level === 2);
  if (shown.length < fewHeadings || path === 'index.html') return '';
  const items = shown.map(({ id, text }) => `<li><a href="#${escaped(id)}">${escaped(text)}</a></li>`);
  return `<details class="contents"><summary>On this page</summary>\n<ul>\n${items.join('\n')}\n</ul>\n</details>\n`;
}

function neighbours({ path }, menu, to) {
  const all = menu.flatMap(({ entries }) => entries);
  const at = all.findIndex((one) => one.path === path);
  if (at === -1) return '';
  const link = (entry, rel, word) =>
    entry === undefined
      ? ''
      : `<a rel="${rel}" href="${to(entry.path)}">${word}: ${escaped(entry.label)}</a>`;
  return `<footer>${link(all[at - 1], 'prev', 'Before')}${link(all[at + 1], 'next', 'Next')}</footer>\n`;
}
