// Hostile clients that may connect: slow ones, silent ones, junk, resets and floods. Other clients still get answers, and the log
// stays short.
import assert from 'node:assert/strict';
import { createConnection, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { refusalsEveryMs } from '../../../src/agent/control/refused-requests.js';
import { encodeLine, helloLine } from '../../../src/core/protocol/socket-protocol.js';
import type { AgentInProcess, AgentSite } from '../../kit/agent/agent-in-process.js';
import { siteWithRelease } from '../../kit/agent/agent-with-release.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const hello = helloLine('0.1.0');
const asking = (type: string): string => hello + encodeLine({ type });
const refusedLine = 'a request on a socket of the agent was refused';
const stepMs = 1000;

interface Client {
  readonly socket: Socket;
  text: string;
  /** The agent closed both directions, which only a write shows, and did not just end its answer. */
  isClosed: boolean;
}

/** Connects, and never closes the connection by itself. */
function connect(path: string, sent = ''): Client {
  const socket = createConnection({ path, allowHalfOpen: true });
  const client: Client = { socket, text: '', isClosed: false };
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    client.text += String(chunk);
  });
  socket.on('close', () => {
    client.isClosed = true;
  });
  socket.write(sent);
  return client;
}

function hasGone({ socket, isClosed }: Client): boolean {
  if (!isClosed) socket.write(' ');
  return isClosed;
}

async function readUntilEnd(path: string, sent: string): Promise<string> {
  const client = connect(path, sent);
  client.socket.on('end', () => client.socket.destroy());
  await until(() => client.isClosed);
  return client.text;
}

const attackedSite = (dir: ReturnType<typeof tempDir>): Promise<AgentSite> =>
  siteWithRelease(dir, { read: { group: process.getgid?.() ?? 0 }, poll: { every: '10h' } });

/** Both sockets answer an honest client. */
async function bothAnswer(site: AgentSite, agent: AgentInProcess): Promise<void> {
  assert.match(await readUntilEnd(site.paths.readSocket, asking('health')), /health\.result/);
  assert.equal((await agent.status()).agent, 'run');
}

describe('a socket of the agent under attack', () => {
  for (const where of ['readSocket', 'socket'] as const)
    it(`closes a connection ten seconds after its start when its client sends byte by byte (${where})`, async () => {
      using dir = tempDir();
      const site = await attackedSite(dir);
      await using agent = site.start();
      await agent.hasEnded(1);
      const slow = [connect(site.paths[where], hello.slice(0, 5)), connect(site.paths[where], hello)];
      await until(() => slow.every(({ text }) => text.includes('writ')));
      for (let passed = 0; passed < 9 * stepMs; passed += stepMs) {
        for (const { socket } of slow) socket.write(' ');
        await until(() => slow.every(({ socket }) => socket.writableLength === 0));
        await site.clock.advance(stepMs);
      }
      assert.deepEqual(
        slow.map(({ isClosed }) => isClosed),
        [false, false],
      );
      await site.clock.advance(stepMs);
      await until(() => slow.every(hasGone));
    });

  it('closes a connection five seconds after its answer when the client continues to send', async () => {
    using dir = tempDir();
    const site = await attackedSite(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const talker = connect(site.paths.readSocket, asking('status'));
    await until(() => talker.text.includes('status.result'));
    for (let passed = 0; passed < 5 * stepMs; passed += stepMs) {
      talker.socket.write(' ');
      await site.clock.advance(stepMs);
    }
    await until(() => hasGone(talker));
  });

  it('frees the connection of a refused watch for the next client', async () => {
    using dir = tempDir();
    const site = await attackedSite(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const watchers = Array.from({ length: 8 }, () => connect(site.paths.readSocket, asking('watch')));
    await until(() => watchers.every(({ text }) => text.includes('status.result')));
    const refused = Array.from({ length: 30 }, () => connect(site.paths.readSocket, asking('watch')));
    await until(() => refused.every(({ text, isClosed }) => isClosed || text.includes('AGENT_BUSY')));
    await bothAnswer(site, agent);
    for (const { socket } of [...watchers, ...refused]) socket.destroy();
  });

  it('answers honest readers among 1,000 clients that send nothing, half a line, junk or too much, or reset', async () => {
    using dir = tempDir();
    const site = await attackedSite(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const attacks = [
      '',
      hello.slice(0, 9),
      'junk\n',
      `${'x'.repeat(100_000)}`,
      asking('status'),
      asking('watch'),
    ];
    const crowd: Client[] = [];
    for (let round = 0; round < 20; round += 1) {
      for (let count = 0; count < 50; count += 1) {
        const client = connect(site.paths.readSocket, attacks[count % attacks.length]);
        if (count % 7 === 0) client.socket.destroy();
        crowd.push(client);
      }
      await bothAnswer(site, agent);
    }
    assert.equal(crowd.length, 1000);
    const lines = agent.log.named(refusedLine);
    assert.deepEqual(lines.map(({ code }) => code).sort(), ['AGENT_BUSY', 'MESSAGE_MALFORMED']);
    assert.doesNotMatch(JSON.stringify(lines), /stack|control-socket/);
    await site.clock.advance(refusalsEveryMs);
    await until(() => agent.log.lines.filter(({ more }) => Number(more) > 0).length === 2);
    for (const { socket } of crowd) socket.destroy();
  });
});
