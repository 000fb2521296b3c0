// Commands when another user answers in place of the agent, or when an agent sends a malformed response: the command uses
// nothing of it, and exits with a code that names the fault.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { cycleResult } from '../../kit/cli/cycle-results.js';
import { fakeAgent } from '../../kit/cli/fake-agent.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { statusReport } from '../../kit/cli/status-reports.js';
import { withAgent } from '../../kit/cli/with-agent.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

const otherUser = 12_345;
const skip = process.getuid?.() === 0 ? false : 'only root can make a socket of another user';

/** A configuration whose `run` belongs to another user, for example an attacker who makes it in /tmp before the agent. */
function foreignRun(dir: TempDir): { readonly run: string; readonly config: string } {
  const [run, config] = [dir.join('run'), dir.join('agent.yaml')];
  fs.mkdirSync(run);
  fs.chownSync(run, otherUser, otherUser);
  const places = `state: ${dir.join('state')}\nrun: ${run}\n`;
  fs.writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\n${places}`);
  return { run, config };
}

const commands = [['pull'], ['status'], ['health'], ['verify'], ['rollback']] as const;

describe('a command of root', { skip }, () => {
  it('sends no request to a socket of another user, and exits with PATH_UNSAFE', async () => {
    using dir = tempDir();
    const { run, config } = foreignRun(dir);
    const path = `${run}/agent.sock`;
    const answer = (): object[] => [cycleResult('activated')];
    await using agent = await fakeAgent({ path, answer });
    fs.chownSync(path, otherUser, otherUser);
    for (const command of commands) {
      const { exitCode, stdout, stderr } = await runWrit(command, { env: { WRIT_CONFIG: config } });
      assert.match(`${stdout}${stderr}`, /PATH_UNSAFE/, command.join(' '));
      assert.notEqual(exitCode, 0, command.join(' '));
      assert.doesNotMatch(stdout, /ACTIVATED|ACTIVE /);
    }
    assert.deepEqual(agent.requests, []);
  });

  it('reads no status.json in a run directory of another user, and exits with PATH_UNSAFE', async () => {
    using dir = tempDir();
    const { run, config } = foreignRun(dir);
    fs.writeFileSync(`${run}/status.json`, JSON.stringify({ ...statusReport(), atMs: Date.now() }));
    for (const command of ['status', 'health']) {
      const { exitCode, stdout, stderr } = await runWrit([command], { env: { WRIT_CONFIG: config } });
      assert.match(`${stdout}${stderr}`, /PATH_UNSAFE/, command);
      assert.notEqual(exitCode, 0, command);
    }
  });
});

describe('a response without a required member', () => {
  const cases = [
    ['a pull without bundles', ['pull'], { ...cycleResult('activated'), bundles: undefined }],
    ['a pull with null as a worker', ['pull'], { ...cycleResult('activated'), workers: [null] }],
    ['a status with a number for its freshness', ['status'], { ...statusReport(), freshness: 7 }],
    ['a status without members', ['status'], { type: 'status.result' }],
    ['a verification without members', ['verify'], { type: 'verify.result' }],
    ['a history entry without members', ['history'], { type: 'history.entry' }],
    ['a resume with an object for its list', ['resume'], { type: 'resume.result', ended: {} }],
    ['refusals without members', ['refusals'], { type: 'refusals.result' }],
  ] as const;
  for (const [what, command, answer] of cases) {
    it(`is MESSAGE_MALFORMED, never INTERNAL: ${what}`, async () => {
      const { run } = await withAgent(command, () => [answer]);
      assert.match(`${run.stdout}${run.stderr}`, /MESSAGE_MALFORMED/);
      assert.doesNotMatch(`${run.stdout}${run.stderr}`, /INTERNAL/);
      assert.equal(run.exitCode, 1);
    });
  }
});
