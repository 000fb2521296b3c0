// Checks the built site: every link leads to one of its files and to an existing anchor, no two anchors of a
// page are the same, and no page sends a request to another server. Pure: files in, sentences out.
import { posix } from 'node:path';

const attributes = /<(\w+)[^>]*?\s(href|src)="([^"]*)"/g;

/** @param files each file of the site by its path. @returns the faults, a sentence each */
export function brokenLinks(files) {
  const anchors = new Map();
  const problems = [];
  for (const [path, text] of pagesOf(files)) {
    const ids = [...text.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id);
    anchors.set(path, new Set(ids));
    const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
    problems.push(...twice.map((id) => `${path}: two anchors are #${id}`));
  }
  for (const [path, text] of pagesOf(files))
    for (const [, tag, name, link] of text.matchAll(attributes))
      problems.push(...problemOf({ path, tag, name, link, files, anchors }));
  return problems;
}

function pagesOf(files) {
  return [...files].filter(([path]) => path.endsWith('.html'));
}

function problemOf({ path, tag, name, link, files, anchors }) {
  if (/^(?:[a-z][a-z+.-]*:|\/\/)/i.test(link))
    return tag === 'a' || link.startsWith('data:')
      ? []
      : [`${path}: <${tag} ${name}="${link}"> asks another server`];
  if (link.startsWith('/')) return [`${path}: ${link} works at the root of a server only`];
  const [file, anchor] = link.split('#');
  const target =
    file === '' ? path : posix.normalize(posix.join(posix.dirname(path), decodeURIComponent(file)));
  if (!files.has(target)) return [`${path}: nothing is at ${link}`];
  if (anchor === undefined || anchor === '') return [];
  return anchors.get(target)?.has(decodeURIComponent(anchor)) ? [] : [`${path}: no anchor is at ${link}`];
}
