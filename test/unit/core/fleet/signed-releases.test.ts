// The standing of a release that hosts run and the state of a wait, by signed metadata, in tables.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  diffEntries,
  type RepositoryView,
  type SignedEntry,
  signedReleases,
  signedSerial,
  signedWait,
  standingOf,
} from '../../../../src/core/fleet/signed-releases.js';

const [root, otherRoot] = ['a'.repeat(64), 'b'.repeat(64)];
const manifestOf = (serial: number): string => serial.toString(16).padStart(64, '0');

function entry(serial: number, more: Partial<SignedEntry> = {}): SignedEntry {
  return {
    ...{ bundle: 'dns', channel: 'stable', serial, manifest: manifestOf(serial), manifestBytes: 100 },
    ...{
      archive: 'c'.repeat(64),
      archiveBytes: 1000,
      revision: `r${serial}`,
      createdAtMs: 0,
      role: 'targets',
    },
    ...{ requires: [], stamps: [], withdrawn: [], seenAtMs: 0 },
    ...more,
  };
}

function view(more: Partial<RepositoryView> = {}): RepositoryView {
  return {
    ...{ url: 'https://a/', checkedAtMs: 1000, triedAtMs: 1000, roles: [], roots: [root] },
    ...{ entries: [entry(42, { withdrawn: [40, 43] })], past: [] },
    ...more,
  };
}

const running = (serial: number, more: object = {}) => ({
  ...{ bundle: 'dns', channel: 'stable', serial, manifest: manifestOf(serial), roots: [root] },
  ...more,
});

describe('the standing of a release', () => {
  const table: readonly (readonly [string, object, string])[] = [
    ['is the signed one', running(42), 'current'],
    ['is older', running(41), 'behind'],
    ['was taken back', running(40), 'withdrawn'],
    ['is newer and was taken back', running(43), 'withdrawn'],
    ['is newer than what was read', running(44), 'unknown'],
    ['has the serial and another tree', running(42, { manifest: manifestOf(7) }), 'unknown'],
    ['is of a root that the server does not read', running(41, { roots: [otherRoot] }), 'unknown'],
    ['is half of a root that the server does not read', running(41, { roots: [root, otherRoot] }), 'unknown'],
    ['is the signed one under a new root', running(42, { roots: [otherRoot] }), 'current'],
    ['is of another channel', running(41, { channel: 'canary' }), 'unknown'],
    ['has no root', running(41, { roots: [] }), 'unknown'],
  ];
  for (const [what, release, standing] of table)
    it(`is ${standing} where it ${what}`, () => {
      assert.equal(standingOf([view()], release as ReturnType<typeof running>).standing, standing);
    });

  it('recognizes an earlier release by its entry, whatever root its hosts trust', () => {
    const judged = standingOf([view({ past: [entry(41)] })], running(41, { roots: [otherRoot] }));
    assert.deepEqual(judged, { standing: 'behind', serial: 42 });
  });

  it('compares a release with its own repository only, if two repositories have the serial', () => {
    const other = view({ url: 'https://b/', roots: [otherRoot], entries: [entry(50)] });
    const of = (roots: readonly string[]) => standingOf([view(), other], running(49, { roots }));
    assert.deepEqual(of([root]), { standing: 'unknown', serial: 42 });
    assert.deepEqual(of([otherRoot]), { standing: 'behind', serial: 50 });
  });
});

describe('a wait by signed metadata', () => {
  const on = (serial: number, sinceMs: number, nowMs: number, views = [view()]) =>
    signedWait(views, { bundle: 'dns', channel: 'stable', serial, sinceMs }, nowMs)?.is;

  it('finds a withdrawal and a later release also in an old reading', () => {
    assert.equal(on(40, 5000, 9_000_000), 'withdrawn');
    assert.equal(on(43, 5000, 9_000_000), 'withdrawn');
    assert.equal(on(41, 5000, 9_000_000), 'superseded');
  });

  it('finds a release current only in a reading of the last two minutes', () => {
    assert.equal(on(42, 5000, 121_000), 'current');
    assert.equal(on(42, 5000, 121_001), undefined);
  });

  it('finds a release absent only in a reading that began after the wait', () => {
    assert.equal(on(44, 1000, 2000), 'unread');
    assert.equal(on(44, 999, 2000), 'absent');
  });

  it('has no result if repositories disagree, or if none has the channel', () => {
    const other = view({ url: 'https://b/', entries: [entry(41)] });
    assert.equal(on(41, 0, 2000, [view(), other]), undefined);
    assert.equal(on(30, 0, 2000, [view(), other]), 'superseded');
    assert.equal(on(41, 0, 2000, [view({ entries: [] })]), undefined);
  });
});

describe('a serial that repositories have signed', () => {
  const of = (serial: number, sinceMs: number, views: readonly RepositoryView[]) =>
    signedSerial(views, { bundle: 'dns', channel: 'stable', serial, sinceMs });

  it('has the manifests of listed and of earlier releases of its channel', () => {
    const other = view({ url: 'https://b/', entries: [entry(42, { manifest: manifestOf(7) })] });
    const canary = entry(41, { channel: 'canary', manifest: manifestOf(8) });
    const views = [view({ past: [entry(41), canary] }), other];
    assert.deepEqual(of(42, 0, views).manifests, [manifestOf(42), manifestOf(7)]);
    assert.deepEqual(of(41, 0, views).manifests, [manifestOf(41)]);
  });

  it('is missing from a repository only by a reading after the request', () => {
    assert.deepEqual(of(44, 999, [view()]), { manifests: [], rootsWithout: [root] });
    assert.deepEqual(of(44, 1000, [view()]).rootsWithout, []);
    assert.deepEqual(of(44, 999, [view({ entries: [] })]).rootsWithout, []);
  });
});

describe('the signed entries of two releases', () => {
  it('differ in the members that differ, as text', () => {
    const changed = diffEntries(
      entry(41),
      entry(42, { withdrawn: [41], requires: ['waves'], fixes: 40, role: 'team' }),
    );
    assert.deepEqual(
      changed.map(({ member, before, after }) => [member, before, after]),
      [
        ['serial', '41', '42'],
        ['revision', 'r41', 'r42'],
        ['signed by', 'targets', 'team'],
        ['manifest', `sha256:${manifestOf(41)}`, `sha256:${manifestOf(42)}`],
        ['requires', '', 'waves'],
        ['fixes', '', '40'],
        ['withdrawn', '', '41'],
      ],
    );
    const many = Array.from({ length: 150 }, (_, at) => at + 1);
    assert.match(
      diffEntries(entry(42), entry(42, { withdrawn: many }))[0]?.after ?? '',
      /150, and 50 before$/,
    );
  });

  it('are those of the former and the current release, unless another one is named', () => {
    const views = [view({ past: [entry(41), entry(39)] })];
    const of = (serial: number, against?: number) => {
      const question = {
        bundle: 'dns',
        channel: 'stable',
        serial,
        ...(against === undefined ? {} : { against }),
      };
      const [signed] = signedReleases(views, question);
      return [signed?.standing, signed?.from, signed?.against, signed?.entry?.serial];
    };
    assert.deepEqual(of(42), ['current', 41, 41, 42]);
    assert.deepEqual(of(39), ['behind', 39, 42, 39]);
    assert.deepEqual(of(42, 39), ['current', 39, 39, 42]);
    assert.deepEqual(of(40), ['withdrawn', undefined, undefined, undefined]);
    assert.deepEqual(of(42, 7), ['current', undefined, undefined, 42]);
    assert.deepEqual(signedReleases(views, { bundle: 'web', channel: 'stable', serial: 1 }), []);
  });
});
