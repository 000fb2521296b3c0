// A file of certificate authorities that a flag of the fleet's commands names. Owns its bound and what is refused of it; who is
// trusted by it is the connection's.
import { WritError } from '../../core/errors.js';
import { readSmallFile } from '../../platform/read-file.js';

const maxCaBytes = 1_000_000;

/**
 * @returns PEM
 * @throws USAGE: a file without a certificate would trust nobody, and be reported as a fault of the server
 */
export function readAuthorities(path: string): string {
  const read = readSmallFile(path, { maxBytes: maxCaBytes });
  const text = read.kind === 'read' ? read.bytes.toString('latin1') : '';
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  const why = read.kind === 'read' ? 'it contains no certificate' : read.why;
  throw new WritError('USAGE', `the file of authorities ${path} cannot be used: ${why}`);
}
