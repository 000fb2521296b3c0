// Commands while an agent starts or ends: it has the lock of the host and no socket. They wait for it: they do not fail
// because of the lock, and do not wait for a lock that a running agent keeps.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { afterEach, describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { cycleResult } from '../../kit/cli/cycle-results.js';
import { fakeAgent } from '../../kit/cli/fake-agent.js';
import { startWrit, type WritProcess } from '../../kit/cli/writ-process.js';
import { killHolder, lockHolders } from '../../kit/disk/lock-holders.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const holders = lockHolders();
const waiting = /an agent starts or ends: waiting for it/;

/** `writ pull` beside an agent that has the lock and no socket, after it has reported that it waits. */
async function pullsBeside() {
  const dir = tempDir();
  const [state, config] = [dir.join('state'), dir.join('agent.yaml')];
  fs.mkdirSync(state, 0o711);
  fs.writeFileSync(
    config,
    `repository: http://127.0.0.1:1/\nroot: ${dir.join('nothing')}\nbundles: [{ name: dns-edge }]\nstate: ${state}\nrun: ${dir.path}\n`,
  );
  const agent = await holders.start(dir.join('state', 'lock'));
  const pull: WritProcess = startWrit(['pull'], { WRIT_CONFIG: config });
  await pull.waitForStderr(waiting);
  return { dir, agent, pull, [Symbol.dispose]: () => dir[Symbol.dispose]() };
}

describe('a pull while an agent', () => {
  afterEach(holders.endAll);

  it('starts asks the agent as soon as it answers', async () => {
    using scene = await pullsBeside();
    await using pull = scene.pull;
    const answer = (): object[] => [cycleResult('activated')];
    await using agent = await fakeAgent({ path: scene.dir.join('agent.sock'), answer });
    const { exitCode, stdout, stderr } = await pull.ended;
    assert.equal(exitCode, 0, stderr);
    assert.match(stdout, /^ACTIVATED /);
    assert.deepEqual(
      agent.requests.map(({ type }) => type),
      ['pull'],
    );
    assert.equal(stderr.split('no agent is running').length, 2, 'said once');
  });

  it('starts ends at Ctrl-C with 130, and does not claim that an agent continues', async () => {
    using scene = await pullsBeside();
    await using pull = scene.pull;
    pull.child.kill('SIGINT');
    const { exitCode, stdout, stderr } = await pull.ended;
    assert.equal(exitCode, 130);
    assert.match(stderr, /error\[INTERRUPTED\]: the command was interrupted while it waited for the agent/);
    assert.equal(stdout, '');
  });

  it('ends does the work itself once the lock is free', longCase, async () => {
    using scene = await pullsBeside();
    await using pull = scene.pull;
    await killHolder(scene.agent);
    const { stdout, stderr } = await pull.ended;
    assert.doesNotMatch(`${stdout}${stderr}`, /LOCK_HELD/);
    assert.match(`${stdout}${stderr}`, /ROOT_MISSING/);
  });
});
