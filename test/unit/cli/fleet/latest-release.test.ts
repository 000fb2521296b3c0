// The release of `writ fleet wait --latest`: the newest of signed metadata that was read after the query, else of host reports.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chooseLatest, findLatestRelease } from '../../../../src/cli/fleet/latest-release.js';
import type { FleetSummary, WaitFacts } from '../../../../src/core/fleet/answers.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const asked = { bundle: 'dns', channel: 'stable' };
type Repository = NonNullable<FleetSummary['repositories']>[number];

function repository(serial: number | undefined, checkedAtMs: number, url = 'https://a/'): Repository {
  const entry = { ...asked, serial: serial ?? 0, revision: '', seenAtMs: 1 };
  const others = [
    { ...entry, channel: 'canary', serial: 99 },
    { ...entry, bundle: 'web', serial: 98 },
  ];
  return { url, roles: [], checkedAtMs, releases: serial === undefined ? others : [entry, ...others] };
}

function summary(
  repositories: readonly Repository[] | undefined,
  reported: readonly number[] = [],
): FleetSummary {
  const releases = reported.map((serial) => ({ ...asked, serial }));
  return { releases, offers: [{ ...asked, serial: 7 }], repositories } as unknown as FleetSummary;
}

/** @param script serial and time of the reading for each query; the last one repeats */
async function find(script: readonly (readonly [serial: number, readAtMs: number])[], withinMs = 1_800_000) {
  const clock = fakeClock({ mode: 'skip' });
  const lines: string[] = [];
  const keep = (...texts: readonly string[]) => void lines.push(texts.join(' '));
  const reporter = { begin: keep, drop: () => undefined, finish: keep, warn: keep };
  let [waits, queries] = [0, 0];
  const server = {
    wait: async () => {
      waits += 1;
      return { atMs: 1000 } as WaitFacts;
    },
    summary: async () => {
      const [serial, readAtMs] = script[Math.min(queries, script.length - 1)] ?? [0, 0];
      queries += 1;
      return summary([repository(serial, readAtMs)], [500]);
    },
  };
  const context = { clock, reporter, signal: new AbortController().signal };
  const startedMs = clock.monotonicMs();
  const serial = await findLatestRelease(server, asked, context as never, withinMs);
  return { serial, queries, waits, lines, tookMs: clock.monotonicMs() - startedMs };
}

describe('the newest release of a fleet server', () => {
  it('is the signed one when the server follows a repository, whatever a host reports', () => {
    const known = chooseLatest(summary([repository(4, 70)], [5000]), asked);
    assert.deepEqual(known, { serial: 4, readAtMs: 70 });
  });

  it('is the highest reported or offered serial when the server follows no repository', () => {
    assert.deepEqual(chooseLatest(summary(undefined, [3, 5]), asked), { serial: 7 });
    assert.deepEqual(chooseLatest(summary(undefined, [3, 9]), asked), { serial: 9 });
    assert.deepEqual(chooseLatest(summary(undefined), { ...asked, channel: 'other' }), { serial: undefined });
  });

  it('is refused when repositories have signed different serials', () => {
    const both = summary([repository(4, 70), repository(5, 60, 'https://b/')]);
    throwsCode('USAGE', () => chooseLatest(both, asked));
    const alike = summary([repository(4, 70), repository(4, 60, 'https://b/'), repository(undefined, 1)]);
    assert.deepEqual(chooseLatest(alike, asked), { serial: 4, readAtMs: 60 });
  });

  it('comes from a refresh that began after the query, because an earlier one has no later publish', async () => {
    const { serial, queries, waits, lines } = await find([
      [41, 900],
      [41, 999],
      [42, 1000],
    ]);
    assert.deepEqual([serial, queries, waits], [42, 3, 3]);
    assert.equal(lines.at(-1), 'release dns stable 42 is the newest');
  });

  it('comes from an older refresh after two minutes, with a warning', async () => {
    const { serial, lines, tookMs } = await find([[41, 900]]);
    assert.deepEqual([serial, tookMs], [41, 120_000]);
    assert.match(lines.at(-1) ?? '', /has not read the repository since .*: there may be a newer release/);
    assert.equal((await find([[41, 900]], 3000)).tookMs, 3000);
  });
});
