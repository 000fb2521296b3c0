import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { describe, it } from 'node:test';
import type { ControlAnswer } from '../../../../src/core/protocol/control-protocol.js';
import { encodeLine, helloLine } from '../../../../src/core/protocol/socket-protocol.js';
import { type AgentRequestOptions, askAgent } from '../../../../src/platform/net/control-client.js';
import { type Clock, systemClock } from '../../../../src/platform/time/clock.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { startScript } from '../../../kit/cli/child-script.js';
import { fakeAgent } from '../../../kit/cli/fake-agent.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { skippedPauses } from '../../../kit/clock/skipped-pauses.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

/** Between two tries to connect. */
const pauseMs = 50;

function options(socketPath: string, more: Partial<AgentRequestOptions> = {}): AgentRequestOptions {
  return {
    socketPath,
    state: '/nonexistent',
    request: { type: 'status' },
    version: '0.1.0',
    clock: fakeClock(),
    silenceMs: 10_000,
    commandLine: 'writ status',
    onOtherVersion: () => assert.fail('the versions are the same'),
    signal: new AbortController().signal,
    ...more,
  };
}

async function all(given: AgentRequestOptions): Promise<ControlAnswer[]> {
  const answers: ControlAnswer[] = [];
  for await (const answer of askAgent(given)) answers.push(answer);
  return answers;
}

describe('the client of the control socket', () => {
  it('sends its request and hands over every message up to the last one', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    const messages = [{ type: 'step.started' }, { type: 'pull.result' }, { type: 'too late' }];
    await using agent = await fakeAgent({ path, answer: () => messages, afterwards: 'hang' });
    const request = { type: 'pull', force: true, by: 'anna' } as const;
    assert.deepEqual(await all(options(path, { request })), messages.slice(0, 2));
    assert.deepEqual(agent.requests, [request]);
  });

  describe('at a socket of another user', {
    skip: process.getuid?.() === 0 ? false : 'only root can make one',
  }, () => {
    const somebody = 12_345;
    const ended = { answer: () => [{ type: 'end' }] } as const;

    it('sends no request, because its creator would respond for the agent', async () => {
      using dir = tempDir();
      const path = dir.join('a.sock');
      await using agent = await fakeAgent({ path, ...ended });
      chownSync(path, somebody, somebody);
      const error = await rejectsCode('PATH_UNSAFE', all(options(path, { state: dir.path })));
      assert.deepEqual([error.facts['path'], error.facts['uid']], [path, somebody]);
      assert.deepEqual(agent.requests, []);
    });

    it('sends no request if another user can write to its directory', async () => {
      using dir = tempDir();
      mkdirSync(dir.join('run'));
      const path = dir.join('run/a.sock');
      await using agent = await fakeAgent({ path, ...ended });
      chownSync(dir.join('run'), somebody, somebody);
      await rejectsCode('PATH_UNSAFE', all(options(path)));
      chownSync(dir.join('run'), 0, 0);
      chmodSync(dir.join('run'), 0o777);
      await rejectsCode('PATH_UNSAFE', all(options(path)));
      assert.deepEqual(agent.requests, []);
    });

    it('asks who owns the state directory: an agent need not be root', async () => {
      using dir = tempDir();
      mkdirSync(dir.join('run'));
      mkdirSync(dir.join('state'));
      const path = dir.join('run/a.sock');
      await using _agent = await fakeAgent({ path, ...ended });
      for (const one of [path, dir.join('run'), dir.join('state')]) chownSync(one, somebody, somebody);
      assert.deepEqual(await all(options(path, { state: dir.join('state') })), [{ type: 'end' }]);
      // The owner of a world-writable state directory is not trusted.
      chmodSync(dir.path, 0o1777);
      await rejectsCode('PATH_UNSAFE', all(options(path, { state: dir.join('state') })));
    });
  });

  it('reports once that the agent has another version', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    await using _agent = await fakeAgent({ path, version: '9.9.9', answer: () => [{ type: 'end' }] });
    const versions: string[] = [];
    await all(options(path, { onOtherVersion: (version) => versions.push(version) }));
    assert.deepEqual(versions, ['9.9.9']);
  });

  it('throws the error that the agent answers, with its hint and facts', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    const answer = { type: 'error', code: 'NO_PREVIOUS', message: 'no', hint: 'look', facts: { wanted: 3 } };
    await using _agent = await fakeAgent({ path, answer: () => [answer] });
    const error = await rejectsCode('NO_PREVIOUS', all(options(path)));
    assert.deepEqual({ hint: error.hint, facts: error.facts }, { hint: 'look', facts: { wanted: 3 } });
  });

  it('takes a code of a later version for a failure', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    await using _agent = await fakeAgent({
      path,
      answer: () => [{ type: 'error', code: 'NEW', message: 'no' }],
    });
    const error = await rejectsCode('INTERNAL', all(options(path)));
    assert.match(error.message, /NEW/);
  });

  it('reports that the agent is not running if there is no socket, or a stale one', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    const missing = await rejectsCode('AGENT_UNREACHABLE', all(options(path)));
    assert.equal(missing.facts['reason'], 'not-running');
    assert.match(missing.hint, /systemctl start/);
    await leaveStaleSocket(path);
    const stale = await rejectsCode('AGENT_UNREACHABLE', all(options(path)));
    assert.equal(stale.facts['reason'], 'not-running');
  });

  it('gives the sudo line when the socket is not open to this user', {
    skip: isRoot() ? 'root may open every socket' : false,
  }, async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    await using _agent = await fakeAgent({ path, answer: () => [{ type: 'end' }] });
    chmodSync(path, 0o000);
    const error = await rejectsCode('AGENT_UNREACHABLE', all(options(path)));
    assert.equal(error.facts['reason'], 'denied');
    assert.equal(error.hint, 'sudo writ status');
  });

  it('times out if the agent sends nothing', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    const clock = fakeClock({ mode: 'skip' });
    await using _agent = await fakeAgent({ path, answer: () => [], afterwards: 'hang' });
    const error = await rejectsCode('AGENT_UNREACHABLE', all(options(path, { clock })));
    assert.equal(error.facts['reason'], 'silent');
    assert.deepEqual([...new Set(clock.sleeps)], [5000, 10_000]);
  });

  it('takes an answer that lies there when its time is over: a command that was stopped has not read it', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    let expire: (() => void) | undefined;
    const clock: Clock = { ...fakeClock(), sleep: () => new Promise((resolve) => (expire = resolve)) };
    const lines = helloLine('0.1.0') + encodeLine({ type: 'end' });
    const server = createServer((socket) => {
      socket.once('data', () => {
        // The kernel has the written bytes before the code of the client runs.
        socket.write(lines);
        expire?.();
      });
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    try {
      assert.deepEqual(await all(options(path, { clock })), [{ type: 'end' }]);
    } finally {
      server.close();
    }
  });

  it('connects again where more wait to connect than the system keeps', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    const busy = startBusy(path);
    try {
      await busy.firstLine;
      const crowd = Array.from({ length: 5 }, () => createConnection({ path }).on('error', () => undefined));
      // It takes connections again after the first pause, and is not measured by our clock.
      const clock = skippedPauses(pauseMs, async () => {
        busy.child.stdin?.end();
        await systemClock.sleep(pauseMs);
      });
      const answers = await all(options(path, { clock }));
      assert.deepEqual(
        answers.map(({ type }) => type),
        ['end'],
      );
      for (const socket of crowd) socket.destroy();
    } finally {
      busy.child.kill('SIGKILL');
    }
  });

  it('retries to connect for five seconds, however long each pause takes, and reports the reason at the end', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    const busy = startBusy(path);
    try {
      await busy.firstLine;
      const crowd = Array.from({ length: 5 }, () => createConnection({ path }).on('error', () => undefined));
      let pauses = 0;
      const clock = skippedPauses(pauseMs, (time) => {
        pauses += 1;
        return time.advance(1000);
      });
      const error = await rejectsCode('AGENT_UNREACHABLE', all(options(path, { clock })));
      assert.deepEqual([error.facts['reason'], pauses], ['failed', 5]);
      for (const socket of crowd) socket.destroy();
    } finally {
      busy.child.kill('SIGKILL');
    }
  });

  it('does not take half an answer for an answer', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    await using _agent = await fakeAgent({ path, answer: () => [{ type: 'step.started' }] });
    const error = await rejectsCode('AGENT_UNREACHABLE', all(options(path)));
    assert.equal(error.facts['reason'], 'closed');
  });

  it('refuses a line that is no JSON or too long', async () => {
    using dir = tempDir();
    for (const [name, line] of [
      ['a.sock', 'hello\n'],
      ['b.sock', `{"type":"${'x'.repeat(70_000)}"}\n`],
    ] as const) {
      await using _agent = await fakeAgent({ path: dir.join(name), answer: () => [line] });
      await rejectsCode('MESSAGE_MALFORMED', all(options(dir.join(name))));
    }
  });

  it('ends its wait when the command is interrupted', async () => {
    using dir = tempDir();
    const path = dir.join('a.sock');
    const controller = new AbortController();
    await using _agent = await fakeAgent({
      path,
      answer: () => {
        controller.abort();
        return [];
      },
      afterwards: 'hang',
    });
    await rejectsCode('INTERRUPTED', all(options(path, { signal: controller.signal })));
  });

  it('refuses a path that the kernel would cut off', async () => {
    await rejectsCode('SOCKET_PATH_TOO_LONG', all(options(`/${'s'.repeat(107)}`)));
  });
});

/** Listens, reports that, and accepts no connection until its stdin ends. */
function startBusy(path: string): ReturnType<typeof startScript> {
  const script = `
    const { readFileSync, writeSync } = await import('node:fs');
    const { createServer } = await import('node:net');
    const { encodeLine, helloLine } = await import(at('src/core/protocol/socket-protocol.js'));
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.write(helloLine('0.1.0') + encodeLine({ type: 'end' }));
    });
    server.listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => {
      writeSync(1, 'listens\\n');
      readFileSync(0);
    });
  `;
  return startScript(script, { stdin: 'pipe' });
}

function isRoot(): string | false {
  return process.getuid?.() === 0 ? 'root may open every socket' : false;
}
