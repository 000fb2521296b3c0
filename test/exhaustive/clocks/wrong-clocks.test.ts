// Clocks of publisher, server and host that are wrong by seconds to decades, before, during and after an action of each. An
// action may fail with a code meanwhile; once the clocks are right, everything continues without an operator.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isWritError } from '../../../src/core/errors.js';
import { createDurableFs, type DurableFs } from '../../../src/platform/disk/durable-fs.js';
import { openOnlineSigners } from '../../../src/publisher/signing/online-signing.js';
import { resignOnline } from '../../../src/publisher/signing/resign-online.js';
import { sampled } from '../../kit/assert/sample.js';
import type { FakeClock } from '../../kit/clock/fake-clock.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type PublishedHost, publishedHost } from '../../kit/repository/published-host.js';
import { changeOptions } from '../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;
const yearMs = 365 * dayMs;
const offsets: Readonly<Record<string, number>> = {
  '30 seconds ahead': 30_000,
  'an hour ahead': 3_600_000,
  '8 days ahead': 8 * dayMs,
  '31 days ahead': 31 * dayMs,
  '200 days ahead': 200 * dayMs,
  '20 years ahead': 20 * yearMs,
  'an hour behind': -3_600_000,
  '8 days behind': -8 * dayMs,
  '200 days behind': -200 * dayMs,
  '50 years behind': -50 * yearMs,
};

type Role = 'publisher' | 'server' | 'host';
type When = 'before' | 'during' | 'after';

/** The action of each role; it calls `jump` in the middle. */
const acts: Readonly<Record<Role, (site: PublishedHost, jump: () => void) => Promise<unknown>>> = {
  publisher: (site, jump) =>
    site.repository.publish({ 'p.yaml': 'two' }, { durableFs: jumpingAt('repo.snapshot', jump) }),
  server: async (site, jump) => {
    const options = changeOptions(site.repository, { durableFs: jumpingAt('repo.snapshot', jump) });
    const signers = await openOnlineSigners(site.repository.directory, options.keys);
    return resignOnline({ ...options, signers, roles: ['snapshot', 'timestamp'] });
  },
  host: async (site, jump) => {
    jump();
    await site.host.sync();
  },
};

function jumpingAt(label: string, jump: () => void): DurableFs {
  return createDurableFs({ before: ({ op }) => void (op.startsWith(label) && jump()) });
}

async function tolerated(act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!isWritError(error) || error.code === 'INTERNAL') throw error;
  }
}

async function play(role: Role, when: When, byMs: number): Promise<void> {
  using dir = tempDir();
  using site = publishedHost(dir, { bundles: [{ name: 'dns-edge' }] });
  const hostClock = site.host.clock;
  const clocks: readonly FakeClock[] = [site.clock, hostClock];
  await site.repository.publish({ 'p.yaml': 'one' });
  await site.host.sync();
  assert.equal(site.host.read('dns-edge/p.yaml'), 'one');
  const rightMs = Math.max(...clocks.map((clock) => clock.nowMs()));
  const clock = role === 'host' ? hostClock : site.clock;
  const jump = (): void => clock.setWallTime(Math.max(rightMs + byMs, 0));
  if (when === 'before') jump();
  await tolerated(() => acts[role](site, when === 'during' ? jump : () => undefined));
  if (when === 'after') jump();
  // Every role acts for a while with the wrong clock.
  await tolerated(() => site.repository.refresh());
  await site.host.sync();
  for (const one of clocks) one.setWallTime(rightMs + 600_000);
  await site.host.sync();
  const { kind } = await site.repository.publish({ 'p.yaml': 'three' });
  assert.equal(kind, 'live');
  const { result } = await site.host.sync();
  assert.equal(site.host.read('dns-edge/p.yaml'), 'three', JSON.stringify(result.problems));
  await site.repository.refresh();
  assert.equal((await site.host.sync()).result.problems.length, 0);
}

const cases = Object.entries(offsets).flatMap(([name, byMs]) =>
  (['before', 'during', 'after'] as const).map((when) => ({ name, when, byMs })),
);

for (const role of ['publisher', 'server', 'host'] as const) {
  describe(`a clock of the ${role}`, () => {
    for (const { name, when, byMs } of sampled(cases))
      it(`that is ${name} for a while, from ${when} its action on, delays nothing once it is right`, () =>
        play(role, when, byMs));
  });
}
