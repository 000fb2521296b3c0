// Why no connection came about, in words: what Node and OpenSSL say of it names neither the setting nor the cause. Pure.

export interface ConnectFailure {
  /** One line, with the name of the error in it. */
  readonly text: string;
  /** Left out where the code's own hint says all there is. */
  readonly hint?: string;
}

/** What came of the attempt to connect to one address. */
export interface AddressFailure {
  readonly address: string;
  readonly errno: string;
}

/** A machine that answered says more than one that did not, and that more than a missing route. */
const byWeight = ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT'];

/** No address of a host took a connection. */
export class ConnectError extends Error {
  /** The errno that says most. */
  readonly code: string;

  /** @param name left out where the URL has the address itself; its errno says all then */
  constructor(failures: readonly AddressFailure[], name?: string) {
    const errnos = failures.map(({ errno }) => errno);
    const code = byWeight.find((one) => errnos.includes(one)) ?? errnos[0] ?? 'ENOTFOUND';
    super(name === undefined ? code : failures.map(({ address, errno }) => `${address} ${errno}`).join(', '));
    this.code = code;
  }
}

const refusedCertificate = /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|ALTNAME/;

/** @returns whether the certificate of the server is what this machine does not trust. @param errno as Node names it */
export function isCertificateErrno(errno: string): boolean {
  return refusedCertificate.test(errno);
}

const certificateHint =
  'Set `ca` of the repository to the authority that signed the certificate, and `url` to a name in it; renew one that has expired.';

const withoutTlsHint = 'A server without a certificate is named with http:// in `repository`.';

const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no server listens there',
  ENOTFOUND: 'the name has no address',
  EAI_AGAIN: 'the name cannot be resolved now',
  EHOSTUNREACH: 'no way leads there',
  ENETUNREACH: 'no way leads there',
  ETIMEDOUT: 'no answer to the attempt to connect',
  UND_ERR_CONNECT_TIMEOUT: 'no answer to the attempt to connect',
};

/**
 * @param reason what the error says of itself, where nothing better is known
 * @param attempts each address with its errno, where a name has been tried
 */
export function connectFailure(errno: string, reason: string, attempts = errno): ConnectFailure {
  if (isCertificateErrno(errno))
    return { text: `the certificate of the server is not trusted (${errno})`, hint: certificateHint };
  if (errno === 'ERR_SSL_WRONG_VERSION_NUMBER' || reason.includes('wrong version number'))
    return { text: 'what answers there does not speak TLS', hint: withoutTlsHint };
  const known = words[errno];
  return { text: known === undefined ? firstLine(reason) : `${known} (${attempts})` };
}

/** OpenSSL ends its texts with a line feed. */
function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? '';
}
