// Changes a repository at the rules where clients are known, or suspected, to differ, each often enough that a difference that
// no longer occurs is noticed. bent-repository.ts has all other changes.

import { createHash } from 'node:crypto';
import { Signature } from '@tufjs/models';
import type { Seeded } from '../../kit/assert/seeded.js';
import { type Bent, type BentRole, keyIdOf } from '../../kit/repository/bent-repository.js';
import type { Loose } from '../../kit/repository/simulated-metadata.js';
import type { ForeignKey } from '../../kit/trust/tuf-js-repository.js';

const signedRoles: readonly BentRole[] = ['timestamp', 'snapshot', 'targets', 'team', 'sub'];

/** The key list and the entry of a role in its delegator. */
function delegatorOf(bent: Bent, role: BentRole): { readonly keys: Loose; readonly entry: Loose } {
  if (role === 'team' || role === 'sub') {
    const { keys, roles } = bent.signed[role === 'team' ? 'targets' : 'team'].delegations;
    return { keys, entry: roles[0] };
  }
  const { keys, roles } = bent.signed.root;
  return { keys, entry: roles[role] };
}

/** Adds the changed first key of a role, under its proper id or the given one, as a signer. */
function relist(bent: Bent, role: BentRole, change: (key: Loose) => void, givenId?: string): void {
  const { keys, entry } = delegatorOf(bent, role);
  const [signer] = bent.signers[role];
  if (signer === undefined) return;
  const listed = structuredClone(keys[signer.id]);
  change(listed);
  const id = givenId ?? keyIdOf(listed);
  keys[id] = listed;
  entry.keyids[0] = id;
  bent.signers[role][0] = renamed(signer, id);
}

function renamed(signer: ForeignKey, id: string): ForeignKey {
  return { ...signer, id, sign: (bytes) => new Signature({ keyID: id, sig: signer.sign(bytes).sig }) };
}

function pemOf(hex: string): string {
  const der = Buffer.from(`302a300506032b6570032100${hex}`, 'hex').toString('base64');
  return `-----BEGIN PUBLIC KEY-----\n${der}\n-----END PUBLIC KEY-----\n`;
}

type Bend = (bent: Bent, random: Seeded) => void;

const teamEntry = (bent: Bent): Loose => bent.signed.targets.delegations.roles[0];

const rules: Readonly<Record<string, Bend>> = {
  'a key under an id that is not its digest': (bent, random) =>
    relist(bent, random.pick(signedRoles), () => undefined, 'ab'.repeat(32)),
  'one public key under two ids': (bent, random) => {
    const role = random.pick(signedRoles);
    const { keys, entry } = delegatorOf(bent, role);
    const [signer] = bent.signers[role];
    if (signer === undefined) return;
    const twin = { ...keys[signer.id], twin: true };
    const id = keyIdOf(twin);
    keys[id] = twin;
    entry.keyids = [signer.id, id];
    entry.threshold = 2;
    bent.signers[role].splice(0, 9, signer, renamed(signer, id));
  },
  'an Ed25519 key in PEM': (bent, random) =>
    relist(bent, random.pick(signedRoles), (key) => {
      key.keyval.public = pemOf(key.keyval.public);
    }),
  'a scheme that is not its key’s': (bent, random) =>
    relist(bent, random.pick(signedRoles), (key) => {
      key.scheme = random.pick(['ecdsa-sha2-nistp256', 'none', '']);
    }),
  'more in a key': (bent, random) =>
    relist(bent, random.pick(signedRoles), (key) =>
      Object.assign(random.pick([key, key.keyval]), random.pick([{ x: 1 }, { x: 'y' }])),
    ),
  'an expiry in another form': (bent, random) => {
    bent.signed[random.pick(['root', ...signedRoles] as const)].expires = random.pick([
      '2031-01-01',
      '2031-01-01T00:00:00',
      '2031-01-01T00:00:00+00:00',
      '2031-01-01T00:00:00.123456Z',
      '2031-02-30T00:00:00Z',
      'Fri, 01 Jan 2031 00:00:00 GMT',
      '2031',
      'never',
    ]);
  },
  'the past': (bent, random) => {
    const past = new Date(bent.nowMs - random.int(2) * 1000).toISOString();
    bent.signed[random.pick(['root', ...signedRoles] as const)].expires = `${past.slice(0, 19)}Z`;
  },
  'another spec_version': (bent, random) => {
    bent.signed[random.pick(['root', ...signedRoles] as const)].spec_version = random.pick([
      '1',
      '1.0',
      '1.99.99',
      '1..0',
      '1.0.-1',
      '1.0x1.0',
      '1.1e1.0',
      '1. .0',
      '1.0.0.0',
      '2.0.0',
      '01.0.0',
    ]);
  },
  'another version': (bent, random) => {
    bent.signed[random.pick(['root', ...signedRoles] as const)].version = random.pick([
      0,
      -1,
      1,
      1.5,
      3,
      2 ** 53,
      1e300,
      '2',
    ]);
  },
  'a timestamp before the first': (bent, random) => {
    bent.signed.timestamp.version = random.pick([0, -1]);
  },
  'another threshold': (bent, random) => {
    const { entry } = delegatorOf(bent, random.pick(signedRoles));
    entry.threshold = random.pick([0, -1, 0.5, 1.5, 2, 3, '1', 2 ** 60]);
  },
  'a key id listed twice': (bent, random) => {
    const { entry } = delegatorOf(bent, random.pick(signedRoles));
    entry.keyids.push(entry.keyids[0]);
  },
  'no consistent_snapshot': (bent) => {
    delete bent.signed.root.consistent_snapshot;
  },
  'no terminating': (bent) => {
    delete teamEntry(bent).terminating;
  },
  'paths and prefixes': (bent, random) => {
    if (random.once(2)) delete teamEntry(bent).paths;
    else teamEntry(bent).path_hash_prefixes = [''];
  },
  'other prefixes': (bent, random) => {
    bent.signed.team.delegations.roles[0].path_hash_prefixes = random.pick([
      [''],
      ['xyz'],
      ['A'],
      [],
      ['0', '1'],
      [1],
    ]);
  },
  'another name of a role': (bent, random) => {
    teamEntry(bent).name = random.pick(['targets', 'root', '', '../team', 'team/x', 'te?m', 'x'.repeat(300)]);
  },
  'a role delegated twice': (bent) => {
    bent.signed.targets.delegations.roles.push(structuredClone(teamEntry(bent)));
  },
  'no meta': (bent) => {
    delete bent.signed[bent.consistent ? 'timestamp' : 'snapshot'].meta;
  },
  'more in the meta of a timestamp': (bent) => {
    bent.signed.timestamp.meta['more.json'] = { version: 1 };
  },
  'no targets in a snapshot': (bent) => {
    delete bent.signed.snapshot.meta['targets.json'];
  },
  'a role that is no longer in the snapshot': (bent) => {
    delete bent.signed.snapshot.meta['team.json'];
  },
  'an older version in the snapshot': (bent, random) => {
    bent.signed.snapshot.meta[random.pick(['targets.json', 'team.json'])].version = random.pick([
      1, 0, -1, 1.5,
    ]);
  },
  'lengths and digests of other kinds': (bent, random) => {
    const entry = random.pick([
      bent.signed.timestamp.meta['snapshot.json'],
      bent.signed.snapshot.meta['targets.json'],
    ]);
    Object.assign(
      entry,
      random.pick([
        { length: 0 },
        { length: -1 },
        { hashes: {} },
        { hashes: { sha256: '' } },
        { hashes: { crc: '0' } },
      ]),
    );
  },
  'a digest of an old kind': (bent) => {
    bent.digests = (bytes) => ({ md5: createHash('md5').update(bytes).digest('hex') });
  },
  'a digest of a kind to come beside a known one': (bent) => {
    bent.digests = (bytes) => ({
      sha256: createHash('sha256').update(bytes).digest('hex'),
      'sha-next': '00',
    });
  },
  'another target entry': (bent, random) => {
    Object.assign(
      bent.signed[random.pick(['targets', 'team', 'sub'] as const)].targets,
      random.pick<object>([
        { x: { length: -1, hashes: { sha256: '00' } } },
        { x: { length: 0, hashes: { sha256: '00' } } },
        { x: { length: 1, hashes: {} } },
        { x: { length: 1, hashes: { md5: '00' } } },
        { x: { length: 1, hashes: { sha256: 1 } } },
        { '': { length: 1, hashes: { sha256: '00' } } },
      ]),
    );
  },
  'no targets at all': (bent, random) => {
    delete bent.signed[random.pick(['targets', 'team', 'sub'] as const)].targets;
  },
  'another pattern': (bent, random) => {
    teamEntry(bent).paths = [
      random.pick([
        '{dns,sub}/*',
        '!(top)/*',
        '*/*',
        '[ds]*/*',
        '#dns/*',
        '!x/*',
        'dns/.*',
        'DNS/*',
        'dns/**',
        '**/*',
        '+(dns)/*',
        '\\dns/*',
        'dns/*.br',
        '*',
        '',
        'dns//*',
        'dns/?hidden',
        '???/stable.*.br',
      ]),
    ];
  },
  'a terminating delegation before the one that lists it': (bent) => {
    const { roles } = bent.signed.targets.delegations;
    roles.unshift({ ...structuredClone(roles[0]), name: 'sub', terminating: true, paths: ['sub/*'] });
  },
  'more roles in the root': (bent, random) => {
    bent.signed.root.roles.mirrors = random.pick([
      { keyids: [], threshold: 1 },
      {},
      { keyids: 'x', threshold: 1 },
    ]);
  },
  'a key listed that is none': (bent, random) => {
    bent.signed.root.keys['cd'.repeat(32)] = random.pick<Loose>([
      {},
      [],
      1,
      null,
      { keytype: 'x', scheme: 'y', keyval: {} },
    ]);
  },
  'a timestamp padded to the bound of most clients': (bent) => {
    bent.text.timestamp = (bytes) => Buffer.from(bytes.toString().padEnd(16_200));
  },
  'the type of another role': (bent, random) => {
    bent.signed[random.pick(signedRoles)]._type = random.pick([
      'root',
      'targets',
      'snapshot',
      'Timestamp',
      '',
    ]);
  },
};

export function bendRule(bent: Bent, random: Seeded): void {
  const [words, bend] = random.pick(Object.entries(rules));
  try {
    bend(bent, random);
    bent.done.push(words);
  } catch (error) {
    // An earlier change has removed the place of this one.
    if (!(error instanceof TypeError)) throw error;
    bent.done.push(`${words} (in vain)`);
  }
}
