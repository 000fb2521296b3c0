// How a host signs what it sends to a fleet server (RFC 9421): which headers carry what, and which parts of a request the
// signature is over. Names alone; signing is the agent's, and verifying the server's. Not the authority nor the path: proxies
// rewrite both.

/** Headers beside those of the RFC. */
export const fleetHeaders = {
  fleet: 'writ-fleet',
  counter: 'writ-counter',
  /** Of a challenge; only in its answer. */
  nonce: 'writ-nonce',
} as const;

const always = ['@method', 'content-digest', fleetHeaders.fleet, fleetHeaders.counter] as const;

/** What a request is signed over; `challenged`: the answer to a challenge. */
export const signedParts = { first: always, challenged: [...always, fleetHeaders.nonce] } as const;

/** In place of the name of a fleet, where the host is still to be told it. */
export const noFleet = 'none';

/** Of the signature: nothing is decided by `created`, which shows a clock that is wrong. */
export const signatureParameters = ['created', 'keyid', 'alg'] as const;

/** Paths below `fleet.url`. */
export const fleetPaths = { enrol: 'v1/enrol', reports: 'v1/reports' } as const;

/** A counter is a whole number below this: one that a hostile answer pushes up leaves room for years. */
export const maxCounter = 2 ** 52;

/**
 * Whether a Signature-Input covers each component once, has each parameter once, and a whole number of seconds as `created`: RFC 9421
 * (2.5, 2.3) requires all three, and the library that verifies accepts other texts.
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
