// The socket for a group that may read: its answers, the texts that they omit, and that it can change nothing; and the status
// file that an agent writes again each minute.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { createConnection } from 'node:net';
import { describe, it } from 'node:test';
import { beatEveryMs } from '../../../src/agent/report/status-beat.js';
import { readStatusFile } from '../../../src/agent/report/status-file.js';
import { encodeLine, helloLine } from '../../../src/core/protocol/socket-protocol.js';
import { siteWithRelease, zone } from '../../kit/agent/agent-with-release.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { leaveStaleSocket } from '../../kit/disk/stale-socket.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const own = process.getgid?.() ?? 0;
const checks = [
  { name: 'judge', run: ['sh', '-c', 'echo SECRET-OUTPUT; grep -q 1 "$0"', '{bundle}/block.rpz'] },
];

/** @returns the last line of the answer */
async function askOn(path: string, request: object): Promise<Record<string, unknown>> {
  const socket = createConnection({ path });
  socket.write(helloLine('0.1.0') + encodeLine(request));
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return JSON.parse(text.trim().split('\n').at(-1) ?? '{}') as Record<string, unknown>;
}

async function siteWithCheck(dir: ReturnType<typeof tempDir>, detail: boolean) {
  const site = await siteWithRelease(dir, {
    bundles: [{ name: 'dns-edge', checks }],
    read: { group: own, detail },
    poll: { every: '1h' },
  });
  return site;
}

describe('the read socket of an agent', () => {
  it('belongs to its group, reports the host without the output of commands, and refuses requests that change it', async () => {
    using dir = tempDir();
    const site = await siteWithCheck(dir, false);
    const { readSocket, status } = site.paths;
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    assert.equal((await agent.pull()).outcome, 'rejected');
    const { mode, gid } = fs.statSync(readSocket);
    assert.deepEqual([mode & 0o777, gid], [0o660, own]);
    const report = JSON.stringify(await askOn(readSocket, { type: 'status' }));
    assert.match(report, /"serial":2/);
    assert.doesNotMatch(report, /SECRET-OUTPUT/);
    assert.match(JSON.stringify(await agent.status()), /SECRET-OUTPUT/);
    const { type, level, generation, findings } = await askOn(readSocket, { type: 'health' });
    assert.deepEqual([type, level, generation], ['health.result', 'warning', 1]);
    assert.doesNotMatch(JSON.stringify(findings), /SECRET-OUTPUT/);
    for (const request of ['pull', 'rollback', 'resume', 'pause', 'verify', 'reload', 'forget', 'history']) {
      const asked = { type: request, by: 'eve', reason: 'x', force: true, limit: 1, repair: true };
      assert.equal((await askOn(readSocket, asked))['code'], 'MESSAGE_MALFORMED', request);
    }
    assert.equal(agent.cycles().length, 2);
    const file = fs.statSync(status);
    assert.deepEqual([file.mode & 0o777, file.gid], [0o640, own]);
  });

  it('reports the output of commands with read.detail', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithCheck(dir, true);
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    await agent.pull();
    assert.match(JSON.stringify(await askOn(site.paths.readSocket, { type: 'status' })), /SECRET-OUTPUT/);
  });

  it('accepts at most 16 connections and 8 watchers, and closes the longest idle connection first', async () => {
    using dir = tempDir();
    const site = await siteWithCheck(dir, false);
    await using agent = site.start();
    await agent.hasEnded(1);
    const open = (): ReturnType<typeof createConnection> => {
      const socket = createConnection({ path: site.paths.readSocket });
      socket.on('error', () => undefined);
      return socket;
    };
    const firstAnswer = (socket: ReturnType<typeof open>) =>
      new Promise<string>((resolve) => {
        let text = '';
        socket.on('data', (chunk) => {
          text += String(chunk);
          if (text.includes('status.result')) resolve('status');
        });
        socket.once('close', () => resolve(/"code":"(\w+)"/.exec(text)?.[1] ?? 'closed'));
      });
    const watchers = Array.from({ length: 9 }, open);
    const answers = watchers.map((socket) => {
      socket.write(helloLine('0.1.0') + encodeLine({ type: 'watch' }));
      return firstAnswer(socket);
    });
    assert.deepEqual((await Promise.all(answers)).sort(), ['AGENT_BUSY', ...Array(8).fill('status')]);
    const idle = Array.from({ length: 8 }, open);
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once('data', resolve))));
    const [longest] = idle;
    assert.ok(longest);
    const closed = firstAnswer(longest);
    const newcomer = open();
    newcomer.write(helloLine('0.1.0') + encodeLine({ type: 'status' }));
    assert.deepEqual([await firstAnswer(newcomer), await closed], ['status', 'closed']);
    for (const socket of [...watchers, ...idle]) socket.destroy();
    await until(async () => (await agent.status()).agent === 'run');
  });

  it(
    'is left out with a line in the log when its group does not exist, and the agent runs',
    longCase,
    async () => {
      using dir = tempDir();
      const site = await siteWithRelease(dir, { read: { group: 'no-such-group' } });
      await using agent = site.start();
      await agent.hasEnded(1);
      assert.equal(fs.existsSync(site.paths.readSocket), false);
      const message = 'the read socket could not be opened; the agent runs without it';
      assert.equal(agent.log.named(message).length, 1);
      assert.equal(fs.statSync(site.paths.status).mode & 0o777, 0o640);
    },
  );
});

describe('an agent without a read socket', () => {
  it('removes the stale socket of an earlier agent, by which readers would take this agent for dead', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await leaveStaleSocket(site.paths.readSocket);
    await using agent = site.start();
    await agent.hasEnded(1);
    assert.equal(fs.existsSync(site.paths.readSocket), false);
  });
});

describe('status.json', () => {
  it('is written every minute while an agent runs, also without a change', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir, { poll: { every: '1h' } });
    await using agent = site.start();
    await agent.hasEnded(1);
    await until(() => site.clock.sleeping() === 5);
    const before = readStatusFile(site.paths);
    await site.clock.advance(beatEveryMs);
    await until(() => readStatusFile(site.paths)?.atMs === site.clock.nowMs());
    const after = readStatusFile(site.paths);
    assert.deepEqual([after?.generation, after?.agent], [before?.generation, 'run']);
  });
});
