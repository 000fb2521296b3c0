// A wrong file, directory or number as an argument: the error names what is wrong, and the valid values.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { writSite } from '../../../kit/agent/writ-site.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

interface PrintedProblem {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

function problemOf(json: Record<string, unknown>): PrintedProblem {
  const [first] = (json['problems'] ?? [json]) as PrintedProblem[];
  assert.ok(first !== undefined, JSON.stringify(json));
  return first;
}

const long = 'x'.repeat(300);
const online = ['--repository', 'repo', '--keys', 'keys'];
/** Each test replaces PATH with a path. */
const pathCommands: readonly (readonly string[])[] = [
  ['init', '--repository', 'PATH', '--keys', 'new-keys', '--no-passphrase'],
  ['init', '--repository', 'new-repo', '--keys', 'PATH', '--no-passphrase'],
  ['key', 'new', 'PATH', '--no-passphrase'],
  ['key', 'show', 'PATH'],
  ['key', 'list', 'PATH'],
  ['publish', 'PATH', ...online, '--bundle', 'dns-edge'],
  ['publish', 'tree', '--repository', 'PATH', '--keys', 'keys', '--bundle', 'dns-edge'],
  ['publish', 'tree', '--repository', 'repo', '--keys', 'PATH', '--bundle', 'dns-edge'],
  ['delegate', 'dns-team', ...online, '--paths', 'dns-*/*', '--key', 'PATH', '--yes'],
  ['sign', '--role', 'targets', '--repository', 'PATH', '--keys', 'keys'],
  ['sign', 'PATH', '--key', 'keys/root-1.key'],
  ['refresh', '--repository', 'PATH', '--keys', 'keys'],
  ['refresh', '--repository', 'repo', '--keys', 'PATH'],
  ['root', 'rotate', ...online, '-o', 'PATH'],
  ['root', 'commit', 'PATH', ...online],
  ['repo', 'status', '--repository', 'PATH'],
  ['repo', 'status', '--repository', 'repo', '--keys', 'PATH'],
  ['repo', 'log', '--repository', 'PATH'],
  ['repo', 'check', '--repository', 'PATH'],
  ['repo', 'gc', '--repository', 'PATH'],
  ['repo', 'export', 'PATH', '--repository', 'repo'],
  ['repo', 'export', 'exported', '--repository', 'PATH'],
  ['inspect', 'PATH'],
  ['config', 'check', '--config', 'PATH'],
  ['pull', '--config', 'PATH'],
];

describe('a path below a file, through a loop of links, or with a long name', () => {
  for (const command of pathCommands)
    it(`is never INTERNAL in ${command.join(' ').slice(0, 60)}`, async () => {
      using dir = tempDir();
      const site = writSite(dir, { sandbox: 'off' });
      await site.repository.publish({ 'a.rpz': 'one' });
      fs.mkdirSync(dir.join('tree'));
      fs.writeFileSync(dir.join('tree', 'a.rpz'), 'two');
      fs.writeFileSync(dir.join('file'), '');
      fs.symlinkSync('loop', dir.join('loop'));
      for (const path of [
        'file',
        'file/below',
        'file/below/it',
        'loop',
        'loop/below',
        long,
        `${long}/below`,
      ]) {
        const args = command.map((argument) => (argument === 'PATH' ? path : argument));
        const run = await runWrit([...args, '--json'], { cwd: dir.path });
        assert.doesNotMatch(run.stdout + run.stderr, /INTERNAL|already exists/, path.slice(0, 20));
      }
    });
});

describe('a wrong path or number', () => {
  it('is ROOT_UNUSABLE with the name of the file as the root of a host, without refused metadata', async () => {
    using dir = tempDir();
    const root = dir.join('wrong.json');
    const site = writSite(dir, { sandbox: 'off', root });
    await site.repository.publish({ 'a.rpz': 'one' });
    const metadata = join(dir.path, 'repo', 'metadata');
    const { signed } = JSON.parse(fs.readFileSync(join(metadata, '1.root.json'), 'utf8')) as object & {
      signed: object;
    };
    const wrong = [
      fs.readFileSync(join(metadata, '1.targets.json')),
      JSON.stringify({ signatures: [], signed }),
      'root:x:0:0',
    ];
    for (const bytes of wrong) {
      fs.writeFileSync(root, bytes);
      const pull = await site.json('pull');
      const { code, message } = problemOf(pull);
      assert.deepEqual([code, pull['exitCode']], ['ROOT_UNUSABLE', 2]);
      assert.match(message, /wrong\.json cannot be used: /);
    }
    const { freshness } = (await site.json('status')) as { freshness: { state: string } };
    assert.notEqual(freshness.state, 'refused');
  });

  it(
    'is NO_PREVIOUS with the retained generations for a generation that does not exist',
    longCase,
    async () => {
      using dir = tempDir();
      const site = writSite(dir, { sandbox: 'off' });
      for (const text of ['one', 'two', 'three']) {
        await site.repository.publish({ 'a.rpz': text });
        await site.writ('pull');
      }
      const { code, hint } = problemOf(await site.json('rollback', '99'));
      assert.equal(code, 'NO_PREVIOUS');
      assert.match(hint, /^Kept generations: 2, 1; /);
    },
  );

  it('is named in the error for the source and the keys of a publish', async () => {
    using dir = tempDir();
    await writSite(dir).repository.publish({ 'a.rpz': 'one' });
    fs.mkdirSync(dir.join('other'));
    fs.mkdirSync(dir.join('tree'));
    fs.writeFileSync(dir.join('tree', 'a.rpz'), 'two');
    const publish = async (source: string, keys: string) => {
      const at = ['--repository', 'repo', '--keys', keys, '--bundle', 'dns-edge', '--json'];
      return problemOf(jsonOf(await runWrit(['publish', source, ...at], { cwd: dir.path })));
    };
    const file = await publish('tree/a.rpz', 'keys');
    assert.equal(file.code, 'SOURCE_REFUSED');
    assert.match(file.message, /tree\/a\.rpz is a file/);
    const none = await publish('tree', 'other');
    assert.equal(none.code, 'KEYS_MISSING');
    assert.match(none.message, /has 0 of the 1 targets keys that are needed: it contains no \.key file/);
    fs.copyFileSync(dir.join('keys', 'snapshot.key'), dir.join('other', 'snapshot.key'));
    assert.match((await publish('tree', 'other')).message, /it contains snapshot\.key$/);
  });

  it('is DISK_FAILED as the run directory, not AGENT_UNREACHABLE', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), '');
    const site = writSite(dir, { sandbox: 'off', run: dir.join('file') });
    const { code, message } = problemOf(await site.json('pull'));
    assert.equal(code, 'DISK_FAILED');
    assert.match(message, /file is not a directory/);
    const status = await site.writ('status', '--json');
    assert.notEqual(jsonOf(status)['code'], 'AGENT_UNREACHABLE', status.stdout);
  });
});
