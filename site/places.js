// Where each source lands in the built site, and how a link from one page to another is written. Pure: paths in, paths out.
import { posix } from 'node:path';

/** @param source a path of the repository. @returns the path of its page */
export function pageOf(source) {
  if (source === 'README.md') return 'index.html';
  if (source === 'docs/errors.md') return 'errors/index.html';
  const inDocs = source.startsWith('docs/') ? source.slice(5) : source;
  if (inDocs.endsWith('/README.md')) return inDocs.replace(/README\.md$/, 'index.html');
  return `${inDocs.replace(/\.md$/, '').replace(/^[A-Z]+$/, (name) => name.toLowerCase())}.html`;
}

/** @returns the path of the page of a code: any web server answers errors/CODE with it */
export function errorPageOf(code) {
  return `errors/${code}/index.html`;
}

/** @param source a file that is no page, as a picture. @returns the path of its copy */
export function copyOf(source) {
  return source.startsWith('docs/') ? source.slice(5) : `files/${source}`;
}

/** @returns the link from one built file to another: never absolute, so that the site works below any path, and from a disk */
export function linkBetween(from, to) {
  return posix.relative(posix.dirname(from), to);
}

/** @returns the file of the repository that a link in a source leads to; undefined where it leaves the repository */
export function targetOf(source, path) {
  const target = posix.normalize(posix.join(posix.dirname(source), decodeURIComponent(path)));
  return target.startsWith('../') || target === '..' ? undefined : target.replace(/\/$/, '');
}
