// A JSON document whose last member is the digest of all that stands before it: a bit that a bad disk has turned is no
// document any more, and never a plausible number. Keeps out accidents; nobody who may write the file.
import { createHash } from 'node:crypto';

/** Of a former version, or with its seal torn: there is a last member with a text of its length. */
const seal = /,"([^"]{6})":"([^"]{71})"\}\n?$/;

/** @param document an object @returns one line that `unsealed` reads */
export function sealed(document: unknown): string {
  const text = JSON.stringify(document);
  return `${text.slice(0, -1)},"digest":"${digestOf(text)}"}\n`;
}

/**
 * @returns the document without its digest; one of a former version, that has none, as it is
 * @throws SyntaxError for what is no JSON, RangeError for what its digest does not know
 */
export function unsealed(text: string): unknown {
  const found = seal.exec(text);
  if (found === null) return JSON.parse(text);
  const body = `${text.slice(0, found.index)}}`;
  if (found[1] === 'digest' && found[2] === digestOf(body)) return JSON.parse(body);
  throw new RangeError('another digest');
}

function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
