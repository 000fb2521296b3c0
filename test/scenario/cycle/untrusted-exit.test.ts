// `untrusted: rollback` with the program: the answer of a pull names the active release after it, with an agent and without.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { pullStandalone } from '../../../src/agent/control/standalone-commands.js';
import { activeGenerationNumber } from '../../../src/agent/generations/generations.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { readStatusFile } from '../../../src/agent/report/status-file.js';
import type { CycleResult, Problem } from '../../../src/core/cycle/cycle-report.js';
import { type AgentSite, agentSite } from '../../kit/agent/agent-in-process.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { writeSimulated } from '../../kit/repository/simulated-on-disk.js';

/** A site with an agent and a simulated repository, in which a key can be removed at once. */
function siteOf(dir: TempDir, test: TestHost): AgentSite {
  const site = agentSite(dir, { untrusted: 'rollback' }, { nowMs: test.clock.nowMs() });
  writeFileSync(dir.join('simulated.json'), test.repository.bootstrapRoot);
  const repository = writeSimulated(test.repository, dir.join('simulated'));
  site.configure({ repository, root: dir.join('simulated.json') });
  return site;
}

async function publish(test: TestHost, dir: TempDir, serial: number): Promise<void> {
  await test.publish('dns-edge', { 'block.rpz': `version ${serial}\n` }, { serial });
  writeSimulated(test.repository, dir.join('simulated'));
}

/** From now on serial 1 is signed by another key, and serial 2 by no trusted key. */
async function publishTwoAndRevoke(
  test: TestHost,
  dir: TempDir,
  pull: () => Promise<unknown>,
): Promise<void> {
  const first = { ...test.repository.targets.targets };
  await publish(test, dir, 2);
  await pull();
  test.repository.rotate('targets');
  test.repository.targets.targets = first;
  test.repository.publish();
  writeSimulated(test.repository, dir.join('simulated'));
}

function codesOf(problems: readonly Problem[]): string[] {
  return problems.map(({ code }) => code);
}

function assertLeft(site: AgentSite, result: CycleResult): void {
  assert.equal(readFileSync(`${site.paths.current}/dns-edge/block.rpz`, 'utf8'), 'version 1\n');
  assert.equal(result.generation, activeGenerationNumber(site.paths));
  // An older offered serial is refused as usual: the exit rollback does not change the result of the cycle.
  assert.deepEqual(
    [result.type, result.outcome, result.exitCode, result.fromGeneration, result.changed],
    ['pull.result', 'rejected', 3, 2, true],
  );
  assert.deepEqual(codesOf(result.problems), ['SERIAL_ROLLBACK']);
  assert.deepEqual(codesOf(result.warnings), ['UNTRUSTED_ACTIVE']);
  // The history has two entries, newest first; the status shows the last one.
  const history = readHistory(site.paths, { limit: 2 }).map(({ result: one }) => [one.type, one.generation]);
  assert.deepEqual(history, [
    ['rollback.result', 1],
    ['pull.result', 2],
  ]);
  assert.equal(readStatusFile(site.paths)?.last?.trigger, 'rollback');
}

describe('a pull that replaced an untrusted release', longCase, () => {
  it('reports the active generation without an agent', longCase, async () => {
    using dir = tempDir();
    using test = testHost({ nowMs: Date.now() });
    const site = siteOf(dir, test);
    const pull = (): Promise<CycleResult> =>
      pullStandalone({
        configPath: site.configPath,
        by: 'anna',
        version: '0.1.0',
        signal: new AbortController().signal,
        onEvent: () => undefined,
        force: false,
      });
    await publish(test, dir, 1);
    assert.equal((await pull()).outcome, 'activated');
    await publishTwoAndRevoke(test, dir, pull);
    assertLeft(site, await pull());
    assert.equal((await pull()).outcome, 'unchanged');
  });

  it('reports the active generation with an agent', async () => {
    using dir = tempDir();
    using test = testHost();
    const site = siteOf(dir, test);
    await publish(test, dir, 1);
    await using agent = site.start();
    await agent.hasEnded(1);
    await publishTwoAndRevoke(test, dir, () => agent.pull());
    assertLeft(site, await agent.pull());
    assert.equal((await agent.pull()).outcome, 'unchanged');
  });
});
