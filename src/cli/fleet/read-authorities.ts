// A file of certificate authorities that a flag of the fleet's commands names. Owns its bound and what is refused of it; who is
// trusted by it is the connection's.
import { WritError } from '../../core/errors.js';
import { readAuthorityFile } from '../../platform/net/authorities.js';

/**
 * @returns PEM
 * @throws USAGE: a file without a certificate would trust nobody, and be reported as a fault of the server
 */
export function readAuthorities(path: string): string {
  const read = readAuthorityFile(path);
  if (read.kind === 'read') return read.pem;
  throw new WritError('USAGE', `the file of authorities ${path} cannot be used: ${read.why}`);
}
