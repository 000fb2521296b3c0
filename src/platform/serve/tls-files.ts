// Reads certificate and key of the server from two files, and verifies them before their use. The key stays in the context that is
// created from it.
import * as fs from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { WritError } from '../../core/errors.js';

export interface TlsFiles {
  /** Path of a PEM file: the certificate, then its chain. */
  readonly certFile: string;
  /** Path of a PEM file, not encrypted. */
  readonly keyFile: string;
}

const maxPemBytes = 1_000_000;

/**
 * @returns options for a TLS 1.2+ server; certificate and key match
 * @throws WritError TLS_INVALID if a file cannot be read, or certificate and key do not match
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
      // Without a cause, because its message is the reason, which would be logged twice.
      facts: { certFile: files.certFile, keyFile: files.keyFile },
    });
  }
}

function readPem(path: string): Buffer {
  const size = fs.statSync(path).size;
  if (size > maxPemBytes) throw new Error(`${path} is ${size} bytes, more than a PEM file has`);
  return fs.readFileSync(path);
}
