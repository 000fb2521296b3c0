// Who may connect and means no good: slow ones, silent ones, junk, resets and floods. Nobody else is kept from an answer, and the
// log stays short.
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
  /** Seen by who writes: the other end has gone, and not just stopped to talk. */
  isClosed: boolean;
}

/** Connects, and never hangs up by itself. */
function connect(path: string, words = ''): Client {
  const socket = createConnection({ path, allowHalfOpen: true });
  const client: Client = { socket, text: '', isClosed: false };
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    client.text += String(chunk);
  });
  socket.on('close', () => {
    client.isClosed = true;
  });
  socket.write(words);
  return client;
}

function hasGone({ socket, isClosed }: Client): boolean {
  if (!isClosed) socket.write(' ');
  return isClosed;
}

async function ends(path: string, words: string): Promise<string> {
  const client = connect(path, words);
  client.socket.on('end', () => client.socket.destroy());
  await until(() => client.isClosed);
  return client.text;
}

const attackedSite = (dir: ReturnType<typeof tempDir>): Promise<AgentSite> =>
  siteWithRelease(dir, { read: { group: process.getgid?.() ?? 0 }, poll: { every: '10h' } });

/** Both sockets answer who asks in good order. */
async function bothAnswer(site: AgentSite, agent: AgentInProcess): Promise<void> {
  assert.match(await ends(site.paths.readSocket, asking('health')), /health\.result/);
  assert.equal((await agent.status()).agent, 'run');
}

describe('a socket of the agent under attack', () => {
  for (const where of ['readSocket', 'socket'] as const)
    it(`gives who drips his words ten seconds in all (${where})`, async () => {
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

  it('gives who was answered, and goes on talking, five seconds in all', async () => {
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

  it('gives the place of a refused watch to the next', async () => {
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

  it('answers honest readers beside 1,000 who say nothing, half a word, junk or too much, or reset', async () => {
    using dir = tempDir();
    const site = await attackedSite(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const words = [
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
        const client = connect(site.paths.readSocket, words[count % words.length]);
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
