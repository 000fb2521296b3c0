// Certificate authorities that a TLS connection trusts: those of a file, which is refused unless it is complete, else those of the
// system. Reads files only when a connection needs them. Verifies no chain; OpenSSL does.
import { X509Certificate } from 'node:crypto';
import { WritError } from '../../core/errors.js';
import { type ReadVerdict, readSmallFile } from '../read-file.js';

export const maxAuthorityBytes = 1_000_000;
/** The list of a distribution has 250 kB; one of an enterprise may have more. */
const maxSystemBytes = 8_000_000;

export type AuthorityFile =
  | { readonly kind: 'read'; readonly pem: string }
  | { readonly kind: 'refused'; readonly why: string };

/** @returns the text of a file of authorities, or why no connection may use it. */
export function readAuthorityFile(path: string): AuthorityFile {
  const read = readSmallFile(path, { maxBytes: maxAuthorityBytes });
  if (read.kind !== 'read') return { kind: 'refused', why: read.why };
  const pem = read.bytes.toString('utf8');
  const why = whyNoAuthorities(pem);
  return why === undefined ? { kind: 'read', pem } : { kind: 'refused', why };
}

/** The labels that OpenSSL reads as certificates. What is between such blocks, as text or a key, is not looked at. */
const begin = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/g;
const block = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[A-Za-z0-9+/=\s]*-----END \1-----/g;

/**
 * An empty list would mean Node's whole list to TLS, and a list ends for OpenSSL at the first block that it cannot read.
 * @returns undefined where each certificate of the text can be read, and there is one at least
 */
export function whyNoAuthorities(pem: string): string | undefined {
  const begun = pem.match(begin)?.length ?? 0;
  if (begun === 0) return pem.trim() === '' ? 'it is empty' : 'it contains no certificate in PEM';
  const blocks = pem.match(block) ?? [];
  if (blocks.length !== begun) return 'a certificate in it is not complete';
  const bad = blocks.findIndex((one) => !isCertificate(one));
  return bad === -1 ? undefined : `its certificate ${bad + 1} cannot be read`;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

/** Of Debian and its kin, of Red Hat's, and of newer ones of those, which leave the second out. */
const systemFiles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
];

export interface AuthorityPlaces {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly read: (path: string) => ReadVerdict;
  /** Node's own list, for a system without one. */
  readonly ownList: readonly string[];
}

/**
 * SSL_CERT_FILE, else the file of the system, else Node's own list; each with those of NODE_EXTRA_CA_CERTS.
 * @throws WritError TLS_INVALID: an SSL_CERT_FILE that cannot be used must not mean another list
 */
export function systemAuthorities({ env, read, ownList }: AuthorityPlaces): readonly string[] {
  const { SSL_CERT_FILE: named, NODE_EXTRA_CA_CERTS: extraFile } = env;
  const textOf = (path: string): string | undefined => {
    const verdict = read(path);
    const text = verdict.kind === 'read' ? verdict.bytes.toString('utf8') : undefined;
    return text?.match(begin) ? text : undefined;
  };
  // Node itself warns of one that it cannot read, and goes on.
  const extra = extraFile ? textOf(extraFile) : undefined;
  const also = extra === undefined ? [] : [extra];
  if (named) {
    const text = textOf(named);
    if (text !== undefined) return [text, ...also];
    const facts = { path: named };
    throw new WritError('TLS_INVALID', `SSL_CERT_FILE: no certificate can be read from ${named}`, { facts });
  }
  for (const path of systemFiles) {
    const text = textOf(path);
    if (text !== undefined) return [text, ...also];
  }
  return [...ownList, ...also];
}

/** Of this process and its system. */
export function readSystemAuthorities(ownList: readonly string[]): readonly string[] {
  const read = (path: string): ReadVerdict => readSmallFile(path, { maxBytes: maxSystemBytes });
  return systemAuthorities({ env: process.env, read, ownList });
}
