// A fleet in virtual time: quiet as it is, and seen as a herd when hosts have no turns of their own, or no patience.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type SimulatedRun, summarize } from '../../../../bench/simulate/run-report.js';
import { runVirtualFleet, type VirtualFleetOptions } from '../../../../bench/simulate/virtual-fleet.js';

const hourMs = 3_600_000;

function runOf(more: Partial<VirtualFleetOptions> = {}): SimulatedRun {
  const options: VirtualFleetOptions = {
    ...{ hosts: 300, everyMs: 300_000, seed: 1, capacityPerSecond: 2000, maxReportsPerSecond: 2000 },
    times: { steadyMs: 2 * hourMs, outageMs: 3 * hourMs, afterMs: 2 * hourMs },
    fault: 'none',
    ...more,
  };
  return summarize(runVirtualFleet(options), options, 1000);
}

function timeOf(run: SimulatedRun, name: string) {
  return run.times.find((one) => one.name === name) ?? assert.fail(`no time ${name}`);
}

describe('a simulated fleet', () => {
  it('comes evenly on a normal day, in an outage, and behind it', () => {
    const run = runOf();
    assert.deepEqual(run.herds, []);
    // Each host once in each interval.
    assert.equal(timeOf(run, 'steady').load.requests, (300 * 1_800_000) / 300_000);
    // Four intervals from one try to the next.
    assert.ok(timeOf(run, 'outage, the rest').load.perSecond < 0.6 * timeOf(run, 'steady').load.perSecond);
    assert.equal(timeOf(run, 'a release').changed, 300);
  });

  it('has told behind an outage whatever it had to tell, within four intervals', () => {
    const run = runOf();
    const told = ['after it, first ten minutes', 'after it, the rest'].map(
      (name) => timeOf(run, name).changed,
    );
    assert.equal(told[0]! + told[1]!, 300);
    assert.ok(run.healedMs !== undefined && run.healedMs <= 4 * 300_000 + 1000);
  });

  it('is a herd where no host has a turn of its own', () => {
    const { herds } = runOf({ fault: 'one phase' });
    assert.ok(herds.includes('steady') && herds.includes('after it, the rest'), herds.join());
  });

  it('is a herd where hosts try every ten seconds', () => {
    const { herds } = runOf({
      ...{ hosts: 100, fault: 'impatient' },
      times: { steadyMs: hourMs, outageMs: hourMs, afterMs: hourMs },
    });
    assert.ok(herds.includes('outage, the rest') && !herds.includes('steady'), herds.join());
  });

  it('is granted longer intervals by a server that takes less than comes, and stays no herd', () => {
    const run = runOf({
      ...{ hosts: 1500, maxReportsPerSecond: 2.5, capacityPerSecond: 50 },
      times: { steadyMs: 2 * hourMs, outageMs: 0, afterMs: hourMs },
    });
    assert.ok(run.grantedMs > 1.5 * 300_000, String(run.grantedMs));
    assert.deepEqual(run.herds, []);
  });

  it('is the same for the same seed, and another one for another', () => {
    assert.deepEqual(runOf(), runOf());
    assert.notDeepEqual(runOf().times, runOf({ seed: 2 }).times);
  });
});
