// Reads the file of certificate authorities that a flag of a fleet command names. Its bound and its checks are those of every file of
// authorities.
import { WritError } from '../../core/errors.js';
import { readAuthorityFile } from '../../platform/net/authorities.js';

/**
 * @returns PEM
 * @throws WritError USAGE for a file without a certificate: it would trust no server, and the error would name the server
 */
export function readAuthorities(path: string): string {
  const read = readAuthorityFile(path);
  if (read.kind === 'read') return read.pem;
  throw new WritError('USAGE', `the file of authorities ${path} cannot be used: ${read.why}`);
}
