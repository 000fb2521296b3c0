// A signed repository as plain values, one version after a correct one. A seeded generator changes it before or after its
// signatures, or as text and bytes. The test compares the clients.
import { createHash } from 'node:crypto';
import type { Seeded } from '../assert/seeded.js';
import { type ForeignKey, foreignKey } from '../trust/tuf-js-repository.js';
import { dayMs, isoTime, type Loose } from './simulated-metadata.js';

export const bentRoles = ['root', 'timestamp', 'snapshot', 'targets', 'team', 'sub'] as const;
export type BentRole = (typeof bentRoles)[number];

/** Paths to search: listed by targets, by each delegated role, and by no role. */
export const searchedPaths: readonly string[] = [
  'dns/stable.tar.br',
  'sub/x',
  'sub/y',
  'dns/.hidden',
  'constructor',
];

export interface Bent {
  readonly nowMs: number;
  readonly consistent: boolean;
  readonly pinned: boolean;
  /** The signed parts by role. */
  readonly signed: Record<BentRole, Loose>;
  readonly signers: Record<BentRole, ForeignKey[]>;
  /** Changes of the envelope after signing. */
  readonly envelope: Partial<Record<BentRole, (envelope: Loose) => void>>;
  /** Changes of the text after those of the envelope. */
  readonly text: Partial<Record<BentRole, (bytes: Buffer) => Buffer>>;
  /** Digest algorithms of pinned entries, in place of SHA-256. */
  digests?: (bytes: Buffer) => Record<string, string>;
  /** Description of the changes, for the message of a failing test. */
  readonly done: string[];
}

const key = (name: string): ForeignKey => foreignKey('ed25519', `bent: ${name}`);
const keysOf: Readonly<Record<BentRole, readonly ForeignKey[]>> = {
  root: [key('root 1'), key('root 2'), key('root 3')],
  timestamp: [key('timestamp')],
  snapshot: [key('snapshot')],
  targets: [key('targets 1'), key('targets 2')],
  team: [key('team 1'), key('team 2')],
  sub: [key('sub')],
};
const strangerKey: ForeignKey = key('stranger');

export interface HonestOptions {
  readonly nowMs: number;
  readonly version: number;
  readonly consistent: boolean;
  readonly pinned: boolean;
}

/** @returns a repository without a fault */
export function honest({ nowMs, version, consistent, pinned }: HonestOptions): Bent {
  const expires = isoTime(nowMs + 30 * dayMs);
  const base = (type: string) => ({ _type: type, spec_version: '1.0.31', version, expires });
  const listed = (roles: readonly BentRole[]) =>
    Object.fromEntries(
      roles.flatMap((role) => keysOf[role]).map(({ id, key: made }) => [id, structuredClone(made.toJSON())]),
    );
  const roleKeys = (role: BentRole, threshold: number) => ({
    keyids: keysOf[role].map(({ id }) => id),
    threshold,
  });
  const delegations = (role: BentRole, rest: object) => ({
    keys: listed([role]),
    roles: [{ name: role, ...roleKeys(role, 1), terminating: false, ...rest }],
  });
  return {
    nowMs,
    consistent,
    pinned,
    signed: {
      root: {
        ...base('root'),
        consistent_snapshot: consistent,
        keys: listed(['root', 'timestamp', 'snapshot', 'targets']),
        roles: {
          root: roleKeys('root', 2),
          timestamp: roleKeys('timestamp', 1),
          snapshot: roleKeys('snapshot', 1),
          targets: roleKeys('targets', 1),
        },
      },
      timestamp: { ...base('timestamp'), meta: { 'snapshot.json': { version } } },
      snapshot: {
        ...base('snapshot'),
        meta: { 'targets.json': { version }, 'team.json': { version }, 'sub.json': { version } },
      },
      targets: {
        ...base('targets'),
        targets: { 'top/stable.tar.br': target('top') },
        delegations: delegations('team', { paths: ['dns/*', 'sub/?'] }),
      },
      team: {
        ...base('targets'),
        targets: {
          'dns/stable.tar.br': target('dns'),
          'dns/.hidden': target('hidden'),
          'nobody/has-it': target('no'),
        },
        delegations: delegations('sub', { path_hash_prefixes: [digest('sub/x').slice(0, 2)] }),
      },
      sub: { ...base('targets'), targets: { 'sub/x': target('x'), 'sub/y': target('y') } },
    },
    signers: Object.fromEntries(bentRoles.map((role) => [role, [...keysOf[role]]])) as Bent['signers'],
    envelope: {},
    text: {},
    done: [],
  };
}

function digest(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

function target(text: string): Loose {
  return { length: text.length, hashes: { sha256: digest(text) }, custom: { note: text } };
}

/** @returns the served files by path; their names have the intended version */
export function render(bent: Bent, version: number): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const place = (role: BentRole): Buffer => {
    const bytes = sealed(bent, role);
    const versioned = role === 'root' || (bent.consistent && role !== 'timestamp');
    files.set(`metadata/${versioned ? `${version}.` : ''}${role}.json`, bytes);
    return bytes;
  };
  const describe = (meta: Loose, bytes: Buffer): void => {
    // A changed entry is left as it is.
    if (!bent.pinned || meta === null || typeof meta !== 'object' || 'bent' in meta) return;
    if (!('length' in meta)) meta.length = bytes.length;
    if (!('hashes' in meta)) meta.hashes = bent.digests?.(bytes) ?? { sha256: digest(bytes) };
  };
  for (const role of ['sub', 'team', 'targets'] as const)
    describe(bent.signed.snapshot?.meta?.[`${role}.json`], place(role));
  describe(bent.signed.timestamp?.meta?.['snapshot.json'], place('snapshot'));
  place('timestamp');
  place('root');
  return files;
}

function sealed(bent: Bent, role: BentRole): Buffer {
  const signed = bent.signed[role];
  const bytes = Buffer.from(canonical(signed));
  const signatures = bent.signers[role].map((signer) => signer.sign(bytes).toJSON());
  const envelope = { signatures, signed };
  bent.envelope[role]?.(envelope);
  const text = Buffer.from(JSON.stringify(envelope));
  return bent.text[role]?.(text) ?? text;
}

/**
 * @returns OLPC canonical JSON of any value, including floats, because a changed file is signed in the form its publisher
 * meant
 */
function canonical(value: Loose): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value === 'string') return `"${value.replace(/["\\]/g, '\\$&')}"`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${canonical(name)}:${canonical(value[name])}`).join(',')}}`;
}

/** @returns the key id computed from the current members of the key */
export function keyIdOf(value: Loose): string {
  return digest(canonical(value));
}

/** Values that replace another value. */
const odd: readonly Loose[] = [
  null,
  true,
  false,
  0,
  -1,
  1,
  2,
  3,
  1.5,
  1e300,
  2 ** 53,
  '',
  'x',
  '1',
  'é\u{1f600}',
  [],
  {},
  ['x'],
  { x: 1 },
  'root',
  'sha256',
  '2031-01-01T00:00:00Z',
];

interface Place {
  readonly parent: Loose;
  readonly name: string | number;
  readonly path: string;
}

function placesIn(value: Loose, path: string, into: Place[] = []): Place[] {
  if (value === null || typeof value !== 'object') return into;
  for (const name of Object.keys(value)) {
    const index = Array.isArray(value) ? Number(name) : name;
    into.push({ parent: value, name: index, path: `${path}.${name}` });
    placesIn(value[name], `${path}.${name}`, into);
  }
  return into;
}

/** Changes one place of a signed part: another value, none, a copy, another place, another name. */
export function bendAnywhere(bent: Bent, random: Seeded): void {
  const role = random.pick(bentRoles);
  const { parent, name, path } = random.pick(placesIn(bent.signed[role], role));
  const value = parent[name];
  const act = random.int(8);
  if (path.includes('meta.') && typeof parent === 'object' && !Array.isArray(parent)) parent.bent = 1;
  if (act <= 2) {
    parent[name] = structuredClone(random.pick(odd));
    bent.done.push(`${path} = ${JSON.stringify(parent[name])}`);
  } else if (act === 3) {
    if (Array.isArray(parent)) parent.splice(Number(name), 1);
    else delete parent[name];
    bent.done.push(`${path} removed`);
  } else if (act === 4 && typeof value === 'number') {
    parent[name] = value + random.pick([-2, -1, 1, 2]);
    bent.done.push(`${path} = ${parent[name]}`);
  } else if (act === 5 && typeof value === 'string' && value !== '') {
    const at = random.int(value.length);
    parent[name] = value.slice(0, at) + random.pick(['', 'A', '0', '/', '*', '.']) + value.slice(at + 1);
    bent.done.push(`${path} = ${JSON.stringify(parent[name])}`);
  } else if (act === 6) {
    if (Array.isArray(parent)) parent.push(structuredClone(value));
    else parent[`${name}~`] = structuredClone(value);
    bent.done.push(`${path} doubled`);
  } else {
    const other = random.pick(placesIn(bent.signed[random.pick(bentRoles)], ''));
    parent[name] = structuredClone(other.parent[other.name]);
    bent.done.push(`${path} = that of ${other.path}`);
  }
}

/** Changes the signers: one less, an unknown key, a repeated one, none, or additional garbage. */
export function bendSignatures(bent: Bent, random: Seeded): void {
  const role = random.pick(bentRoles);
  const acts: Readonly<Record<string, () => void>> = {
    'nobody signs': () => bent.signers[role].splice(0),
    'one signs less': () => bent.signers[role].pop(),
    'a stranger signs': () => bent.signers[role].splice(0, 9, strangerKey),
    'a stranger signs too': () => bent.signers[role].push(strangerKey),
    'signs before a change': () => {
      bent.envelope[role] = (envelope) => {
        envelope.signed = { ...envelope.signed, version: 7 };
      };
    },
    'one signs twice': () => {
      bent.envelope[role] = ({ signatures }) => signatures.push(signatures[0]);
    },
    'one signature is garbled': () => {
      const at = random.int(128);
      bent.envelope[role] = ({ signatures }) => {
        const { sig } = signatures[0];
        signatures[0].sig = sig.slice(0, at) + random.pick(['', '0', 'f', 'x', 'é']) + sig.slice(at + 1);
      };
    },
    'a signature goes on behind its end': () => {
      const tail = random.pick(['zz', '0', ' ', '00']);
      bent.envelope[role] = ({ signatures }) => {
        for (const one of signatures) one.sig += tail;
      };
    },
    'the envelope has more': () => {
      bent.envelope[role] = (envelope) => {
        envelope.more = random.pick([1.5, 'x', { signed: 1 }]);
      };
    },
    'a signature is none': () => {
      bent.envelope[role] = ({ signatures }) =>
        signatures.push(random.pick([null, 1, {}, { keyid: 'x' }, { keyid: 1, sig: '' }]));
    },
  };
  const [description, act] = random.pick(Object.entries(acts));
  act();
  bent.done.push(`${role}: ${description}`);
}

/** Changes the text of a file after it was signed. */
export function bendText(bent: Bent, random: Seeded): void {
  const role = random.pick(bentRoles);
  const seed = random.int(1 << 30);
  const at = (bytes: Buffer): number => seed % bytes.length;
  const flip = 1 + random.int(255);
  const acts: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
    'a byte changed': (bytes) => {
      const copy = Buffer.from(bytes);
      copy[at(bytes)] = (copy[at(bytes)] ?? 0) ^ flip;
      return copy;
    },
    'a byte less': (bytes) => Buffer.concat([bytes.subarray(0, at(bytes)), bytes.subarray(at(bytes) + 1)]),
    'a byte more': (bytes) =>
      Buffer.concat([bytes.subarray(0, at(bytes)), Buffer.from([flip]), bytes.subarray(at(bytes))]),
    'cut off': (bytes) => bytes.subarray(0, at(bytes)),
    'white space around': (bytes) => Buffer.from(` \n${bytes}\r\n\t`),
    'a byte order mark': (bytes) => Buffer.concat([Buffer.from('efbbbf', 'hex'), bytes]),
    'text behind the end': (bytes) => Buffer.from(`${bytes}{}`),
    'a member twice': (bytes) => Buffer.from(bytes.toString().replace(/"version":\d+/, '$&,$&')),
    'a signature list twice': (bytes) => Buffer.from(bytes.toString().replace('{', '{"signatures":[],')),
    'the version as 2.0': (bytes) =>
      Buffer.from(bytes.toString().replace(/"version":(\d+)/, '"version":$1.0')),
    'the version as 2e0': (bytes) =>
      Buffer.from(bytes.toString().replace(/"version":(\d+)/, '"version":$1e0')),
    'an escape where none is needed': (bytes) =>
      Buffer.from(bytes.toString().replace('"signed"', '"sign\\u0065d"')),
    'bytes that are no UTF-8': (bytes) =>
      Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xff]), Buffer.from('",'), bytes.subarray(1)]),
    'a lone surrogate': (bytes) => Buffer.from(bytes.toString().replace('{', '{"x":"\\ud800",')),
    'deep nesting': (bytes) =>
      Buffer.from(bytes.toString().replace('{', `{"x":${'['.repeat(100)}${']'.repeat(100)},`)),
  };
  const [description, act] = random.pick(Object.entries(acts));
  bent.text[role] = act;
  bent.done.push(`${role}: ${description}`);
}
