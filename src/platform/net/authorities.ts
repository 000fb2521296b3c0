// Certificate authorities of a TLS connection: those of a configured file, which is rejected unless every certificate is
// readable, otherwise those of the system. Files are read when a connection needs them. OpenSSL verifies the chain.
import { X509Certificate } from 'node:crypto';
import { WritError } from '../../core/errors.js';
import { type ReadVerdict, readSmallFile } from '../read-file.js';

export const maxAuthorityBytes = 1_000_000;
/** Limit of the system list in bytes. The list of a distribution has 250 kB; that of an enterprise may have more. */
const maxSystemBytes = 8_000_000;

export type AuthorityFile =
  | { readonly kind: 'read'; readonly pem: string }
  | { readonly kind: 'refused'; readonly why: string };

/** @returns the PEM text of a file of authorities, or the reason why no connection may use it */
export function readAuthorityFile(path: string): AuthorityFile {
  const read = readSmallFile(path, { maxBytes: maxAuthorityBytes });
  if (read.kind !== 'read') return { kind: 'refused', why: read.why };
  const pem = read.bytes.toString('utf8');
  const why = whyNoAuthorities(pem);
  return why === undefined ? { kind: 'read', pem } : { kind: 'refused', why };
}

/** The labels that OpenSSL reads as certificates. Other text and keys between such blocks are ignored. */
const begin = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/g;
const block = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[A-Za-z0-9+/=\s]*-----END \1-----/g;

/**
 * Checks the text of a file of authorities. An empty list would make Node trust its own list, and OpenSSL ignores everything
 * after the first unreadable block.
 * @returns the reason why the text is rejected; undefined if it has at least one certificate and all are readable
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

/** System lists of Debian and its derivatives, of Red Hat, and of newer releases of Red Hat without the second file. */
const systemFiles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
];

export interface AuthorityPlaces {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly read: (path: string) => ReadVerdict;
  /** The list of Node, for a system without a list. */
  readonly ownList: readonly string[];
}

/**
 * Reads SSL_CERT_FILE, otherwise the file of the system, otherwise the list of Node. Adds NODE_EXTRA_CA_CERTS to each.
 * @throws WritError TLS_INVALID for an unusable SSL_CERT_FILE, which must never be replaced by another list
 */
export function systemAuthorities({ env, read, ownList }: AuthorityPlaces): readonly string[] {
  const { SSL_CERT_FILE: named, NODE_EXTRA_CA_CERTS: extraFile } = env;
  const textOf = (path: string): string | undefined => {
    const verdict = read(path);
    const text = verdict.kind === 'read' ? verdict.bytes.toString('utf8') : undefined;
    return text?.match(begin) ? text : undefined;
  };
  // An unreadable file is ignored as in Node, which prints a warning.
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

/** Reads the authorities with the environment of this process. @throws WritError TLS_INVALID */
export function readSystemAuthorities(ownList: readonly string[]): readonly string[] {
  const read = (path: string): ReadVerdict => readSmallFile(path, { maxBytes: maxSystemBytes });
  return systemAuthorities({ env: process.env, read, ownList });
}
