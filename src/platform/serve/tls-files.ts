// The certificate and key of the server, read from two files and tried before anything uses them.
// Owns nothing beyond reading: the key never leaves the context that is made of it.
import * as fs from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { WritError } from '../../core/errors.js';

export interface TlsFiles {
  /** PEM, with the chain after the certificate. */
  readonly certFile: string;
  /** PEM, not encrypted. */
  readonly keyFile: string;
}

const maxPemBytes = 1_000_000;

/**
 * @returns options for a TLS 1.2+ server, proven to belong together
 * @throws WritError TLS_INVALID when a file cannot be read or certificate and key are no pair
 */
export function readTlsFiles(files: TlsFiles): SecureContextOptions {
  try {
    const options = {
      cert: readPem(files.certFile),
      key: readPem(files.keyFile),
      minVersion: 'TLSv1.2',
    } satisfies SecureContextOptions;
    createSecureContext(options);
    return options;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new WritError('TLS_INVALID', `the TLS certificate or key cannot be used: ${reason}`, {
      // No cause: its one line is the reason, and would be said twice.
      facts: { certFile: files.certFile, keyFile: files.keyFile },
    });
  }
}

function readPem(path: string): Buffer {
  const size = fs.statSync(path).size;
  if (size > maxPemBytes) throw new Error(`${path} is ${size} bytes, more than a PEM file has`);
  return fs.readFileSync(path);
}
