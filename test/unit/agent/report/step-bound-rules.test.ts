import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longestSilenceMs } from '../../../../src/agent/report/step-bound-rules.js';
import type { AgentConfig, WorkerGroupConfig } from '../../../../src/core/config/config.js';
import { steps } from '../../../../src/core/cycle/sync-machine.js';
import { defaultTransportLimits, maxRedirects, maxResumptions } from '../../../../src/core/limits.js';
import { maxVisitedRoles } from '../../../../src/core/tuf/target-search.js';

const hour = 3_600_000;
const group: WorkerGroupConfig = {
  name: 'resolver',
  uses: ['dns-edge'],
  when: [],
  confirm: 'warn',
  load: { run: ['load'], timeoutMs: hour },
  reset: { driver: 'kresd', options: {}, timeoutMs: 5000, min: 0 },
  probe: { run: ['probe'], timeoutMs: 1000, retry: 3 },
};

function config(more: Partial<AgentConfig> = {}): AgentConfig {
  const check = { kind: 'run', name: 'slow', run: ['check'], timeoutMs: 2 * hour } as const;
  return {
    repository: [{ url: 'https://a/', redirects: [] }],
    bundles: [{ name: 'dns-edge', channel: 'stable', checks: [check], mode: 0o644 }],
    workers: [],
    freshness: {},
    transport: defaultTransportLimits,
    ...more,
  } as unknown as AgentConfig;
}

describe('the longest silence of a step', () => {
  it('is longer than the sum of all its deadlines', () => {
    assert.ok(longestSilenceMs('check', config()) > 2 * hour);
    assert.ok(longestSilenceMs('refresh', config()) > defaultTransportLimits.refreshTimeoutMs);
    // Each role that the search may visit is one file, and all of them share the time of a refresh.
    const { metadataTimeoutMs, refreshTimeoutMs } = defaultTransportLimits;
    const rolesMs = Math.min(maxVisitedRoles * metadataTimeoutMs, refreshTimeoutMs);
    assert.ok(longestSilenceMs('select', config()) > rolesMs);
  });

  it('is as long as a mirror can send nothing, not as long as a transfer may take', () => {
    const { connectTimeoutMs, idleTimeoutMs } = defaultTransportLimits;
    // Every attempt follows the most redirects and then hangs.
    const triesMs = (1 + maxResumptions) * (1 + maxRedirects) * (connectTimeoutMs + 2 * idleTimeoutMs);
    const bound = longestSilenceMs('fetch', config());
    assert.ok(bound > triesMs);
    assert.ok(bound < defaultTransportLimits.archiveTimeoutMs);
    const patient = { ...defaultTransportLimits, archiveTimeoutMs: 100 * hour };
    assert.equal(longestSilenceMs('fetch', config({ transport: patient })), bound);
    const sluggish = { ...defaultTransportLimits, idleTimeoutMs: 60_000 };
    assert.ok(longestSilenceMs('fetch', config({ transport: sluggish })) > bound + 4 * 45_000);
  });

  it('includes every retry of a check and a loader', () => {
    const check = { kind: 'run', name: 'slow', run: ['check'], timeoutMs: hour, retry: 4 } as const;
    const bundles = [{ name: 'dns-edge', channel: 'stable', checks: [check], mode: 0o644 }];
    assert.ok(longestSilenceMs('check', config({ bundles })) > 5 * hour);
    const stubborn = { ...group, load: { run: ['load'], timeoutMs: hour, retry: 4 } } as const;
    assert.ok(longestSilenceMs('load', config({ workers: [stubborn] })) > 10 * hour);
  });

  it('grows with mirrors, loaders, members notified one by one and retries of a probe', () => {
    const second = [{ url: 'https://a/' }, { url: 'https://b/' }] as unknown as AgentConfig['repository'];
    for (const step of ['refresh', 'select', 'fetch'] as const) {
      const slackMs = longestSilenceMs('stage', config({ bundles: [] }));
      const one = longestSilenceMs(step, config()) - slackMs;
      assert.equal(longestSilenceMs(step, config({ repository: second })) - slackMs, 2 * one, step);
    }
    const notified = longestSilenceMs('reset', config({ workers: [group] }));
    assert.ok(notified > hour + 256 * (5000 + 4 * 1000));
    const stubborn = { ...group, reset: { driver: 'kresd', options: {}, timeoutMs: 5000, min: 0, retry: 2 } };
    assert.ok(longestSilenceMs('reset', config({ workers: [stubborn] })) > notified);
  });

  it('includes the time of a canary, as a command or as a worker of its own', () => {
    const slow = { run: ['canary'], timeoutMs: hour } as const;
    const command = { ...group, canary: { kind: 'run', hook: slow } } as const;
    assert.ok(longestSilenceMs('canary', config({ workers: [command], bundles: [] })) > hour);
    const tried = { ...group, canary: { kind: 'run', hook: { ...slow, retry: 4 } } } as const;
    assert.ok(longestSilenceMs('canary', config({ workers: [tried], bundles: [] })) > 5 * hour);
    const started = {
      ...group,
      canary: { kind: 'start', start: slow, probe: slow, timeoutMs: hour },
    } as const;
    assert.ok(longestSilenceMs('canary', config({ workers: [started], bundles: [] })) > 3 * hour);
  });

  it('includes the command for stale policy', () => {
    const freshness = { onStale: { run: ['drain'], timeoutMs: 5 * hour } } as const;
    const longer = config({
      freshness: { staleAfterMs: hour, release: { staleAfterMs: hour }, ...freshness },
    });
    assert.equal(longestSilenceMs('none', longer), longestSilenceMs('none', config()) + 5 * hour);
  });

  it('is at least that of every step for a job without steps', () => {
    const all = config({ workers: [group] });
    for (const step of [...steps, 'restore'] as const)
      assert.ok(longestSilenceMs('none', all) >= longestSilenceMs(step, all), step);
  });

  it('gives a step without its own deadlines a minimum', () => {
    const bare = config({ bundles: [] });
    for (const step of ['stage', 'verify', 'flush', 'swap', 'commit'] as const)
      assert.ok(longestSilenceMs(step, bare) >= 600_000, step);
  });
});
