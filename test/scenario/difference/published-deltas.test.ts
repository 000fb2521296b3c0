// From the command of a publisher to a host: an agent, and a pull without an agent, use the deltas that `publish` offers, and
// repair a file of the base that was changed on the host.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfig } from '../../../src/agent/config/load-config.js';
import { pullStandalone } from '../../../src/agent/control/standalone-commands.js';
import { examineGeneration, isUsable } from '../../../src/agent/generations/examine.js';
import { closeHost, openHost } from '../../../src/agent/startup/open-host.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { unboundedPace } from '../../../src/platform/time/rate-limit.js';
import { type AgentSite, agentSite } from '../../kit/agent/agent-in-process.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { noise, warningsOf } from '../../kit/delta/difference-bench.js';
import { flipBit } from '../../kit/disk/damage-file.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const files = (version: number) => ({
  'block.rpz': `version ${version}\n`,
  'list.rpz': noise('list', 60_000),
});

function keptOf(site: AgentSite, serial: number): string[] {
  const archives = join(site.paths.archives, 'dns-edge');
  const name = fs.readdirSync(archives).find((one) => one.startsWith(`${serial}-`)) ?? '';
  return fs.readdirSync(join(archives, name)).sort();
}

const read = (site: AgentSite): string =>
  fs.readFileSync(join(site.paths.current, 'dns-edge/block.rpz'), 'utf8');

/** @returns true when the backup of this host is intact */
async function isBackupIntact(site: AgentSite): Promise<boolean> {
  const { config } = loadConfig(site.configPath);
  const host = await openHost(config, { clock: site.clock, log: silentLog(), version: 'test' });
  try {
    const { previous = 0 } = host.ledger.read();
    const options = { contents: 'digests', pace: unboundedPace() } as const;
    return isUsable(await examineGeneration(host, previous, options));
  } finally {
    await closeHost(host);
  }
}

describe('a release with a delta', longCase, () => {
  it('is updated by it in an agent, which repairs a changed base', async () => {
    using dir = tempDir();
    const site = agentSite(dir);
    await site.repository.publish(files(1));
    await using agent = site.start();
    await agent.ready;
    await site.repository.publish(files(2));
    const second = await agent.pull();
    assert.deepEqual([second.outcome, second.warnings], ['activated', []]);
    assert.ok(keptOf(site, 2).includes('delta-1'), keptOf(site, 2).join());
    flipBit(join(site.paths.current, 'dns-edge/list.rpz'), 500);
    await site.repository.publish(files(3));
    const third = await agent.pull();
    assert.deepEqual([third.outcome, warningsOf(third)], ['activated', ['DELTA_MISMATCH']]);
    assert.equal(read(site), 'version 3\n');
    assert.deepEqual(
      keptOf(site, 3).filter((name) => name.startsWith('delta')),
      [],
    );
    await until(() => JSON.stringify(agent.log.lines).includes('because a delta did not match it'));
    assert.ok(await isBackupIntact(site), 'the backup was repaired');
  });

  it('is updated by it in a pull without an agent, which repairs a changed base too', async () => {
    using dir = tempDir();
    const site = agentSite(dir, {}, { nowMs: systemClock.nowMs() });
    const pull = () =>
      pullStandalone({
        ...{ configPath: site.configPath, by: 'test', version: 'test', force: false },
        ...{ signal: new AbortController().signal, onEvent: () => undefined },
      });
    await site.repository.publish(files(1));
    await pull();
    await site.repository.publish(files(2));
    const second = await pull();
    assert.deepEqual(
      [second.outcome, warningsOf(second).filter((one) => one.startsWith('DELTA'))],
      ['activated', []],
    );
    assert.ok(keptOf(site, 2).includes('delta-1'));
    flipBit(join(site.paths.current, 'dns-edge/list.rpz'), 500);
    await site.repository.publish(files(3));
    const third = await pull();
    assert.equal(third.outcome, 'activated');
    assert.ok(warningsOf(third).includes('DELTA_MISMATCH'), warningsOf(third).join());
    assert.equal(read(site), 'version 3\n');
    assert.ok(await isBackupIntact(site));
  });
});
