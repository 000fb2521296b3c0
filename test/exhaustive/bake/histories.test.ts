// Random histories of a host in virtual time: it serves a settled or baking release, rolls back a failed one, and leaves a
// withdrawn one. 300 histories; `npm run test:long` tries a few.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sampleSize } from '../../kit/assert/sample.js';
import { caseSeed, seeded, testSeed } from '../../kit/assert/seeded.js';
import { playHistory } from '../../kit/host/baking-history.js';

const histories = sampleSize() ?? 300;
const eventsEach = 24;

/** Scenes that must occur: one of two workers fails, or another event ends a process within the same bake time. */
const scenes = [
  ...['restores of half', 'withdrawals in a restore'],
  ...['restart', 'upgrade', 'reboot', 'kill'].map((what) => `restores after a ${what} in the same bake time`),
];

describe('random histories of a host', () => {
  it('never leave a failed release active, and roll back no good one', async (test) => {
    const totals = new Map<string, number>();
    const violations: string[] = [];
    for (let index = 0; index < histories; index += 1) {
      const seed = caseSeed(testSeed(), index);
      const end = await playHistory(seeded(seed), eventsEach);
      for (const [what, count] of Object.entries(end.counts))
        totals.set(what, (totals.get(what) ?? 0) + count);
      if (end.violations.length > 0) violations.push([`history ${index}:`, ...end.lines].join('\n  '));
    }
    test.diagnostic(JSON.stringify(Object.fromEntries(totals)));
    assert.deepEqual(violations.slice(0, 3), []);
    assert.ok((totals.get('restores') ?? 0) > histories / 4, 'histories without restores show nothing');
    const absent = scenes.filter((scene) => !totals.has(scene));
    // A sample of a few histories need not contain all of them.
    if (sampleSize() === undefined)
      assert.deepEqual(absent, [], 'a rule is judged only by what the histories contain');
  });
});
