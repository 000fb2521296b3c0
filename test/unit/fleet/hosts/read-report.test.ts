import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fleetBounds } from '../../../../src/core/fleet/report.js';
import { readEnrolRequest, readReport } from '../../../../src/fleet/hosts/read-report.js';
import { bundleAt, reportOf } from '../../../kit/fleet/fleet-bench.js';

/** Builds the text without JSON.stringify, which would recurse too deeply. */
const bytes = (data: unknown): Uint8Array =>
  Buffer.from(
    JSON.stringify(data).replace(
      /"\[nested (\d+)\]"/,
      (_, depth: string) => '['.repeat(Number(depth)) + ']'.repeat(Number(depth)),
    ),
  );
const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));
const nested = (depth: number): object => ({ toJSON: () => `[nested ${depth}]` });
const labelsOf = (count: number) => Object.fromEntries(times(count, (at) => [`l${at}`, 'v']));
const outcome = (n: number) => ({ n, trigger: 'poll', outcome: 'activated', atMs: 1, bundles: [] }) as const;

const enrolment = (host: string) => ({
  ...{ schema: 1, type: 'fleet.enrol', token: 'writ_host_x', publicKey: 'A'.repeat(43), host },
  ...{ labels: {}, installId: 'i' },
});

describe('a report or a request to enrol', () => {
  it('is refused with a name in the form of a host key', () => {
    for (const host of ['a'.repeat(64), '0'.repeat(64), 'opa/token/id', 'opa/']) {
      const report = readReport(bytes(reportOf(host, { installId: 'i' })));
      assert.match(report.kind === 'refused' ? report.reason : '', /must not have the form of a key/);
      assert.equal(readEnrolRequest(bytes(enrolment(host))).kind, 'refused');
    }
  });

  it('may have the name of a container, or letters that no key has', () => {
    for (const host of ['f3a9c1d2e4b5', 'A'.repeat(64), 'g'.repeat(64), 'opa', 'my-opa/1'])
      assert.equal(readReport(bytes(reportOf(host, { installId: 'i' }))).kind, 'read', host);
  });
});

describe('a received report', () => {
  const bundlesOf = (count: number) => times(count, (at) => bundleAt(1, { channel: `c${at}` }));
  const taken: readonly (readonly [string, object])[] = [
    ['an honest one', {}],
    ['members that are newer than this server', { waves: [{ any: 'thing' }] }],
    ['a few lists in one another where nothing is known', { waves: nested(30) }],
    ['64 labels', { labels: labelsOf(fleetBounds.maxLabels) }],
    ['1000 bundles', { bundles: bundlesOf(fleetBounds.maxBundles) }],
    ['100 outcomes', { outcomes: times(100, (at) => outcome(at + 1)) }],
  ];
  for (const [name, more] of taken)
    it(`is taken: ${name}`, () =>
      assert.equal(readReport(bytes({ ...reportOf('web-1'), ...more })).kind, 'read'));

  const refused: readonly (readonly [string, object])[] = [
    ['65 labels', { labels: labelsOf(65) }],
    ['a label that is no text', { labels: { a: 1 } }],
    ['1001 bundles', { bundles: bundlesOf(1001) }],
    ['101 outcomes', { outcomes: times(101, (at) => outcome(at + 1)) }],
    ['21 findings', { findings: times(21, () => 'CODE') }],
    ['a finding that is no code', { findings: ['/etc/shadow'] }],
    ['a bundle twice', { bundles: [bundleAt(1), bundleAt(2)] }],
    ['an outcome twice', { outcomes: [outcome(1), outcome(1)] }],
    ['a name with a NUL', { host: 'web\u0000' }],
    ['a name of 256 letters', { host: 'a'.repeat(256) }],
    ['no name', { host: '' }],
    [
      'a line of 201 letters',
      {
        bundles: [
          bundleAt(1, {
            offered: { serial: 1, state: 'refused', code: 'A', atMs: 1, line: 'a'.repeat(201) },
          }),
        ],
      },
    ],
    ['a number beyond what is exact', { atMs: 2 ** 53 }],
    ['a time that no calendar has', { atMs: 8_640_000_000_000_001 }],
    ['an end that no calendar has', { trust: [{ role: 'root', version: 1, expiresAtMs: 2 ** 53 - 1 }] }],
    ['a bundle that is two conditions of a filter', { bundles: [bundleAt(1, { bundle: 'dns,serial=9' })] }],
    ['33 lists in one another where nothing is known', { waves: nested(33) }],
    ['100,000 lists in one another', { waves: nested(100_000) }],
    ['a fraction', { everyMs: 1000.5 }],
    ['an interval of nothing', { everyMs: 0 }],
    ...['\u001b', '\u007f', '\u009b', '\u00ad', '\u200b', '\u2028', '\u202e', '\u2066', '\ufeff'].flatMap(
      (character) => [
        [`a name with ${escape(character)}`, { host: `web-1${character}` }] as const,
        [`a label with ${escape(character)}`, { labels: { site: `fra${character}` } }] as const,
        [`a label called with ${escape(character)}`, { labels: { [`site${character}`]: 'fra' } }] as const,
      ],
    ),
    ['another schema', { schema: 2 }],
    ['another type', { type: 'fleet.enrol' }],
    ['a digest in capitals', { root: { version: 1, sha256: 'A'.repeat(64) } }],
  ];
  for (const [name, more] of refused)
    it(`is refused as a unit: ${name}`, () =>
      assert.equal(readReport(bytes({ ...reportOf('web-1'), ...more })).kind, 'refused'));

  it('is refused when it is too large, no UTF-8, no JSON, or not an object', () => {
    const large = bytes({ ...reportOf('web-1'), pad: 'x'.repeat(fleetBounds.maxReportBytes) });
    for (const body of [large, Buffer.from([0x22, 0xff, 0x22]), Buffer.from('{'), bytes(null), bytes([])])
      assert.equal(readReport(body).kind, 'refused');
  });

  it('never shows in its reason what it holds', () => {
    const read = readReport(bytes({ ...reportOf('web-1'), version: `secret${'x'.repeat(70)}` }));
    assert.deepEqual(read, { kind: 'refused', reason: '/version maxLength' });
  });
});

describe('a request to enrol', () => {
  const request = {
    ...{ schema: 1, type: 'fleet.enrol', token: 'writ_host_x', publicKey: `${'A'.repeat(43)}=` },
    ...{ host: 'web-1', labels: {}, installId: 'i' },
  };
  it('is taken with a whole key, and with no other', () => {
    assert.equal(readEnrolRequest(bytes(request)).kind, 'read');
    assert.equal(readEnrolRequest(bytes({ ...request, ephemeral: true })).kind, 'read');
    for (const more of [
      { publicKey: 'AAAA' },
      { token: 'x'.repeat(129) },
      { ephemeral: 'yes' },
      { host: undefined },
    ])
      assert.equal(readEnrolRequest(bytes({ ...request, ...more })).kind, 'refused');
  });
});
