import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { takeLock } from '../../../src/platform/disk/process-lock.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { longCase } from '../../kit/assert/long-case.js';
import { madeHere, v1, writ } from '../../kit/cli/publisher-cli.js';
import { jsonOf, runWrit, type WritRun } from '../../kit/cli/run-writ.js';
import { runWritProcess, startWrit } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { metadataPath } from '../../kit/repository/sample-repository.js';

const v2 = { 'block.rpz': 'two\n', 'views/us.yaml': 'us: 1\n' };

const places = ['--repository', 'repo', '--keys', 'keys'] as const;

function publish(dir: TempDir, ...args: readonly string[]): Promise<WritRun> {
  return writ(dir, 'publish', 'source', ...places, '--bundle', 'dns-edge', ...args);
}

describe('writ init', () => {
  it('creates keys and a repository, and ends with the next command to paste', async () => {
    using dir = tempDir();
    const run = await writ(dir, 'init', ...places, '--no-passphrase');
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^CREATED repository repo /);
    assert.match(
      run.stdout,
      /\n {2}root {7}3 {5}2 {5}\d{4}-\d{2}-\d{2} {2}36[45] d {2}keys\/root-1\.\.3\.key /,
    );
    assert.match(run.stdout, /\nNext: writ publish SOURCE --repository repo --keys keys --bundle NAME\n$/);
    assert.ok(fs.existsSync(dir.join('repo', 'metadata', '1.root.json')));
  });

  it('encrypts the keys with the passphrase of a file, and publish unlocks them', longCase, async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('phrase'), 'correct horse\n');
    const small = ['--root-keys', '1', '--root-threshold', '1', '--yes'];
    const init = await writ(dir, 'init', ...places, ...small, '--passphrase-file', 'phrase', '--json');
    assert.equal(jsonOf(init)['encrypted'], true);
    writeTree(dir.join('source'), v1);
    const none = await publish(dir, '--json');
    assert.deepEqual([none.exitCode, jsonOf(none)['code']], [2, 'PASSPHRASE_NEEDED']);
    const flags = ['publish', 'source', ...places, '--bundle', 'dns-edge', '--json'];
    const wrong = await runWrit(flags, { cwd: dir.path, env: { WRIT_PASSPHRASE: 'wrong' } });
    assert.deepEqual([wrong.exitCode, jsonOf(wrong)['code']], [1, 'PASSPHRASE_WRONG']);
    const stdin = [...flags, '--passphrase-file', '-'];
    const right = await runWritProcess(stdin, { cwd: dir.path, input: 'correct horse\n' });
    assert.deepEqual([right.exitCode, jsonOf(right)['outcome']], [0, 'published']);
  });

  it('exits 2 with PASSPHRASE_NEEDED without a terminal, and writes nothing', async () => {
    using dir = tempDir();
    const run = await writ(dir, 'init', ...places, '--json');
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'PASSPHRASE_NEEDED']);
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('refuses a passphrase file that is empty or missing', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('empty'), '\n');
    for (const file of ['empty', 'missing']) {
      const run = await writ(dir, 'init', ...places, '--passphrase-file', file, '--json');
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'PASSPHRASE_NEEDED']);
    }
  });

  it('exits 2 with REPOSITORY_EXISTS when the repository exists', async () => {
    using dir = tempDir();
    madeHere(dir);
    const again = await writ(dir, 'init', ...places, '--no-passphrase', '--json');
    assert.deepEqual([again.exitCode, jsonOf(again)['code']], [2, 'REPOSITORY_EXISTS']);
  });

  it('names the person for each root key, and the key that has no person', async () => {
    using dir = tempDir();
    const two = await writ(dir, 'init', ...places, '--no-passphrase', '--name', 'anna', '--name', 'ben');
    assert.match(two.stdout, /1\. give root-1\.key to anna, root-2\.key to ben, each with a copy/);
    assert.match(two.stdout, /root-3\.key: nobody is named/);
  });

  it('signs the timestamp with the validity period of --timestamp-life', async () => {
    using dir = tempDir();
    const run = await writ(dir, 'init', ...places, '--no-passphrase', '--timestamp-life', '2d');
    assert.equal(run.exitCode, 0, run.stderr);
    const { signed } = JSON.parse(fs.readFileSync(dir.join('repo', 'metadata', 'timestamp.json'), 'utf8'));
    const validityMs = Date.parse(signed.expires) - Date.parse(signed.writ.signedAt);
    assert.equal(validityMs, 2 * 86_400_000);
  });
});

describe('writ publish --stamp', longCase, () => {
  it('reports the stamped files and the digest of the source before them, and warns of a later release without --stamp', async () => {
    using dir = tempDir();
    madeHere(dir);
    const source = { 'block.rpz': 'stamp TXT "@writ.serial@"\n' };
    writeTree(dir.join('source'), source);
    const missing = await publish(dir, '--stamp', 'other', '--json');
    assert.deepEqual([missing.exitCode, jsonOf(missing)['code']], [2, 'SOURCE_REFUSED']);
    const dry = jsonOf(await publish(dir, '--stamp', 'block.rpz', '--dry-run', '--json'));
    const done = jsonOf(await publish(dir, '--stamp', 'block.rpz', '--json'));
    assert.deepEqual([done['outcome'], done['manifestDigest']], ['published', dry['manifestDigest']]);
    const [stamp] = done['stamps'] as { path: string; length: number }[];
    assert.deepEqual([stamp?.path, stamp?.length], ['block.rpz', source['block.rpz'].length]);
    assert.notEqual(done['source'], done['manifestDigest']);
    assert.match((await publish(dir, '--stamp', 'block.rpz')).stdout, /^NOTHING NEW/);
    assert.match((await publish(dir)).stderr, /was --stamp forgotten\?/);
  });
});

describe('writ publish --requires', () => {
  it('signs the required features sorted and without duplicates, and warns of those that this Writ does not know', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), v1);
    assert.equal('requires' in jsonOf(await publish(dir, '--json')), false);
    const flags = ['--requires', 'waves-1', '--requires', 'brake-1', '--requires', 'waves-1'];
    const requires = ['brake-1', 'waves-1'];
    const dry = jsonOf(await publish(dir, ...flags, '--dry-run', '--json'));
    assert.deepEqual([dry['serial'], dry['requires']], [2, requires]);
    const run = await publish(dir, ...flags);
    assert.match(
      run.stdout,
      /^PUBLISHED dns-edge stable serial 1 -> 2\n/,
      'the same tree, other required features',
    );
    assert.match(run.stderr, /does not know brake-1, waves-1: its hosts keep the previous release/);
    assert.deepEqual(jsonOf(await publish(dir, ...flags, '--json'))['outcome'], 'nothing-new');
    const inspected = await writ(dir, 'inspect', 'repo');
    assert.match(inspected.stdout, /\n {2}dns-edge stable 2 requires brake-1, waves-1 of a host\n/);
    const [release] = jsonOf(await writ(dir, 'inspect', 'repo', '--json'))['releases'] as object[];
    assert.deepEqual((release as { requires?: unknown }).requires, requires);
    assert.equal(jsonOf(await publish(dir, '--json'))['serial'], 3, 'the next release requires no feature');
  });

  it('exits 2 with USAGE for required features that hosts would reject as malformed', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), v1);
    const many = Array.from({ length: 17 }, (_, index) => ['--requires', `f-${index}`]).flat();
    for (const args of [['--requires', 'Waves'], ['--requires', ''], many]) {
      for (const dry of [[], ['--dry-run']]) {
        const run = await publish(dir, ...args, ...dry, '--json');
        assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'USAGE']);
      }
    }
  });

  it(
    'stays with its release when a promotion or a withdrawal points another channel to it',
    longCase,
    async () => {
      using dir = tempDir();
      madeHere(dir);
      const requiresOf = async (channel: string) => {
        const found = jsonOf(await writ(dir, 'inspect', 'repo', '--json'))['releases'] as {
          channel: string;
          serial: number;
          requires?: string[];
        }[];
        const { serial, requires } = found.find((one) => one.channel === channel) ?? {};
        return [serial, requires];
      };
      writeTree(dir.join('source'), v1);
      await publish(dir, '--channel', 'canary', '--requires', 'waves-1');
      writeTree(dir.join('source'), v2);
      const promote = await writ(
        ...([
          dir,
          'promote',
          ...places,
          '--bundle',
          'dns-edge',
          '--from',
          'canary',
          '--to',
          'stable',
        ] as const),
      );
      assert.equal(promote.exitCode, 0, promote.stderr);
      assert.deepEqual(await requiresOf('stable'), [1, ['waves-1']]);
      await publish(dir);
      assert.deepEqual(await requiresOf('stable'), [2, undefined]);
      const back = ['--bundle', 'dns-edge', '--serial', '2', '--channel', 'stable'];
      const withdraw = await writ(dir, 'withdraw', ...places, ...back);
      assert.equal(withdraw.exitCode, 0, withdraw.stderr);
      assert.deepEqual(await requiresOf('stable'), [1, ['waves-1']]);
    },
  );
});

describe('writ publish', () => {
  it('publishes a release, reports NOTHING NEW for the same content, and publishes the next serial for other content', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), v1);
    const first = await publish(dir, '--revision', '4f1c2e9');
    assert.equal(first.exitCode, 0, first.stderr);
    assert.equal(first.stdout, 'PUBLISHED dns-edge stable serial 1 (4f1c2e9)\n');
    assert.match(first.stderr, /\tverify\tok\t/);
    const again = await publish(dir);
    assert.equal(again.stdout, 'NOTHING NEW dns-edge stable is serial 1 with this content\n');
    writeTree(dir.join('source'), v2);
    const second = jsonOf(await publish(dir, '--json'));
    const { schema, type, outcome, exitCode, serial, previousSerial, difference } = second;
    assert.deepEqual(
      { schema, type, outcome, exitCode, serial, previousSerial },
      { schema: 1, type: 'publish.result', outcome: 'published', exitCode: 0, serial: 2, previousSerial: 1 },
    );
    assert.deepEqual(difference, { added: ['views/us.yaml'], changed: ['block.rpz'], removed: [] });
  });

  it('prints WOULD PUBLISH with --dry-run, and writes nothing', async () => {
    using dir = tempDir();
    const repository = madeHere(dir);
    writeTree(dir.join('source'), v1);
    const before = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
    const run = await publish(dir, '--dry-run');
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(
      run.stdout,
      /^WOULD PUBLISH dns-edge stable serial 1\n.*\n {2}change .*\n(?: {2}new +\d+ B {2}\S+\n)+Nothing was written\n$/,
    );
    assert.deepEqual(fs.readFileSync(metadataPath(repository, 'timestamp.json')), before);
    assert.deepEqual(fs.readdirSync(dir.join('repo', 'targets')), []);
    await publish(dir);
    assert.match((await publish(dir, '--dry-run')).stdout, /^NOTHING NEW .*\nNothing was written\n$/);
  });

  it('lists the new, changed, removed and excluded files with --dry-run', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), { a: 'a', b: 'b', c: 'c' });
    await publish(dir);
    fs.rmSync(dir.join('source', 'c'));
    writeTree(dir.join('source'), { b: 'other', d: 'd', 'd.bak': '', '.env': 'TOKEN=1' });
    const refused = jsonOf(await publish(dir, '--dry-run', '--json'));
    assert.deepEqual([refused['code'], refused['exitCode']], ['CONTENT_SECRET', 2]);
    const choice = ['--dry-run', '--exclude', '*.bak', '--exclude', '.env'];
    const { stdout } = await publish(dir, ...choice);
    assert.match(stdout, /left out: \.env, d\.bak/);
    const listed = stdout
      .match(/^ {2}(new|changed|same|removed) .*$/gm)
      ?.map((line) => line.trim().split(/ +/));
    const names = listed?.map((cells) => `${cells[0]} ${cells.at(-1)}`);
    assert.deepEqual(names, ['same a', 'changed b', 'new d', 'removed c']);
    const { contents, excluded } = jsonOf(await publish(dir, ...choice, '--json'));
    assert.deepEqual(contents, [
      { path: 'a', bytes: 1 },
      { path: 'b', bytes: 5 },
      { path: 'd', bytes: 1 },
    ]);
    assert.deepEqual(excluded, ['.env', 'd.bak']);
  });

  it('writes its complete result to a pipe, also one that is larger than the pipe', longCase, async () => {
    using dir = tempDir();
    await madeHere(dir).publish(v1);
    const names = Array.from({ length: 9000 }, (_, index) =>
      createHash('sha512').update(`${index}`).digest('hex'),
    );
    writeTree(dir.join('source'), Object.fromEntries(names.map((name) => [name, ''])));
    const run = await publish(dir, '--json', '--accept-change');
    assert.equal(jsonOf(run)['outcome'], 'published', run.stdout.slice(0, 500));
    assert.ok(run.stdout.length > 1_000_000, 'a pipe holds less than this');
  });

  it('names `writ refresh`, which publishes the release, when the online keys are missing', async () => {
    using dir = tempDir();
    const repository = madeHere(dir);
    writeTree(dir.join('source'), v1);
    fs.mkdirSync(dir.join('online'));
    for (const name of ['snapshot.key', 'timestamp.key']) {
      fs.renameSync(`${repository.keys}/${name}`, dir.join('online', name));
    }
    const run = await publish(dir);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^SIGNED dns-edge stable serial 1; .*\nNext: writ refresh --repository repo /);
    const status = await writ(dir, 'repo', 'status', '--repository', 'repo', '--json');
    assert.deepEqual([status.exitCode, jsonOf(status)['waiting']], [1, true]);
    const refresh = await writ(dir, 'refresh', '--repository', 'repo', '--keys', 'online');
    assert.match(
      refresh.stdout,
      /^SIGNED snapshot v2, timestamp v2; targets v1 -> v2 published\n {2}publishes {2}dns-edge stable serial 1 sha256:[0-9a-f]{12}\n$/,
    );
    const seen = jsonOf(await writ(dir, 'inspect', 'repo', '--json'));
    assert.equal((seen['releases'] as { serial: number }[])[0]?.serial, 1);
  });

  it(
    'exits 2 with SOURCE_REFUSED and the reason for a source with a link, also with --json',
    longCase,
    async () => {
      using dir = tempDir();
      madeHere(dir);
      fs.mkdirSync(dir.join('source'));
      fs.symlinkSync('/etc/passwd', dir.join('source', 'link'));
      // In a process of its own, because the error has the path as a user typed it.
      const publishing = ['publish', 'source', ...places, '--bundle', 'dns-edge'];
      const run = await runWritProcess(publishing, { cwd: dir.path });
      assert.equal(run.exitCode, 2);
      assert.equal(run.stdout, '');
      assert.match(run.stderr, /^error\[SOURCE_REFUSED\]: source: link is a link\nhint: /);
      const { code, facts } = jsonOf(await publish(dir, '--json'));
      assert.equal(code, 'SOURCE_REFUSED');
      assert.deepEqual((facts as { refusals: string[] }).refusals, ['link is a link']);
    },
  );

  it('warns of directories that it left out because they have no file', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), { ...v1, 'none/': '' });
    const run = await publish(dir, '-q');
    assert.equal(run.stderr, 'warning: 1 directory without a file left out: none\n');
  });

  it('prints only the result with --quiet', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), v1);
    const run = await publish(dir, '--quiet');
    assert.deepEqual([run.stderr, run.stdout], ['', 'PUBLISHED dns-edge stable serial 1\n']);
  });

  it('refuses a revision with control characters', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), v1);
    for (const revision of ['x\u001b[2J', 'x\u202e', 'a\nb']) {
      const run = await publish(dir, '--revision', revision, '--json');
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'USAGE']);
    }
  });
});

describe('a publish while another process has the lock', longCase, () => {
  it('waits for the lock as long as --lock-wait allows, and names the flag after a timeout', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), v1);
    const held = { waitMs: 0, clock: systemClock, durable: createDurableFs() };
    const names = { path: dir.join('repo', '.lock'), holder: 'test', code: 'REPOSITORY_LOCKED' } as const;
    const lock = await takeLock({ ...held, ...names });
    const timedOut = jsonOf(await publish(dir, '--lock-wait', '1s', '--json'));
    assert.deepEqual([timedOut['exitCode'], timedOut['code']], [7, 'REPOSITORY_LOCKED']);
    assert.match(String(timedOut['hint']), /--lock-wait/);
    const args = ['--repository', dir.join('repo'), '--keys', dir.join('keys'), '--bundle', 'dns-edge'];
    await using waiting = startWrit(['publish', dir.join('source'), ...args, '--lock-wait', '5m']);
    await waiting.waitForStderr(
      /waiting up to 5 min for test \(pid \d+\), which is writing the repository since 20\d\d-/,
    );
    lock.release();
    assert.equal((await waiting.ended).exitCode, 0);
  });
});

describe('a publish that waits for the lock', longCase, () => {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`exits ${code} with INTERRUPTED on ${signal}`, async () => {
      using dir = tempDir();
      madeHere(dir);
      writeTree(dir.join('source'), v1);
      const lockOptions = {
        holder: 'test',
        waitMs: 0,
        clock: systemClock,
        durable: createDurableFs(),
        code: 'REPOSITORY_LOCKED',
      } as const;
      const lock = await takeLock({ ...lockOptions, path: dir.join('repo', '.lock') });
      try {
        const source = ['--repository', dir.join('repo'), '--keys', dir.join('keys'), '--bundle', 'dns-edge'];
        const wait = ['--lock-wait', '60s', '--json', '--verbose'];
        await using publishing = startWrit(['publish', dir.join('source'), ...source, ...wait]);
        await publishing.waitForStderr(/\tread\tbegin\t/);
        publishing.child.kill(signal);
        const run = await publishing.ended;
        assert.deepEqual(
          [run.exitCode, jsonOf(run)['code'], jsonOf(run)['exitCode']],
          [code, 'INTERRUPTED', code],
        );
      } finally {
        lock.release();
      }
    });
  }
});
