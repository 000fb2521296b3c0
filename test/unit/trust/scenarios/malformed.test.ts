// Values that no file of its role may have, well signed wherever they can be: each is refused for what it is, and
// the host that met them all takes the honest file afterwards.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Loose } from '../../../kit/repository/repository-simulator.js';
import { isoTime } from '../../../kit/repository/simulated-metadata.js';
import { startMs, type TrustBench, trustBench } from '../../../kit/trust/trust-bench.js';

const roles = ['root', 'timestamp', 'snapshot', 'targets'] as const;
type Role = (typeof roles)[number];

/** A host with version 1 of everything, and a server with version 2. */
async function offered(): Promise<TrustBench> {
  const bench = trustBench();
  assert.equal(await bench.refresh(), 'trusted');
  bench.repository.bumpRoot();
  bench.repository.publish();
  return bench;
}

type Change = (signed: Loose) => void;

/** Every change is refused as malformed; then the file as it should be is taken. */
async function refuses(role: Role, changes: Readonly<Record<string, Change>>): Promise<void> {
  using bench = await offered();
  for (const [name, change] of Object.entries(changes)) {
    bench.repository.alter(role, change);
    await refusedNow(bench, role, name);
  }
  bench.repository.alter(role, () => undefined);
  assert.equal(await bench.refresh(), 'trusted', 'the honest file');
}

/** As refuses, for what has no canonical form and so no signature: the text of the file is changed. */
async function refusesTexts(
  role: Role,
  texts: readonly ((text: string) => string | Buffer)[],
): Promise<void> {
  using bench = await offered();
  const { repository } = bench;
  const text = repository.file(repository.nameOf(role)).toString();
  for (const change of texts) {
    const changed = Buffer.from(change(text));
    assert.notEqual(changed.toString(), text, String(change));
    repository.serve(repository.nameOf(role), changed);
    await refusedNow(bench, role, String(change));
  }
  repository.serve(repository.nameOf(role), Buffer.from(text));
  assert.equal(await bench.refresh(), 'trusted', 'the honest file');
}

async function refusedNow(bench: TrustBench, role: Role, what: string): Promise<void> {
  assert.equal(await bench.refresh(), 'METADATA_MALFORMED', what);
  assert.equal(bench.refusal?.facts['role'], role, what);
  assert.equal(bench.stored()[role], 1, what);
}

function values(member: string, list: readonly unknown[]): Record<string, Change> {
  return Object.fromEntries(
    list.map((value) => [
      `${member} = ${JSON.stringify(value)}`,
      (signed: Loose) => {
        if (value === undefined) delete signed[member];
        else signed[member] = value;
      },
    ]),
  );
}

for (const role of roles) {
  describe(`a malformed ${role}`, () => {
    it('has a version that is no counting number', async () => {
      await refuses(role, values('version', [0, -1, '2', null, true, [2], undefined]));
      const numbers = ['1.5', '2.0', '2e0', '1e300', '-2', '-0', '02', '9007199254740993', 'NaN', 'Infinity'];
      await refusesTexts(
        role,
        numbers.map((number) => (text) => text.replace(/"version":2(?=[,}])/g, `"version":${number}`)),
      );
    });

    it('expires at a time that cannot be parsed', async () => {
      const times = [
        'never',
        '',
        '2027-11-01',
        '2027-13-01T00:00:00Z',
        '2027-02-30T00:00:00Z',
        '2027-11-01T25:00:00Z',
      ];
      const zones = ['2027-11-01T00:00:00', '2027-11-01T00:00:00+02:00', '2027-11-01T00:00:00z'];
      await refuses(role, values('expires', [...times, ...zones, 1_900_000_000, null, undefined]));
    });

    it('is of a specification that is not ours', async () => {
      const versions = [
        '2.0.0',
        '2.0',
        '0.9.0',
        '10.0.0',
        '1',
        '',
        'v1.0',
        '1.0.0.0',
        '1.x',
        1,
        null,
        undefined,
      ];
      await refuses(role, values('spec_version', versions));
    });

    it('is of no type, or another one', async () => {
      const others = roles.filter((other) => other !== role);
      await refuses(role, values('_type', [...others, 'mirrors', '', null, undefined, [role]]));
    });

    it('is no file of two members', async () => {
      await refusesTexts(role, [
        () => '',
        () => 'null',
        () => '[]',
        () => '<html>503</html>',
        (text) => text.slice(0, text.length / 2),
        (text) => text.slice(0, -1),
        (text) => `${text}${text}`,
        (text) => `${text}{}`,
        (text) => `\ufeff${text}`,
        (text) => Buffer.from(text, 'utf16le'),
        (text) => Buffer.concat([Buffer.from(text), Buffer.from([0xff])]),
        (text) => text.replace('"signatures":', '"signature":'),
        (text) => text.replace('"signed":', '"sinned":'),
        (text) => text.replace('"signatures":[', '"signatures":[null,'),
        (text) => text.replace('"keyid":', '"key_id":'),
        (text) => text.replace(/"sig":"[^"]*"/, '"sig":7'),
      ]);
    });

    it('has a member twice, or text that two parsers would read differently', async () => {
      await refusesTexts(role, [
        (text) => text.replace('"version":2', '"version":1,"version":2'),
        (text) => text.replace('"signed":{', '"signed":{"_type":"root",'),
        (text) => text.replace('"signed":', '"signed":{},"signed":'),
        (text) => text.replace('"signed":{', '"signed":{"x":"\\ud800",'),
        (text) => text.replace('"signed":{', '"signed":{"\\udfff":1,'),
        (text) => text.replace('"signed":{', '"signed":{"x":0.1,'),
        (text) => text.replace('"signed":{', '"signed":{"x":"\n",'),
        (text) => text.replace('"signed":{', '"signed":{/**/'),
        (text) => text.replace('"signed":{', '"signed":{\'x\':1,'),
        (text) => text.replace('"signed":{', `"signed":{"x":${'['.repeat(5000)}${']'.repeat(5000)},`),
      ]);
    });
  });
}

describe('what only some roles have', () => {
  const zeroes = [0, -1, '1', null, undefined];

  it('root: keys, roles and thresholds', async () => {
    await refuses('root', {
      ...values('keys', [[], 'none', null, undefined]),
      ...values('roles', [[], {}, null, undefined]),
      ...values('consistent_snapshot', ['yes', 1, null, {}]),
      ...Object.fromEntries(
        zeroes.map((threshold) => [
          `threshold = ${threshold}`,
          (signed: Loose) => {
            signed.roles.targets = { ...signed.roles.targets, threshold };
            if (threshold === undefined) delete signed.roles.targets.threshold;
          },
        ]),
      ),
      'no key ids': (signed) => delete signed.roles.timestamp.keyids,
      'key ids that are numbers': (signed) => (signed.roles.timestamp.keyids = [1]),
      'no snapshot role': (signed) => delete signed.roles.snapshot,
      'a key without a value': (signed) => (signed.keys.x = { keytype: 'ed25519', scheme: 'ed25519' }),
    });
  });

  it('timestamp: exactly one snapshot', async () => {
    await refuses('timestamp', {
      ...values('meta', [{}, [], null, undefined, { 'targets.json': { version: 1 } }]),
      'two files': (signed) => (signed.meta['targets.json'] = { version: 1 }),
      'version 0': (signed) => (signed.meta['snapshot.json'].version = 0),
      'no digests': (signed) => (signed.meta['snapshot.json'].hashes = {}),
      'a length of nothing': (signed) => (signed.meta['snapshot.json'].length = 0),
      'a digest that is a number': (signed) => (signed.meta['snapshot.json'].hashes = { sha256: 1 }),
      'signed when it was over': (signed) => (signed.writ.signedAt = '2099-01-01T00:00:00Z'),
      'signed at no time': (signed) => (signed.writ.signedAt = 'now'),
    });
  });

  it('snapshot: the targets, and versions of everything', async () => {
    await refuses('snapshot', {
      ...values('meta', [{}, [], null, undefined, { 'team.json': { version: 1 } }]),
      'a role at version 0': (signed) => (signed.meta['team.json'] = { version: 0 }),
      'a role without a version': (signed) => (signed.meta['team.json'] = {}),
      'a role with no digest': (signed) => (signed.meta['team.json'] = { version: 1, hashes: {} }),
    });
  });

  it('targets: length and digests of each', async () => {
    const entry = { length: 3, hashes: { sha256: 'ab'.repeat(32) } };
    const entries: readonly Loose[] = [
      { ...entry, hashes: {} },
      { ...entry, hashes: [] },
      { ...entry, hashes: { sha256: 7 } },
      { length: 3 },
      { hashes: entry.hashes },
      { ...entry, length: -1 },
      { ...entry, length: '3' },
      null,
      [],
    ];
    await refuses('targets', {
      ...values('targets', [[], null, undefined, 'none']),
      ...Object.fromEntries(
        entries.map((value) => [JSON.stringify(value), (signed: Loose) => (signed.targets['a/b'] = value)]),
      ),
    });
  });

  it('root without consistent_snapshot means false, and so it is asked for', async () => {
    for (const consistent of ['absent', false] as const) {
      using bench = trustBench({ consistent });
      assert.equal(await bench.refresh(), 'trusted');
      assert.deepEqual(bench.asked().slice(2), ['snapshot.json', 'targets.json']);
      bench.repository.publish();
      assert.equal(await bench.refresh(), 'trusted');
      assert.deepEqual(bench.asked().slice(2), ['snapshot.json', 'targets.json']);
      bench.repository.snapshot.version = 9;
      bench.repository.bumpTimestamp();
      assert.equal(await bench.refresh(), 'trusted', 'a snapshot that is not named yet is not asked for');
    }
  });

  it('a repository that begins to have consistent snapshots is followed', async () => {
    using bench = trustBench({ consistent: 'absent' });
    await bench.refresh();
    bench.asked();
    bench.repository.root.consistent_snapshot = true;
    bench.repository.bumpRoot();
    bench.repository.publish();
    assert.equal(await bench.refresh(), 'trusted');
    assert.deepEqual(bench.asked().slice(-2), ['2.snapshot.json', '2.targets.json']);
  });
});

describe('unusual files that are valid', () => {
  it('other versions of the same specification, and the last second of 9999', async () => {
    for (const role of roles) {
      using bench = await offered();
      for (const version of ['1.0', '1.0.0', '1.0.99', '1.9.12']) {
        bench.repository.signedOf(role).spec_version = version;
        if (role === 'root') bench.repository.bumpRoot();
        bench.repository.publish();
        assert.equal(await bench.refresh(), 'trusted', `${role} ${version}`);
      }
      bench.repository.signedOf(role).expires = isoTime(Date.UTC(9999, 11, 31, 23, 59, 59));
      if (role === 'root') bench.repository.bumpRoot();
      bench.repository.publish();
      assert.equal(await bench.refresh(), 'trusted', `${role} to the end of time`);
      assert.ok((bench.client.status()?.roles[role]?.expiresAtMs ?? 0) > startMs);
    }
  });
});
