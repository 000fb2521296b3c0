// The install id of a host: an agent creates it, later agents keep it, and the phase of polls follows from it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { InstallSource } from '../../../src/agent/identity/install-id.js';
import { phaseMs } from '../../../src/core/cycle/schedule.js';
import { agentSite } from '../../kit/agent/agent-in-process.js';
import { writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });
const hourMs = 3_600_000;
const idIn = (state: string): string =>
  (JSON.parse(fs.readFileSync(join(state, 'install-id.json'), 'utf8')) as { id: string }).id;

describe('an agent', () => {
  it('creates the id at its first start, polls at the phase of the id, and keeps it', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off', poll: { every: '1h' }, host: { id: 'same-for-all' } });
    await site.repository.publish(zone(1));
    assert.equal((await site.writ('pull')).exitCode, 0);
    assert.equal(fs.existsSync(join(site.state, 'install-id.json')), false, 'a pull needs none');
    const phases: (readonly [string, unknown])[] = [];
    for (let starts = 0; starts < 2; starts += 1) {
      await using agent = await site.agent();
      const { nextPollAtMs } = await site.json('status');
      phases.push([idIn(site.state), Number(nextPollAtMs) % hourMs]);
      agent.child.kill('SIGTERM');
      await agent.ended;
    }
    assert.deepEqual(phases[0], phases[1]);
    assert.equal(phases[0]?.[1], phaseMs(idIn(site.state), hourMs));
    assert.equal(fs.statSync(join(site.state, 'install-id.json')).mode & 0o777, 0o600);
  });

  it('creates another id on a clone of its machine, and logs the mark that differs', longCase, async () => {
    using dir = tempDir();
    const site = agentSite(dir, { poll: { every: '1h' } });
    await site.repository.publish(zone(1));
    const on = (productUuid: string, newId: string): InstallSource => ({
      newId: () => newId.repeat(32),
      readMarks: () => ({ productUuid }),
    });
    const runOn = async (install: InstallSource) => {
      await using agent = site.start(install);
      await agent.ready;
      const changed = agent.log.lines.flatMap((line) => line['changed'] ?? []);
      return [idIn(join(site.paths.installId, '..')).slice(0, 1), changed];
    };
    assert.deepEqual(await runOn(on('first', 'a')), ['a', []]);
    assert.deepEqual(await runOn(on('first', 'b')), ['a', []]);
    assert.deepEqual(await runOn(on('clone', 'c')), ['c', ['productUuid']]);
    assert.deepEqual(await runOn(on('clone', 'd')), ['c', []]);
  });

  it('starts when a directory is in the place of its id', async () => {
    using dir = tempDir();
    const site = agentSite(dir);
    fs.mkdirSync(site.paths.installId, { recursive: true });
    await using agent = site.start();
    await agent.ready;
    assert.equal(idIn(join(site.paths.installId, '..')), '7e57'.repeat(8));
  });
});

describe('the configured id of a host', longCase, () => {
  it('is in its status with its labels, with an agent and without', async () => {
    using dir = tempDir();
    const host = { id: 'edge-1', labels: { site: 'fra1', 'rack.row_2': 'Köln – 3' } };
    const site = writSite(dir, { sandbox: 'off', host });
    const named = async () => {
      const { host: id, labels } = await site.json('status');
      return { id, labels };
    };
    await site.repository.publish(zone(1));
    await site.writ('pull');
    assert.deepEqual(await named(), host);
    await using agent = await site.agent();
    assert.deepEqual(await named(), host);
    assert.equal(agent.child.exitCode, null);
  });
});
