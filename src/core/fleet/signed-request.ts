// How a host signs its requests to the fleet server (RFC 9421): the headers, and the parts of a request that the signature covers.
// The agent signs and the fleet server verifies. The signature covers neither authority nor path, because proxies rewrite both.

/** Headers in addition to those of the RFC. */
export const fleetHeaders = {
  fleet: 'writ-fleet',
  counter: 'writ-counter',
  /** Nonce of a challenge, only in the request that follows it. */
  nonce: 'writ-nonce',
} as const;

const always = ['@method', 'content-digest', fleetHeaders.fleet, fleetHeaders.counter] as const;

/** Components that the signature covers. `challenged`: of the request that follows a challenge. */
export const signedParts = { first: always, challenged: [...always, fleetHeaders.nonce] } as const;

/** Replaces the name of the fleet in a request of a host that does not know it yet. */
export const noFleet = 'none';

/** Parameters of the signature. `created` only shows a wrong clock and decides nothing. */
export const signatureParameters = ['created', 'keyid', 'alg'] as const;

/** Paths below `fleet.url`. */
export const fleetPaths = { enrol: 'v1/enrol', reports: 'v1/reports' } as const;

/** A counter is a whole number below this. If a hostile response raises the counter, enough numbers remain for years. */
export const maxCounter = 2 ** 52;

/**
 * @returns whether a Signature-Input names each component once and each parameter once, and has a whole number of seconds as
 *   `created`. RFC 9421 (2.5, 2.3) requires all three, but the library that verifies the signature does not check them.
 */
export function isExactSignatureInput(text: string): boolean {
  const [, components = '', parameters = ''] = /^[^=]+=\(([^)]*)\)(.*)$/s.exec(text) ?? [];
  const covered = components.split(' ').filter((one) => one !== '');
  const given = parameters
    .replace(/"[^"]*"/g, '')
    .split(';')
    .slice(1)
    .map((one) => one.trim());
  const names = given.map((one) => one.split('=')[0]);
  const isRepeated = new Set(covered).size !== covered.length || new Set(names).size !== names.length;
  return !isRepeated && given.some((one) => /^created=[0-9]{1,15}$/.test(one));
}
