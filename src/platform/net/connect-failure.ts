// Explains why a connection failed, because the errors of Node and OpenSSL name neither the setting nor the cause. Pure
// functions.

import { utcTimeText } from '../../core/text/iso-time.js';

export interface ConnectFailure {
  /** One line that contains the errno. */
  readonly text: string;
  /** Left out if the hint of the error code is sufficient. */
  readonly hint?: string;
}

/** The failed attempt to connect to one address. */
export interface AddressFailure {
  readonly address: string;
  readonly errno: string;
}

/** Errnos by relevance: a machine that answered, then one that did not, then (all others) a missing route. */
const byWeight = ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT'];

/** No address of a host accepted a connection. */
export class ConnectError extends Error {
  /** The most relevant errno. */
  readonly code: string;

  /** @param name of the host; left out if the URL contains the address itself, and the message is its errno alone */
  constructor(failures: readonly AddressFailure[], name?: string) {
    const errnos = failures.map(({ errno }) => errno);
    const code = byWeight.find((one) => errnos.includes(one)) ?? errnos[0] ?? 'ENOTFOUND';
    super(name === undefined ? code : failures.map(({ address, errno }) => `${address} ${errno}`).join(', '));
    this.code = code;
  }
}

/** The proxy cannot be reached, or its certificate is not trusted, or it refuses the connection. */
export class ProxyError extends Error {
  /** URL of the proxy without credentials. */
  readonly proxy: string;
  /** HTTP status of the proxy; undefined without a response. */
  readonly status: number | undefined;
  readonly errno: string | undefined;
  readonly hint: string;

  constructor(
    proxy: string,
    { text, hint, ...answer }: ConnectFailure & { readonly status?: number; readonly errno?: string },
  ) {
    super(`the proxy ${proxy} ${text}`);
    this.proxy = proxy;
    this.status = answer.status;
    this.errno = answer.errno;
    this.hint = hint ?? '';
  }
}

/** The clock of this host is outside the validity period of a certificate. */
export class CertificateTimeError extends Error {
  readonly code: string;

  /** @param code CERT_NOT_YET_VALID or CERT_HAS_EXPIRED */
  constructor(
    code: string,
    { fromMs, toMs, nowMs }: { readonly fromMs: number; readonly toMs: number; readonly nowMs: number },
  ) {
    const [from, to, now] = [utcTimeText(fromMs), utcTimeText(toMs), utcTimeText(nowMs)];
    super(
      `the certificate of the server is valid from ${from} to ${to}, and the time of this host is ${now}`,
    );
    this.code = code;
  }
}

/**
 * @param errno also a text that contains it
 * @returns a hint that names the clock first, which is a more frequent cause than the certificate; undefined for other errors
 */
export function certificateTimeHint(errno: string): string | undefined {
  if (errno.includes('CERT_NOT_YET_VALID')) return 'Check the clock of this host: timedatectl set-ntp true.';
  if (errno.includes('CERT_HAS_EXPIRED'))
    return 'Check the clock of this host (timedatectl). If it is right, renew the certificate of the server.';
  return undefined;
}

const refusedCertificate = /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|ALTNAME/;

/** @returns true if this machine does not trust the certificate of the server. @param errno as Node names it */
export function isCertificateErrno(errno: string): boolean {
  return refusedCertificate.test(errno);
}

const certificateHint =
  'Set `ca` of the repository to the authority that signed the certificate, and `url` to a name in it.';

const withoutTlsHint = 'A server without a certificate is named with http:// in `repository`.';

const knownTexts: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no server listens there',
  ENOTFOUND: 'the name has no address',
  EAI_AGAIN: 'the name cannot be resolved now',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  ETIMEDOUT: 'no answer to the attempt to connect',
  UND_ERR_CONNECT_TIMEOUT: 'no answer to the attempt to connect',
  UND_ERR_HEADERS_TIMEOUT: 'no answer to the request',
  UND_ERR_BODY_TIMEOUT: 'the rest of the answer did not come',
};

/**
 * Describes a failed connection.
 * @param reason message of the error, used for an unknown errno
 * @param attempts each address of the name with its errno
 */
export function connectFailure(errno: string, reason: string, attempts = errno): ConnectFailure {
  const timeHint = certificateTimeHint(errno);
  if (timeHint !== undefined) return { text: `${firstLine(reason)} (${errno})`, hint: timeHint };
  if (isCertificateErrno(errno))
    return { text: `the certificate of the server is not trusted (${errno})`, hint: certificateHint };
  if (errno === 'ERR_SSL_WRONG_VERSION_NUMBER' || reason.includes('wrong version number'))
    return { text: 'what answers there does not speak TLS', hint: withoutTlsHint };
  const known = knownTexts[errno];
  return { text: known === undefined ? firstLine(reason) : `${known} (${attempts})` };
}

/** OpenSSL ends its texts with a line feed. */
function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? '';
}
