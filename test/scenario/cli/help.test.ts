// The help of every command and topic, and the modules that a short command imports.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { topicNames } from '../../../src/cli/console/help-topics.js';
import { exitCodeOfKind } from '../../../src/core/errors.js';
import { matchesFile } from '../../kit/assert/golden.js';
import { longCase } from '../../kit/assert/long-case.js';
import { fakeAgent } from '../../kit/cli/fake-agent.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { statusReport } from '../../kit/cli/status-reports.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { loadedSources, tracingEnv } from '../../kit/sources/loaded-sources.js';
import { projectRoot } from '../../kit/sources/source-files.js';

async function helpOf(words: readonly string[]): Promise<string> {
  const run = await runWrit([...words, '--help']);
  assert.equal(run.exitCode, 0, run.stderr);
  return run.stdout;
}

/** The commands that a help text lists, with the commands of each group. */
async function commandsBelow(words: readonly string[]): Promise<string[][]> {
  const help = await helpOf(words);
  if (help.includes('\nExit codes:\n')) return [[...words]];
  const listed = help.split('\nExamples, ')[0]?.split('-h, --help ')[1] ?? '';
  const names = [...listed.matchAll(/^ {2}([a-z-]+)/gm)].map((match) => match[1] ?? '');
  const below = names.filter((name) => name !== 'help').map((name) => commandsBelow([...words, name]));
  return (await Promise.all(below)).flat();
}

const publisherCommands = [
  ...['init', 'publish', 'withdraw', 'promote', 'delegate', 'refresh', 'inspect', 'serve'],
  ...['repo status', 'repo log', 'repo check', 'repo gc', 'repo export'],
];
const ceremonyCommands = [
  'key new',
  'key list',
  'key show',
  'key passphrase',
  'root rotate',
  'root add-key',
  'root remove-key',
  'root threshold',
  'sign',
  'root commit',
];
const agentCommands = [
  'agent',
  'pull',
  'status',
  'health',
  'doctor',
  'reload',
  'diff',
  'history',
  'rollback',
  'pause',
  'resume',
  'refusals',
  'verify',
  'config show',
  'check',
  'config check',
];
const fleetCommands = ['serve', 'token', 'status', 'hosts', 'host', 'history', 'wait', 'log'].map(
  (name) => `fleet ${name}`,
);

describe('the help', () => {
  it('has two examples, a usage and exit codes for every command', longCase, async () => {
    const commands = await commandsBelow([]);
    const known = [...agentCommands, ...publisherCommands, ...ceremonyCommands, ...fleetCommands];
    assert.deepEqual(
      commands.map((words) => words.join(' ')).sort(),
      known.sort(),
      'each has its golden text',
    );
    for (const words of commands) {
      const name = words.join(' ');
      const help = await helpOf(words);
      const [examples = '', rest = ''] = help.split('\nUsage: ');
      assert.ok(rest.startsWith(`writ ${name} `), name);
      assert.ok([...examples.matchAll(/^ {2}\$ writ /gm)].length >= 2, `${name}: two examples`);
      assert.match(help, /\nExit codes:\n {2}0 {2}/, name);
      assert.doesNotMatch(help, /default:\s+\d{5,}/, `${name}: a default is shown as a user types it`);
    }
  });

  for (const name of [...agentCommands, ...publisherCommands, ...ceremonyCommands, ...fleetCommands]) {
    it(`matches its golden file for ${name}`, async () => {
      matchesFile(`test/golden/help/${name.replace(' ', '-')}.txt`, await helpOf(name.split(' ')));
    });
  }
});

describe('the help of writ itself', () => {
  it('lists the commands of a group in the line of the group', async () => {
    const { stdout } = await runWrit(['--help']);
    assert.match(stdout, /^ {2}key +new, list, show, passphrase$/m);
    assert.doesNotMatch(stdout, /^ {2}[a-z]+ *$/m);
  });

  it('lists the commands in groups, with examples and topics', async () => {
    const { stdout } = await runWrit(['--help']);
    const headings = [...stdout.matchAll(/^([A-Z][a-z]+):\n/gm)].map((match) => match[1]);
    assert.deepEqual(headings, ['Options', 'Repository', 'Keys', 'Fleet', 'Host']);
    assert.match(stdout, /\n {2}\$ writ init .*\n {2}\$ writ publish /);
    for (const topic of topicNames) assert.match(stdout, new RegExp(`TOPIC: .*${topic}`));
  });

  it('is the hint for a usage error, with the command that was typed', async () => {
    const hintOf = async (...words: string[]) => jsonOf(await runWrit([...words, '--json']))['hint'];
    assert.equal(await hintOf('publish', 'policy'), 'Run writ publish --help.');
    assert.equal(await hintOf('refusals', 'forget', 'dns-edge'), 'Run writ refusals --help.');
    assert.equal(await hintOf('fleet', 'wait', 'dns-edge', '42', 'more'), 'Run writ fleet wait --help.');
  });

  it('exits 2 for a word that is neither a command nor a topic, and names the topics', async () => {
    const run = await runWrit(['help', 'exit-code', '--json']);
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'USAGE']);
    assert.match(String(jsonOf(run)['hint']), /^Topics: exit-codes, environment, bundles, keys, upload\. /);
  });
});

describe('a topic of the help', () => {
  for (const topic of topicNames) {
    it(`${topic} has at most 90 columns, and names only pages that exist`, async () => {
      const { stdout, exitCode } = await runWrit(['help', topic]);
      assert.equal(exitCode, 0);
      assert.ok(stdout.split('\n').every((line) => line.length <= 90));
      for (const [page] of stdout.matchAll(/docs\/[a-z-]+\.md/g))
        assert.ok(existsSync(join(projectRoot, page)), page);
    });
  }

  it('exit-codes lists the exit code of every kind of error', async () => {
    const { stdout } = await runWrit(['help', 'exit-codes']);
    for (const code of Object.values(exitCodeOfKind))
      assert.match(stdout, new RegExp(`^ {2}${code} {4}\\S`, 'm'));
  });
});

describe('the imports', longCase, () => {
  it('of `writ status` contain the parser, YAML and a socket, and no code for the network, schemas, archives or keys', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    const trace = dir.join('imports');
    writeFileSync(config, `run: ${dir.path}\n`);
    await using _agent = await fakeAgent({ path: dir.join('agent.sock'), answer: () => [statusReport()] });
    const run = await runWritProcess(['status', '--config', config], { env: tracingEnv(trace) });
    assert.equal(run.exitCode, 0, run.stderr);
    const { sources, joined, whole } = loadedSources(trace);
    assert.deepEqual([joined, whole], [['commander', 'yaml'], []]);
    const own = sources.filter((path) => path.startsWith('src/'));
    assert.ok(own.length > 5 && own.length < 72, `${own.length} modules of our own`);
    for (const part of ['publisher/', 'server/', 'trust/', 'workers/']) {
      assert.deepEqual(
        own.filter((path) => path.startsWith(`src/${part}`)),
        [],
      );
    }
  });
});
