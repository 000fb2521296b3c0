import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RepositoryView } from '../../../../src/core/fleet/signed-releases.js';
import type { OfferedEntry } from '../../../../src/fleet/repositories/read-offered-releases.js';
import { applyReading, emptyView } from '../../../../src/fleet/repositories/view-rules.js';

const entry = (bundle: string, serial: number): OfferedEntry => ({
  ...{ bundle, channel: 'stable', serial, manifest: `${serial}`, manifestBytes: 1, archive: `${serial}` },
  ...{
    archiveBytes: 1,
    revision: '',
    createdAtMs: 1,
    role: 'targets',
    requires: [],
    stamps: [],
    withdrawn: [],
  },
});

describe('applyReading', () => {
  const readings = (view: RepositoryView, serials: readonly number[]): RepositoryView =>
    serials.reduce(
      (before, serial, at) =>
        applyReading(before, {
          ...{ atMs: at + 1, roles: [], roots: [] },
          offered: { entries: [entry('a', serial), entry('b', 1)], unreadChannels: [] },
        }),
      view,
    );
  const read = (before: RepositoryView, entries: readonly OfferedEntry[], atMs: number): RepositoryView =>
    applyReading(before, { ...{ atMs, roles: [], roots: [] }, offered: { entries, unreadChannels: [] } });
  const pastOf = ({ past }: RepositoryView, bundle: string): number[] =>
    past.filter((one) => one.bundle === bundle).map(({ serial }) => serial);

  it('keeps the last ten past entries of each channel, without the current one', () => {
    const view = readings(
      emptyView('https://policy.example.net'),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
    );
    assert.deepEqual(pastOf(view, 'a'), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
    assert.deepEqual(pastOf(view, 'b'), []);
    // After a withdrawal the earlier release is signed again, so that it is not a past entry any more.
    assert.deepEqual(pastOf(readings(view, [12]), 'a'), [13, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
  });

  it('keeps the first time of an entry while the entry stays', () => {
    const view = readings(emptyView('https://policy.example.net'), [1, 2, 2]);
    assert.deepEqual(
      view.entries.map(({ bundle, seenAtMs }) => [bundle, seenAtMs]),
      [
        ['a', 2],
        ['b', 1],
      ],
    );
  });

  it('keeps an entry as a past one when its serial, its manifest or its archive changes', () => {
    const first = entry('a', 1);
    for (const change of [{ serial: 2 }, { manifest: 'm' }, { archive: 'x' }]) {
      const before = read(emptyView('https://policy.example.net'), [first], 1);
      const view = read(before, [{ ...first, ...change }], 2);
      assert.deepEqual(pastOf(view, 'a'), [1]);
      assert.equal(view.entries[0]?.seenAtMs, 2);
    }
  });

  it('compares entries of the same channel only', () => {
    const before = read(emptyView('https://policy.example.net'), [entry('a', 1)], 1);
    const view = read(before, [entry('b', 1)], 2);
    assert.equal(view.entries[0]?.seenAtMs, 2);
    assert.deepEqual(pastOf(view, 'a'), [1]);
  });

  it('keeps one past entry of each serial', () => {
    const view = ['m1', 'm2', 'm3'].reduce(
      (before, manifest, at) => read(before, [{ ...entry('a', 1), manifest }], at + 1),
      emptyView('https://policy.example.net'),
    );
    assert.deepEqual(pastOf(view, 'a'), [1]);
  });
});
