// `writ status --watch`: with an agent, without one, and until the agent ends.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { quietPolls } from '../../kit/agent/quiet-polls.js';
import { writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { writOnTerminal } from '../../kit/cli/on-terminal.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';

const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });
const objects = (text: string): Record<string, unknown>[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('writ status --watch', longCase, () => {
  it('prints one line for each change into a pipe, and reports the end of the agent', async () => {
    using dir = tempDir();
    const site = writSite(dir);
    await site.repository.publish(zone(1));
    await using agent = await site.agent();
    await using watch = site.start('status', '--watch');
    await watch.waitForStdout(/\tACTIVE\tgeneration 1 is active\t\n/);
    await site.repository.publish(zone(2));
    assert.equal((await site.writ('pull')).exitCode, 0);
    await watch.waitForStdout(/\tACTIVE\tgeneration 2 is active\t\n/);
    agent.child.kill('SIGTERM');
    const { exitCode, stdout } = await watch.ended;
    assert.equal(exitCode, 1);
    assert.match(
      stdout,
      /\nENDED {2}the agent has ended; the active policy stays active\nNext: writ status /,
    );
    const lines = stdout.split('\n').filter((line) => line.includes('generation 2 is active\t'));
    assert.equal(lines.length, 1, stdout);
    assert.match(lines[0] ?? '', /^\d{4}-\d\d-\d\dT[\d:.]+Z\tACTIVE\t/);
  });

  it('prints one JSON object for each change, as `writ status --json` does, and the end of the agent last', async () => {
    using dir = tempDir();
    const site = writSite(dir);
    await site.repository.publish(zone(1));
    await using agent = await site.agent();
    await using watch = site.start('status', '--watch', '--json');
    await watch.waitForStdout(/"generation":1/);
    agent.child.kill('SIGKILL');
    const { exitCode, stdout } = await watch.ended;
    assert.equal(exitCode, 1);
    const all = objects(stdout);
    const { schema, type, outcome, health, generation, confirmed } =
      all.find((one) => one['generation'] === 1) ?? {};
    assert.deepEqual(
      { schema, type, outcome, health, generation, confirmed },
      {
        schema: 1,
        type: 'status.result',
        outcome: 'active',
        health: 'ok',
        generation: 1,
        confirmed: false,
      },
    );
    assert.deepEqual(all.at(-1), {
      schema: 1,
      type: 'watch.result',
      outcome: 'ended',
      exitCode: 1,
      next: `writ status --config ${site.config}`,
    });
  });

  it('watches status.json without an agent, and the agent as soon as one runs', async () => {
    using dir = tempDir();
    const site = writSite(dir);
    await site.repository.publish(zone(1));
    await using watch = site.start('status', '--watch');
    await watch.waitForStdout(/\tSTOPPED\tthe agent is not running; no policy is active\t/);
    assert.equal((await site.writ('pull')).exitCode, 0);
    await watch.waitForStdout(/\tSTOPPED\tthe agent is not running; generation 1 is active\t/);
    await using _agent = await site.agent();
    await watch.waitForStdout(/\tACTIVE\tgeneration 1 is active\t/);
    watch.child.kill('SIGINT');
    assert.equal((await watch.ended).exitCode, 130);
  });

  it('redraws a terminal from its first line', needs('script', 'bsdutils'), async () => {
    using dir = tempDir();
    const { host } = quietPolls();
    const site = writSite(dir, { host });
    await site.repository.publish(zone(1));
    await using agent = await site.agent();
    const { screen, exitCode } = await writOnTerminal(
      ['status', '--watch', '--color', 'never', '--config', site.config],
      [{ question: 'generation 1 is active', act: () => agent.child.kill('SIGTERM') }],
    );
    assert.equal(exitCode, 1);
    assert.ok(screen.includes(`\u001b[H\u001b[2JACTIVE  generation 1 is active    ${host.id}\r\n`), screen);
  });
});
