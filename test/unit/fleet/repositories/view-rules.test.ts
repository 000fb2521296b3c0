import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RepositoryView } from '../../../../src/core/fleet/signed-releases.js';
import type { NewEntry } from '../../../../src/fleet/repositories/read-offer.js';
import { emptyView, nextView } from '../../../../src/fleet/repositories/view-rules.js';

const entry = (bundle: string, serial: number): NewEntry => ({
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

describe('what a reading makes of what was known', () => {
  const readings = (view: RepositoryView, serials: readonly number[]): RepositoryView =>
    serials.reduce(
      (before, serial, at) =>
        nextView(before, {
          ...{ atMs: at + 1, roles: [], roots: [] },
          offer: { entries: [entry('a', serial), entry('b', 1)], unread: [] },
        }),
      view,
    );
  const read = (before: RepositoryView, entries: readonly NewEntry[], atMs: number): RepositoryView =>
    nextView(before, { ...{ atMs, roles: [], roots: [] }, offer: { entries, unread: [] } });
  const pastOf = ({ past }: RepositoryView, bundle: string): number[] =>
    past.filter((one) => one.bundle === bundle).map(({ serial }) => serial);

  it('keeps the last ten that differ of each channel, and none that is signed now', () => {
    const view = readings(
      emptyView('https://policy.example.net'),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
    );
    assert.deepEqual(pastOf(view, 'a'), [12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
    assert.deepEqual(pastOf(view, 'b'), []);
    // Taken back: what was there before is signed anew, and is not past any more.
    assert.deepEqual(pastOf(readings(view, [12]), 'a'), [13, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
  });

  it('keeps the first sight of an entry while it stands', () => {
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

  it('takes no entry for that of another channel', () => {
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
