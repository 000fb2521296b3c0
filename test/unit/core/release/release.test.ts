// The signed description of a release: it is unchanged after encoding and parsing, and invalid members are rejected.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type Digest, digestFromHex } from '../../../../src/core/names.js';
import {
  encodeReleaseInfo,
  parseIsoTime,
  parseReleaseInfo,
  type ReleaseInfo,
} from '../../../../src/core/release/release.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';

const digest = digestFromHex('ab'.repeat(32)) as Digest;
const release: ReleaseInfo = {
  bundle: 'dns-edge',
  channel: 'stable',
  serial: 7,
  revision: 'git 1f0c',
  createdAtMs: Date.UTC(2026, 10, 1, 12),
  manifest: { digest, length: 512 },
  withdrawn: [3, 5],
};

function parse(changes: Record<string, unknown>): ReleaseInfo {
  return parseReleaseInfo({ writ: { ...encodeReleaseInfo(release), ...changes } }, 'dns-edge/stable.tar.br');
}

describe('the deltas of a release', () => {
  const other = digestFromHex('cd'.repeat(32)) as Digest;
  const row = { from: 'cd'.repeat(32), length: 188, sha256: 'ef'.repeat(32) };
  const delta = { from: other, length: 188, digest: digestFromHex('ef'.repeat(32)) as Digest };

  it('are encoded and parsed, without the members of later publishers', () => {
    const custom = encodeReleaseInfo({ ...release, deltas: [delta] });
    assert.deepEqual(custom['deltas'], [row]);
    assert.deepEqual(parse({ deltas: [{ ...row, window: 3 }] }).deltas, [delta]);
    assert.equal('deltas' in parse({}), false);
  });

  it('are at most eight, each with another base', () => {
    const rows = Array.from({ length: 9 }, (_, index) => ({ ...row, from: `${index}`.repeat(64) }));
    assert.equal(parse({ deltas: rows.slice(0, 8) }).deltas?.length, 8);
    throwsCode('TARGET_MALFORMED', () => parse({ deltas: rows }));
    throwsCode('TARGET_MALFORMED', () => parse({ deltas: [row, { ...row, sha256: 'aa'.repeat(32) }] }));
    throwsCode('TARGET_MALFORMED', () => parse({ deltas: [{ ...row, from: 'ab'.repeat(32) }] }));
  });

  const malformed: [string, unknown][] = [
    ['an empty list', []],
    ['no list', { 0: row }],
    ['null', null],
    ['a row that is none', [null]],
    ['a base by its serial', [{ ...row, from: 6 }]],
    ['a digest in capitals', [{ ...row, sha256: 'EF'.repeat(32) }]],
    ['no length', [{ from: row.from, sha256: row.sha256 }]],
    ['a length of nothing', [{ ...row, length: 0 }]],
    ['a length that is no number', [{ ...row, length: '188' }]],
    ['a length that is no integer', [{ ...row, length: 1e300 }]],
  ];
  for (const [name, deltas] of malformed) {
    it(`are refused with ${name}`, () => {
      throwsCode('TARGET_MALFORMED', () => parse({ deltas }));
    });
  }
});

describe('a release', () => {
  it('is encoded as the metadata contains it', () => {
    assert.deepEqual(encodeReleaseInfo(release), {
      bundle: 'dns-edge',
      channel: 'stable',
      serial: 7,
      revision: 'git 1f0c',
      createdAt: '2026-11-01T12:00:00.000Z',
      manifest: { sha256: 'ab'.repeat(32), length: 512 },
      withdrawn: [3, 5],
    });
  });

  it('is parsed as it was encoded', () => {
    const serial = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
    const releases = fc.record(
      {
        bundle: fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,63}$/),
        channel: fc.constantFrom('stable', 'canary'),
        serial,
        revision: fc.string({ maxLength: 200 }).filter((text) => text.length <= 200),
        createdAtMs: fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) }),
        manifest: fc.record({ digest: fc.constant(digest), length: serial }, { noNullPrototype: true }),
        withdrawn: fc.array(serial, { maxLength: 20 }),
        requires: fc.constantFrom(['waves-1'], ['brake.2', 'waves-1']),
      },
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(releases, (info) => {
        const custom = JSON.parse(JSON.stringify({ writ: encodeReleaseInfo(info) }));
        assert.deepEqual(parseReleaseInfo(custom, 'x'), info);
      }),
    );
  });

  it('names the release that it corrects, which has a lower serial', () => {
    assert.equal(encodeReleaseInfo({ ...release, fixes: 6 })['fixes'], 6);
    assert.equal(parse({ fixes: 6 }).fixes, 6);
    throwsCode('TARGET_MALFORMED', () => parse({ fixes: 7 }));
    assert.equal('fixes' in parse({}), false);
    assert.equal('fixes' in encodeReleaseInfo(release), false);
  });

  it('may have members of a later publisher', () => {
    assert.deepEqual(parse({ notes: 'later' }), release);
  });
});

describe('a release that is refused', () => {
  const cases: readonly [string, unknown][] = [
    ['bundle', '../etc'],
    ['bundle', undefined],
    ['channel', 'Stable'],
    ['serial', 0],
    ['serial', 1.5],
    ['serial', '7'],
    ['serial', 2 ** 53],
    ['revision', 7],
    ['revision', 'x'.repeat(201)],
    ['createdAt', '2026-11-01'],
    ['createdAt', 1_793_534_400_000],
    ['manifest', null],
    ['manifest', { sha256: 'AB'.repeat(32), length: 512 }],
    ['manifest', { sha256: 'ab'.repeat(32), length: -1 }],
    ['withdrawn', undefined],
    ...[0, 7, 8, 1.5, '6', null, [6]].map((fixes): [string, unknown] => ['fixes', fixes]),
    ['withdrawn', [0]],
    ['withdrawn', ['3']],
    ['withdrawn', { length: 0 }],
    ['withdrawn', Array.from({ length: 10_001 }, (_, index) => index + 1)],
  ];
  for (const [member, value] of cases) {
    const text = JSON.stringify(value)?.slice(0, 40) ?? 'undefined';
    it(`names ${member} when it is ${text}`, () => {
      const error = throwsCode('TARGET_MALFORMED', () => parse({ [member]: value }));
      assert.deepEqual(error.facts, { target: 'dns-edge/stable.tar.br', member });
    });
  }

  it('has no custom.writ, or one that is no object', () => {
    for (const custom of [undefined, null, 7, 'x', {}, { writ: null }, { writ: [] }, { writ: 'x' }]) {
      throwsCode('TARGET_MALFORMED', () => parseReleaseInfo(custom, 'x'));
    }
  });

  it('has no members of the prototype', () => {
    const inherited = Object.create(encodeReleaseInfo(release));
    throwsCode('TARGET_MALFORMED', () => parseReleaseInfo({ writ: inherited }, 'x'));
  });
});

describe('parseIsoTime', () => {
  it('parses UTC with and without milliseconds', () => {
    assert.equal(parseIsoTime('2026-11-01T12:00:00Z'), Date.UTC(2026, 10, 1, 12));
    assert.equal(parseIsoTime('2026-11-01T12:00:00.250Z'), Date.UTC(2026, 10, 1, 12) + 250);
    assert.equal(parseIsoTime('2028-02-29T00:00:00Z'), Date.UTC(2028, 1, 29));
  });

  it('parses each time that JavaScript writes', () => {
    const times = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31) });
    fc.assert(fc.property(times, (ms) => assert.equal(parseIsoTime(new Date(ms).toISOString()), ms)));
  });

  it('rejects days and hours that do not exist, other zones, and incomplete forms', () => {
    const bad = [
      '2026-02-30T00:00:00Z',
      '2026-11-01T24:00:00Z',
      '2026-11-01T12:60:00Z',
      '2026-13-01T00:00:00Z',
      '2026-11-01T12:00:00+00:00',
      '2026-11-01T12:00:00',
      '2026-11-01 12:00:00Z',
      '2026-11-01T12:00Z',
      '2026-11-01',
      '+002026-11-01T12:00:00Z',
      'Sun, 01 Nov 2026 12:00:00 GMT',
      '2026-11-01T12:00:00.1234Z',
      '2026-11-01T12:00:00Z\n',
      '',
    ];
    for (const text of bad) assert.equal(parseIsoTime(text), undefined, text);
    assert.equal(parseIsoTime(1_793_534_400_000), undefined);
  });
});
