// Reads the value of an Authorization header from a file of the host: a secret that stands in the configuration
// is shown by `writ config show`. Read at each use, so that it can be changed without a restart.
import { readSmallFile } from '../read-file.js';

const maxBytes = 8192;

export type AuthorizationRead =
  | { readonly kind: 'read'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * @param path of a file with one line, as `Bearer abc`; undefined: no header
 * @returns `read` with the header `authorization`, or with no header for undefined. `failed` for a file that is absent, above
 *   8192 bytes, empty, or not one line of printable ASCII; the reason has the path and never the line. One line end at the end
 *   is removed. Throws nothing.
 */
export function readAuthorization(path: string | undefined): AuthorizationRead {
  if (path === undefined) return { kind: 'read', headers: {} };
  const file = readSmallFile(path, { maxBytes });
  if (file.kind !== 'read') return { kind: 'failed', reason: `${path}: ${file.why}` };
  const value = file.bytes.toString('latin1').replace(/\r?\n$/, '');
  // A second line could add headers of its own.
  if (!/^[\x21-\x7e][\x20-\x7e]*$/.test(value))
    return { kind: 'failed', reason: `${path} must contain one line of printable ASCII` };
  return { kind: 'read', headers: { authorization: value } };
}
