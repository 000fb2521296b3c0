// Commands where somebody else answers in the place of the agent, or an agent answers what it should not: nothing of it is
// believed, and each ends with a code that says what is wrong.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { cycleResult } from '../../kit/cli/cycle-results.js';
import { fakeAgent } from '../../kit/cli/fake-agent.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { statusReport } from '../../kit/cli/status-reports.js';
import { withAgent } from '../../kit/cli/with-agent.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

const somebody = 12_345;
const skip = process.getuid?.() === 0 ? false : 'only root can make a socket of somebody else';

/** A configuration whose `run` belongs to somebody, as one who makes it in /tmp before the agent does. */
function foreignRun(dir: TempDir): { readonly run: string; readonly config: string } {
  const [run, config] = [dir.join('run'), dir.join('agent.yaml')];
  fs.mkdirSync(run);
  fs.chownSync(run, somebody, somebody);
  const places = `state: ${dir.join('state')}\nrun: ${run}\n`;
  fs.writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\n${places}`);
  return { run, config };
}

const commands = [['pull'], ['status'], ['health'], ['verify'], ['rollback']] as const;

describe('a command of root', { skip }, () => {
  it('believes no agent that somebody else runs in its place', async () => {
    using dir = tempDir();
    const { run, config } = foreignRun(dir);
    const path = `${run}/agent.sock`;
    const answer = (): object[] => [cycleResult('activated')];
    await using agent = await fakeAgent({ path, answer });
    fs.chownSync(path, somebody, somebody);
    for (const command of commands) {
      const { exitCode, stdout, stderr } = await runWrit(command, { env: { WRIT_CONFIG: config } });
      assert.match(`${stdout}${stderr}`, /PATH_UNSAFE/, command.join(' '));
      assert.notEqual(exitCode, 0, command.join(' '));
      assert.doesNotMatch(stdout, /ACTIVATED|ACTIVE /);
    }
    assert.deepEqual(agent.requests, []);
  });

  it('believes no status.json that somebody else has put there', async () => {
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

describe('an answer without what every one has', () => {
  const cases = [
    ['a pull without bundles', ['pull'], { ...cycleResult('activated'), bundles: undefined }],
    ['a pull with a worker that is none', ['pull'], { ...cycleResult('activated'), workers: [null] }],
    ['a status with a number for its freshness', ['status'], { ...statusReport(), freshness: 7 }],
    ['a status of nothing', ['status'], { type: 'status.result' }],
    ['a verification of nothing', ['verify'], { type: 'verify.result' }],
    ['a history of nothing', ['history'], { type: 'history.entry' }],
    ['a resume with an object for its list', ['resume'], { type: 'resume.result', ended: {} }],
    ['refusals of nothing', ['refusals'], { type: 'refusals.result' }],
  ] as const;
  for (const [what, command, answer] of cases) {
    it(`${what}: MESSAGE_MALFORMED, and never INTERNAL`, async () => {
      const { run } = await withAgent(command, () => [answer]);
      assert.match(`${run.stdout}${run.stderr}`, /MESSAGE_MALFORMED/);
      assert.doesNotMatch(`${run.stdout}${run.stderr}`, /INTERNAL/);
      assert.equal(run.exitCode, 1);
    });
  }
});
