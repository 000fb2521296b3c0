// The log of commands that run until a signal: readable lines on a terminal, and JSON for a collector elsewhere.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { writSite } from '../../../kit/agent/writ-site.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { writOnTerminal } from '../../../kit/cli/on-terminal.js';
import { startWrit } from '../../../kit/cli/writ-process.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { needs } from '../../../kit/programs/real-programs.js';
import { writeRepository } from '../../../kit/repository/unsigned-repository.js';

const script = needs('script', 'bsdutils');
const interrupt = '\u0003';

/** Runs the command until `shown` is on the screen, and sends Ctrl-C then. */
async function screenOf(args: readonly string[], shown: string): Promise<readonly string[]> {
  const run = await writOnTerminal(args, [{ question: shown, typed: interrupt }]);
  assert.equal(run.untyped, 0, run.screen);
  return run.screen.split(/\r*\n/);
}

const humanLine = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}info {3}/;

describe('the log on a terminal', { ...script, ...longCase }, () => {
  it('has readable lines for writ agent, and JSON with --log json', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off' });
    await site.repository.publish({ 'block.rpz': 'one\n' });
    const agent = ['agent', '--config', dir.join('agent.yaml')];
    const lines = await screenOf(agent, 'outcome=activated');
    assert.ok(lines.some((line) => humanLine.test(line) && line.includes('cycle ended  cycle=c-')));
    assert.ok(!lines.some((line) => line.includes('{"level"')));
    const json = await screenOf([...agent, '--log', 'json'], '"state":"run"');
    assert.ok(!json.some((line) => humanLine.test(line)));
  });

  it('has readable lines for writ serve and writ fleet serve', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('repo'));
    writeRepository(dir.join('repo'));
    const address = ['--listen', '127.0.0.1:0'];
    for (const args of [
      ['serve', '--repository', dir.join('repo'), ...address],
      ['fleet', 'serve', '--store', dir.join('store'), ...address],
    ]) {
      const lines = await screenOf(args, '  listening  url=');
      assert.ok(
        lines.some((line) => humanLine.test(line)),
        args.join(' '),
      );
    }
  });
});

describe('the log without a terminal', longCase, () => {
  it('is JSON, and with --log lines readable lines without colours', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const serve = ['serve', '--repository', dir.path, '--listen', '127.0.0.1:0'];
    await using plain = startWrit(serve);
    assert.ok(JSON.parse((await plain.waitForStderr(/^(\{.*"msg":"listening".*)$/m))[1] ?? ''));
    await using lines = startWrit([...serve, '--log', 'lines']);
    const [, line = ''] = await lines.waitForStderr(/^(.* listening .*)$/m);
    assert.match(line, humanLine);
  });
});
