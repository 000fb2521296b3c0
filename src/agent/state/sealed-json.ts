// Formats a JSON document with a seal: the last member is the digest of all preceding text. A bit that a bad disk flipped makes the
// document invalid, instead of a plausible other number. Detects accidents only: a process that may write the file can
// also compute the digest.
import { createHash } from 'node:crypto';

/** Matches a last member of the length of the seal, so that it also finds a seal with a flipped bit. */
const seal = /,"([^"]{6})":"([^"]{71})"\}\n?$/;

/** @param document an object with at least one member. @returns one line that `unsealed` parses */
export function sealed(document: unknown): string {
  const text = JSON.stringify(document);
  return `${text.slice(0, -1)},"digest":"${digestOf(text)}"}\n`;
}

/**
 * @returns the document without its digest; a document without a digest, of a former version, as it is
 * @throws SyntaxError for text that is not JSON; RangeError if the digest does not match
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
