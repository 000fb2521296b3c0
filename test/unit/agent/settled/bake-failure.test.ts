// The report of releases that failed within their bake time: each with its own time, and the releases at fault apart from the others.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bakeError, type FailedRelease } from '../../../../src/agent/settled/bake-failure.js';
import type { BakeFailure } from '../../../../src/agent/state/ledger.js';
import type { AgentConfig } from '../../../../src/core/config/config.js';

const host = {
  config: {
    workers: [
      { name: 'pidd', uses: ['a'] },
      { name: 'sup', uses: ['b'] },
      { name: 'both', uses: ['a', 'b'] },
    ],
  } as unknown as Pick<AgentConfig, 'workers'>,
};
const died: BakeFailure = { cause: 'WORKER_DIED', text: 'sup/b:b ended', atMs: 100_000, groups: ['sup'] };

function failed(bundle: string, serial: number, startedAtMs: number, failure = died): FailedRelease {
  return { bundle, bake: { serial, startedAtMs, failure } as FailedRelease['bake'] };
}

describe('the report of a failed bake time', () => {
  it('has the time of the failed member of a set, and names the other members separately', () => {
    const set = [failed('a', 2, 18_000), failed('b', 3, 92_000), failed('c', 2, 18_000)];
    const { message, facts } = bakeError(host, set);
    assert.equal(
      message,
      'b 3 failed 8 s after activation [WORKER_DIED]: sup/b:b ended; of the same set: a 2, c 2',
    );
    assert.deepEqual([facts['bundle'], facts['serial'], facts['afterSeconds']], ['b', 3, 8]);
  });

  it('has the time of each release of a failed group, or of a failed host', () => {
    for (const groups of [['both'], []]) {
      const failure = { ...died, groups };
      const releases = [failed('a', 2, 18_000, failure), failed('b', 3, 92_000, failure)];
      assert.match(
        bakeError(host, releases).message,
        /^a 2 failed 82 s after activation, b 3 failed 8 s after activation \[/,
      );
    }
    const ofHost = { ...died, groups: [] };
    const same = [failed('a', 2, 92_000, ofHost), failed('b', 3, 92_000, ofHost)];
    assert.match(bakeError(host, same).message, /^a 2, b 3 failed 8 s after activation \[/);
  });

  it('has the cause and the text of each failure', () => {
    const probe: BakeFailure = {
      cause: 'PROBE_FAILED',
      text: 'a.pid uses v1',
      atMs: 100_000,
      groups: ['pidd'],
    };
    const { message } = bakeError(host, [failed('a', 2, 95_000, probe), failed('b', 3, 92_000)]);
    assert.equal(
      message,
      'a 2 failed 5 s after activation [PROBE_FAILED]: a.pid uses v1; b 3 failed 8 s after activation [WORKER_DIED]: sup/b:b ended',
    );
  });

  it('blames every release if the configuration has no failing group any more', () => {
    const { message } = bakeError({ config: { workers: [] } }, [failed('b', 3, 92_000)]);
    assert.equal(message, 'b 3 failed 8 s after activation [WORKER_DIED]: sup/b:b ended');
  });
});
