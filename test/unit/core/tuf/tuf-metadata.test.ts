import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseEnvelope, type TopLevelRole, topLevelRoles } from '../../../../src/core/tuf/tuf-metadata.js';
import {
  encodeEnvelope,
  type Loose,
  RepositorySimulator,
} from '../../../kit/repository/repository-simulator.js';

const repository = new RepositorySimulator({ nowMs: Date.UTC(2026, 10, 1) });

/** The signed part of a valid file, changed by the test. */
function changed(role: TopLevelRole, change: (signed: Loose) => void): Buffer {
  const signed = structuredClone(repository[role]);
  change(signed);
  return Buffer.from(JSON.stringify({ signatures: [], signed }));
}

function refusedMember(role: TopLevelRole, bytes: Uint8Array): unknown {
  try {
    parseEnvelope(bytes, role);
  } catch (error) {
    const { code, facts } = error as { code: string; facts: Record<string, unknown> };
    assert.equal(code, 'METADATA_MALFORMED');
    assert.equal(facts['role'], role);
    return facts['member'];
  }
  return 'taken';
}

describe('parseEnvelope', () => {
  for (const role of topLevelRoles) {
    it(`takes a ${role}, keeps unknown members, and signs them with the rest`, () => {
      const bytes = changed(role, (signed) => {
        signed['x-unknown'] = { nested: [1, 'two'] };
      });
      const file = parseEnvelope(bytes, role);
      assert.equal(file.signed.version, 1);
      assert.match(Buffer.from(file.signedBytes).toString(), /"x-unknown":\{"nested":\[1,"two"\]\}/);
      assert.equal(file.bytes, bytes);
    });

    it(`refuses a ${role} without a right version, type, expiry or specification`, () => {
      for (const version of [0, -1, 1.5, '1', null, 1e300]) {
        assert.notEqual(
          refusedMember(
            role,
            changed(role, (signed) => Object.assign(signed, { version })),
          ),
          'taken',
        );
      }
      for (const spec of ['2.0.0', '1', '1.0.x', '10.0', 'v1.0', '']) {
        const bytes = changed(role, (signed) => Object.assign(signed, { spec_version: spec }));
        assert.equal(refusedMember(role, bytes), 'spec_version');
      }
      for (const expires of ['never', '2027-02-30T00:00:00Z', '2027-01-01', '2027-01-01T00:00:00+01:00', 0]) {
        assert.equal(
          refusedMember(
            role,
            changed(role, (signed) => Object.assign(signed, { expires })),
          ),
          'expires',
        );
      }
      const wrongType = changed(role, (signed) => Object.assign(signed, { _type: 'mirrors' }));
      assert.equal(refusedMember(role, wrongType), '_type');
    });
  }

  it('accepts the short form of the specification version', () => {
    for (const spec of ['1.0', '1.0.0', '1.0.34']) {
      const bytes = changed('targets', (signed) => Object.assign(signed, { spec_version: spec }));
      assert.equal(parseEnvelope(bytes, 'targets').signed.spec_version, spec);
    }
  });

  it('accepts a root without consistent_snapshot, and rejects one if it is no boolean', () => {
    const bytes = changed('root', (signed) => delete signed.consistent_snapshot);
    assert.equal(parseEnvelope(bytes, 'root').signed.consistent_snapshot, undefined);
    const wrong = changed('root', (signed) => Object.assign(signed, { consistent_snapshot: 'false' }));
    assert.equal(refusedMember('root', wrong), 'consistent_snapshot');
  });

  it('rejects a root with incomplete roles or keys', () => {
    const cases: [string, (signed: Loose) => void][] = [
      ['roles.snapshot', (signed) => delete signed.roles.snapshot],
      ['roles.root.threshold', (signed) => Object.assign(signed.roles.root, { threshold: 0 })],
      ['roles.root.keyids', (signed) => Object.assign(signed.roles.root, { keyids: 'all' })],
      ['roles.root.keyids[]', (signed) => Object.assign(signed.roles.root, { keyids: [1] })],
      ['keys', (signed) => delete signed.keys],
      ['keys.abc.keyval', (signed) => Object.assign(signed.keys, { abc: { keytype: 'x', scheme: 'x' } })],
      ['keys.abc', (signed) => Object.assign(signed.keys, { abc: [] })],
    ];
    for (const [member, change] of cases)
      assert.equal(refusedMember('root', changed('root', change)), member);
  });

  it('refuses a timestamp that names anything beside the snapshot, or that was signed after its end', () => {
    const cases: [string, (signed: Loose) => void][] = [
      ['meta', (signed) => Object.assign(signed.meta, { 'targets.json': { version: 1 } })],
      ['meta', (signed) => Object.assign(signed, { meta: {} })],
      ['meta.snapshot.json.version', (signed) => Object.assign(signed.meta['snapshot.json'], { version: 0 })],
      ['meta.snapshot.json.length', (signed) => Object.assign(signed.meta['snapshot.json'], { length: 0 })],
      ['meta.snapshot.json.hashes', (signed) => Object.assign(signed.meta['snapshot.json'], { hashes: {} })],
      ['writ.signedAt', (signed) => Object.assign(signed, { writ: { signedAt: '2036-01-01T00:00:00Z' } })],
      ['writ.signedAt', (signed) => Object.assign(signed, { writ: {} })],
      ['writ', (signed) => Object.assign(signed, { writ: 'now' })],
    ];
    for (const [member, change] of cases) {
      assert.equal(refusedMember('timestamp', changed('timestamp', change)), member);
    }
  });

  it('accepts a timestamp of another publisher', () => {
    assert.equal(
      parseEnvelope(
        changed('timestamp', (signed) => delete signed.writ),
        'timestamp',
      ).signed.version,
      1,
    );
  });

  it('refuses a snapshot without targets, and target entries without length or digest', () => {
    assert.equal(
      refusedMember(
        'snapshot',
        changed('snapshot', (signed) => Object.assign(signed, { meta: {} })),
      ),
      'meta.targets.json',
    );
    for (const file of [
      {},
      { length: -1, hashes: { sha256: 'a' } },
      { length: 1, hashes: {} },
      { length: 1 },
      7,
    ]) {
      const bytes = changed('targets', (signed) => Object.assign(signed.targets, { 'a/b': file }));
      assert.match(String(refusedMember('targets', bytes)), /^a\/b/);
    }
  });

  it('accepts at most 64 signatures, because each is verified over the whole file', () => {
    const { targets } = repository;
    const of = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ keyid: String(at), sig: '00' }));
    assert.equal(parseEnvelope(encodeEnvelope(of(64), targets), 'targets').signatures.length, 64);
    assert.equal(refusedMember('targets', encodeEnvelope(of(65), targets)), 'signatures');
  });

  it('rejects a key id that signs twice, and malformed signatures', () => {
    const { targets } = repository;
    const twice = [
      { keyid: 'a', sig: '00' },
      { keyid: 'a', sig: '01' },
    ];
    assert.throws(() => parseEnvelope(encodeEnvelope(twice, targets), 'targets'), {
      code: 'SIGNATURE_DUPLICATE',
    });
    for (const signatures of [undefined, {}, [1], [{ keyid: 1, sig: '' }], [{ keyid: 'a' }]]) {
      const bytes = Buffer.from(JSON.stringify({ signatures, signed: targets }));
      assert.match(String(refusedMember('targets', bytes)), /^signatures/);
    }
  });

  it('rejects a file that would exhaust the memory, and accepts the densest real one', () => {
    for (const unit of ['{}', '[]', '{"":0}']) {
      const many = `{"x":[${`${unit},`.repeat(100_000).slice(0, -1)}]}`;
      assert.match(String(refusedMember('targets', Buffer.from(many))), /too many/);
    }
    const roles = Array.from({ length: 50_000 }, (_, index) => [
      `${index.toString(36)}.json`,
      { version: 1 },
    ]);
    const dense = changed('snapshot', (signed) => Object.assign(signed.meta, Object.fromEntries(roles)));
    assert.equal(refusedMember('snapshot', dense), 'taken');
  });

  for (const text of [
    '',
    '[]',
    'null',
    '{}',
    '{"signed":[]}',
    '<html>',
    '{"signed":{},"signed":{}}',
    '\ufeff{}',
  ]) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      assert.notEqual(refusedMember('timestamp', Buffer.from(text)), 'taken');
    });
  }
});
