// The status of a host without an agent, while another process writes status.json between two readings of the clock.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { readAgedStatusReport, readOfflineStatus } from '../../../../src/agent/control/offline-status.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

/** A pull in another process ends after each reading of the clock: it writes the time of its refresh. */
function hostBesidePulls(dir: TempDir) {
  const [configPath, run] = [dir.join('agent.yaml'), dir.join('run')];
  const config = {
    repository: pathToFileURL(dir.join('repo')).href,
    root: dir.join('1.root.json'),
    state: dir.join('state'),
    run,
    bundles: [{ name: 'access' }],
  };
  fs.writeFileSync(configPath, JSON.stringify(config));
  fs.mkdirSync(run);
  let atMs = 1_000_000;
  const pull = (): void => {
    atMs += 1000;
    const freshness = { state: 'fresh', verifiedAtMs: atMs };
    const report = { schema: 1, type: 'status.result', agent: 'stop', atMs, freshness };
    fs.writeFileSync(dir.join('run', 'status.json'), JSON.stringify(report));
  };
  pull();
  const nowMs = (): number => {
    const now = atMs;
    pull();
    return now;
  };
  return { configPath, version: '0.0.0', clock: { nowMs } };
}

describe('the status of a host without an agent', () => {
  it('is fresh if a pull ends while the status is read', async () => {
    using dir = tempDir();
    const { freshness, problems } = await readOfflineStatus(hostBesidePulls(dir));
    assert.deepEqual([freshness.state, freshness.sinceMs], ['fresh', undefined]);
    assert.notEqual(freshness.ageMs, undefined);
    assert.ok(!problems.some(({ code }) => code === 'POLICY_STALE'));
  });

  it('has no negative age if a pull ends while its file is read', () => {
    using dir = tempDir();
    assert.equal(readAgedStatusReport(hostBesidePulls(dir))?.ageMs, 0);
  });
});
