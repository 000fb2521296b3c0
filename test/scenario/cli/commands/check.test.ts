import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { longCase } from '../../../kit/assert/long-case.js';
import { until } from '../../../kit/assert/until.js';
import { writ } from '../../../kit/cli/publisher-cli.js';
import { jsonOf } from '../../../kit/cli/run-writ.js';
import { startWrit } from '../../../kit/cli/writ-process.js';
import { writProgram } from '../../../kit/cli/writ-program.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { needs } from '../../../kit/programs/real-programs.js';
import { projectRoot } from '../../../kit/sources/source-files.js';

interface Answer {
  readonly outcome: string;
  readonly exitCode: number;
  readonly code?: string;
  readonly excluded: readonly string[];
  readonly checks: readonly { readonly bundle: string; readonly verdict: string; readonly text: string }[];
  readonly problems: readonly { readonly code: string }[];
}

/** A check of a shell line. */
function shell(line: string, more: object = {}): object {
  return { name: 'sh', run: ['/bin/sh', '-c', line, 'sh', '{bundle}', '{candidate}'], ...more };
}

function configure(dir: TempDir, bundles: readonly object[], more: object = {}): void {
  const [state, run] = [dir.join('state'), dir.join('run')];
  const config = { repository: 'https://policy.example', root: dir.join('root.json'), state, run };
  fs.writeFileSync(dir.join('agent.yaml'), JSON.stringify({ ...config, sandbox: 'off', bundles, ...more }));
}

function oneBundle(dir: TempDir, checks: readonly object[], more: object = {}): void {
  writeTree(dir.join('policy'), { 'block.rpz': 'good\n', 'a.json': '{"a": 1}\n' });
  configure(dir, [{ name: 'dns-edge', checks }], more);
}

async function check(dir: TempDir, ...args: readonly string[]): Promise<Answer> {
  const [directory = 'policy', ...flags] = args;
  return jsonOf(await writ(dir, 'check', directory, '--config', 'agent.yaml', '--json', ...flags)) as never;
}

const grep = shell('grep -q good "$1/block.rpz" || { echo block.rpz:1 is bad; exit 1; }');

describe('writ check', () => {
  it(
    'accepts a directory that every check accepts, without a server, and writes no state of a host',
    longCase,
    async () => {
      using dir = tempDir();
      oneBundle(dir, [{ name: 'json', parse: ['*.json'] }, grep]);
      const answer = await check(dir);
      assert.deepEqual([answer.outcome, answer.exitCode], ['accepted', 0]);
      assert.deepEqual(
        answer.checks.map(({ verdict }) => verdict),
        ['ok', 'ok'],
      );
      assert.deepEqual(fs.readdirSync(dir.path).sort(), ['agent.yaml', 'policy']);
      assert.deepEqual(
        fs.readdirSync(tmpdir()).filter((name) => name.startsWith('writ-check-')),
        [],
      );
    },
  );

  it('exits 3 and prints the line of every check that rejects the directory', longCase, async () => {
    using dir = tempDir();
    oneBundle(dir, [{ name: 'json', parse: ['*.json'] }, grep]);
    writeTree(dir.join('policy'), { 'block.rpz': 'evil\n', 'a.json': '{"a": }\n' });
    const run = await writ(dir, 'check', 'policy', '--config', 'agent.yaml');
    assert.equal(run.exitCode, 3);
    assert.match(run.stdout, /^REJECTED dns-edge from policy: 2 files, /);
    assert.match(run.stdout, /FAIL {2}dns-edge: json .*\n {8}a\.json:1:7: /);
    assert.match(run.stdout, /FAIL {2}dns-edge: sh \(exit 1, .*\n {8}block\.rpz:1 is bad\n/);
    assert.match(run.stdout, /CHECK_FAILED/);
  });

  it('checks only files that publish would include, without those of .writignore and --exclude', async () => {
    using dir = tempDir();
    oneBundle(dir, [shell('test ! -e "$1/notes.md" && test ! -e "$1/x.bak"')]);
    writeTree(dir.join('policy'), { 'notes.md': 'n', 'x.bak': 'b' });
    assert.equal((await check(dir)).exitCode, 3);
    writeTree(dir.join('policy'), { '.writignore': '*.md\n' });
    const answer = await check(dir, 'policy', '--exclude', '*.bak');
    assert.deepEqual([answer.outcome, answer.excluded], ['accepted', ['notes.md', 'x.bak']]);
  });

  it('refuses a link out of the directory and a secret, as publish does', async () => {
    using dir = tempDir();
    oneBundle(dir, [grep]);
    fs.symlinkSync('/etc/passwd', dir.join('policy', 'users'));
    const linked = await check(dir);
    assert.deepEqual([linked.exitCode, linked.code], [2, 'SOURCE_REFUSED']);
    fs.rmSync(dir.join('policy', 'users'));
    writeTree(dir.join('policy'), { '.env': 'TOKEN=1' });
    assert.equal((await check(dir)).code, 'CONTENT_SECRET');
    assert.equal((await check(dir, 'nowhere')).code, 'SOURCE_REFUSED');
  });

  it('applies the limits of the host to the directory', async () => {
    using dir = tempDir();
    oneBundle(dir, [grep], { limits: { file: '1kB' } });
    fs.writeFileSync(dir.join('policy', 'large'), Buffer.alloc(2000, 'a'));
    const answer = await check(dir);
    assert.equal(answer.exitCode, 3, JSON.stringify(answer));
  });

  it('ends a check after its timeout, and exits 1 without a verdict', longCase, async () => {
    using dir = tempDir();
    oneBundle(dir, [shell('sleep 60', { timeout: '1s' })]);
    const answer = await check(dir);
    assert.deepEqual(
      [answer.exitCode, answer.outcome, answer.problems.map(({ code }) => code)],
      [1, 'failed', ['CHECK_BROKEN']],
    );
  });

  it(
    'requires --bundle when several are configured, and stages the bundles of --with beside it',
    longCase,
    async () => {
      using dir = tempDir();
      const both = shell('cat "$2/acl/rules" "$2/limits/max"');
      writeTree(dir.join('acl'), { rules: 'allow\n' });
      writeTree(dir.join('limits'), { max: '5\n' });
      configure(dir, [{ name: 'acl', checks: [both] }, { name: 'limits' }]);
      assert.equal((await check(dir, 'acl')).code, 'USAGE');
      assert.equal((await check(dir, 'acl', '--bundle', 'nobody')).code, 'USAGE');
      assert.equal((await check(dir, 'acl', '--bundle', 'acl')).exitCode, 3);
      const answer = await check(dir, 'acl', '--bundle', 'acl', '--with', 'limits=limits');
      assert.equal(answer.outcome, 'accepted');
      assert.match(answer.checks[0]?.text ?? '', /allow\n5/);
      assert.equal((await check(dir, 'acl', '--bundle', 'acl', '--with', 'limits')).code, 'USAGE');
    },
  );

  it('exits 2 with CONFIG_INVALID for a configuration with a mistake', async () => {
    using dir = tempDir();
    oneBundle(dir, [{ name: 'json', parse: 'all' }]);
    const answer = await check(dir);
    assert.deepEqual([answer.exitCode, answer.code], [2, 'CONFIG_INVALID']);
  });

  it('runs the commands in the same sandbox as a pull', needs('bwrap', 'bubblewrap'), async () => {
    using dir = tempDir();
    oneBundle(
      dir,
      [shell('touch "$1/new" 2>/dev/null && exit 1; test ! -e /root/.bashrc; ls "$2"; id -un')],
      {
        sandbox: 'required',
      },
    );
    const answer = await check(dir);
    assert.equal(answer.outcome, 'accepted', JSON.stringify(answer));
    assert.match(answer.checks[0]?.text ?? '', /^dns-edge\n/);
    if (process.getuid?.() === 0) assert.match(answer.checks[0]?.text ?? '', /nobody/);
  });
});

/** @returns the processes with this text in their command line */
function processesWith(text: string): readonly string[] {
  return fs
    .readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => commandLine(pid).includes(text));
}

function commandLine(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

describe('a signal to writ check', () => {
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`ends the reading of a large directory with ${exitCode}, and removes temporary files (${signal})`, async () => {
      using dir = tempDir();
      oneBundle(dir, [grep]);
      fs.mkdirSync(dir.join('tmp'));
      for (let n = 0; n < 8; n += 1) {
        fs.writeFileSync(dir.join(`policy/hole-${n}`), '');
        fs.truncateSync(dir.join(`policy/hole-${n}`), 450_000_000);
      }
      const args = ['check', dir.join('policy'), '--config', dir.join('agent.yaml'), '--json', '-v'];
      await using checking = startWrit(args, { TMPDIR: dir.join('tmp') });
      await checking.waitForStderr(/\tread\tbegin\t/);
      checking.child.kill(signal);
      const run = await checking.ended;
      const { code, exitCode: printed } = jsonOf(run);
      assert.deepEqual([run.exitCode, printed, code], [exitCode, exitCode, 'INTERRUPTED'], run.stderr);
      assert.match(run.stdout, /the reading was interrupted/);
      assert.deepEqual(fs.readdirSync(dir.join('tmp')), []);
    });
  }

  it('ends the sandbox of a running check', { ...needs('bwrap', 'bubblewrap'), ...longCase }, async () => {
    using dir = tempDir();
    // A duration that no other process has in its command line.
    const duration = `10000.${process.pid}`;
    oneBundle(dir, [shell(`exec sleep ${duration}`)], { sandbox: 'required' });
    fs.mkdirSync(dir.join('tmp'));
    const args = ['check', dir.join('policy'), '--config', dir.join('agent.yaml'), '--json'];
    await using checking = startWrit(args, { TMPDIR: dir.join('tmp') });
    await until(() => processesWith(`sleep\0${duration}`).length > 0);
    checking.child.kill('SIGINT');
    const run = await checking.ended;
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [130, 'INTERRUPTED'], run.stdout + run.stderr);
    await until(() => processesWith(duration).length === 0);
    assert.deepEqual(fs.readdirSync(dir.join('tmp')), []);
  });
});

/** @returns the hook of the page, as a user copies it */
function hookOfPage(): string {
  const page = fs.readFileSync(join(projectRoot, 'docs/operations.md'), 'utf8');
  return /```bash\n(#!\/bin\/sh\n[^`]*writ check [^`]*)```/.exec(page)?.[1] ?? '';
}

describe('the pre-commit hook of docs/operations.md', () => {
  it('lets a valid policy be committed and refuses an invalid one', needs('git', 'git'), () => {
    using dir = tempDir();
    oneBundle(dir, [{ name: 'json', parse: ['*.json'] }]);
    const bin = dir.join('bin');
    fs.mkdirSync(bin);
    fs.writeFileSync(join(bin, 'writ'), `#!/bin/sh\nexec "${process.execPath}" "${writProgram}" "$@"\n`, {
      mode: 0o755,
    });
    const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}`, HOME: dir.path };
    const git = (...args: readonly string[]) => {
      const author = ['-c', 'user.name=ann', '-c', 'user.email=ann@example.org'];
      return spawnSync('git', [...author, ...args], { cwd: dir.path, env, encoding: 'utf8' });
    };
    execFileSync('git', ['init', '-q'], { cwd: dir.path, env });
    assert.notEqual(hookOfPage(), '');
    fs.writeFileSync(dir.join('.git/hooks/pre-commit'), hookOfPage(), { mode: 0o755 });
    git('add', 'policy', 'agent.yaml');
    const good = git('commit', '-q', '-m', 'good');
    assert.equal(good.status, 0, good.stderr);
    writeTree(dir.join('policy'), { 'a.json': '{' });
    git('add', 'policy');
    // The work tree is valid again, but the commit still contains the invalid file.
    writeTree(dir.join('policy'), { 'a.json': '{}' });
    const bad = git('commit', '-q', '-m', 'bad');
    assert.notEqual(bad.status, 0);
    assert.match(bad.stdout + bad.stderr, /a\.json:1:/);
  });
});
