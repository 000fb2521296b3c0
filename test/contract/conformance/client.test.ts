import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { httpFixture } from '../../kit/net/http-fixture.js';
import { isoTime, RepositorySimulator } from '../../kit/repository/repository-simulator.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const executable = join(projectRoot, 'test', 'contract', 'conformance', 'client');
const nowMs = Date.now();

/** A repository on a local port, and the client under test with directories of its own. */
async function suiteOf(repository: RepositorySimulator) {
  const dir = tempDir();
  const requests: string[] = [];
  const server = await httpFixture((request, response) => {
    const path = (request.url ?? '/').slice(1);
    requests.push(`${request.method} ${path}`);
    const bytes = repository.files.get(path);
    if (bytes === undefined) response.writeHead(404).end();
    else response.end(bytes);
  });
  const metadata = dir.join('metadata-dir');
  const targets = dir.join('targets-dir');
  for (const path of [metadata, targets]) mkdirSync(path);
  let output = '';
  const run = async (...args: string[]): Promise<number> => {
    const result = await runCommand({
      argv: [executable, ...args],
      timeoutMs: 60_000,
      maxOutputBytes: 10_000,
    });
    output = JSON.stringify(result);
    return result.kind === 'exited' ? result.exitCode : -1;
  };
  const places = ['--metadata-dir', metadata];
  const url = ['--metadata-url', `${server.url}metadata/`, ...places];
  return {
    metadata,
    targets,
    run,
    /** The exit code and the output of the last command. */
    output: () => output,
    requests: () => requests.splice(0),
    init: (root: Uint8Array = repository.bootstrapRoot) => {
      writeFileSync(dir.join('trusted.json'), root);
      return run(...places, 'init', dir.join('trusted.json'));
    },
    refresh: () => run(...url, 'refresh'),
    download: (...names: string[]) => {
      const wanted = names.flatMap((name) => ['--target-name', name]);
      const to = ['--target-dir', targets, '--target-base-url', `${server.url}targets/`];
      return run(...url, ...wanted, ...to, 'download');
    },
    /** @returns the files directly in the metadata directory, which the suite counts as trusted metadata */
    trusted: () =>
      readdirSync(metadata)
        .filter((name) => name.endsWith('.json'))
        .sort(),
    downloaded: () => readdirSync(targets).map((name) => readFileSync(join(targets, name), 'utf8')),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe('the client under test', longCase, () => {
  it('initializes without a request, refreshes with four requests in order, and stores trusted metadata as received', async () => {
    const repository = new RepositorySimulator({ nowMs });
    await using suite = await suiteOf(repository);
    assert.equal(await suite.init(), 0, suite.output());
    assert.deepEqual([suite.trusted(), suite.requests()], [['root.json'], []]);
    assert.equal(await suite.refresh(), 0, suite.output());
    assert.deepEqual(suite.requests(), [
      'GET metadata/2.root.json',
      'GET metadata/timestamp.json',
      'GET metadata/1.snapshot.json',
      'GET metadata/1.targets.json',
    ]);
    assert.deepEqual(suite.trusted(), ['root.json', 'snapshot.json', 'targets.json', 'timestamp.json']);
    for (const role of ['root', 'snapshot', 'targets']) {
      const stored = readFileSync(join(suite.metadata, `${role}.json`));
      assert.deepEqual(stored, repository.file(`1.${role}.json`));
    }
  });

  it('sends no request with an initial root that is unsigned or invalid', async () => {
    await using suite = await suiteOf(new RepositorySimulator({ nowMs }));
    const stranger = new RepositorySimulator({ nowMs });
    const unsigned = JSON.parse(stranger.bootstrapRoot.toString());
    for (const { keyid } of unsigned.signatures) assert.equal(keyid.length, 64);
    unsigned.signatures[0].sig = '00'.repeat(64);
    for (const root of [JSON.stringify({ ...unsigned, signatures: unsigned.signatures.slice(0, 1) }), '{']) {
      await suite.init(Buffer.from(root));
      assert.equal(await suite.refresh(), 1);
    }
    assert.deepEqual(suite.requests(), []);
  });

  it('downloads targets in order, also of delegated roles with odd names, and only missing ones', async () => {
    const repository = new RepositorySimulator({ nowMs });
    repository.addTarget('file.txt', Buffer.from('one'), { digests: ['sha512'] });
    repository.delegate('targets', { name: '../odd?', paths: ['sub/*'] });
    repository.addTarget('sub/file.txt', Buffer.from('two'), { listedBy: '../odd?' });
    repository.publish();
    await using suite = await suiteOf(repository);
    await suite.init();
    assert.equal(await suite.download('file.txt', 'sub/file.txt'), 0, suite.output());
    assert.deepEqual(suite.downloaded().sort(), ['one', 'two']);
    assert.ok(suite.trusted().includes('..%2Fodd%3F.json'));
    assert.ok(suite.requests().includes('GET metadata/1...%2Fodd%3F.json'));
    assert.equal(await suite.download('file.txt', 'sub/file.txt'), 0, suite.output());
    assert.deepEqual(suite.requests(), ['GET metadata/2.root.json', 'GET metadata/timestamp.json']);
  });

  it('replaces a changed file, and leaves no rejected file', async () => {
    const repository = new RepositorySimulator({ nowMs });
    repository.addTarget('file.txt', Buffer.from('one'));
    repository.publish();
    await using suite = await suiteOf(repository);
    await suite.init();
    assert.equal(await suite.download('file.txt'), 0, suite.output());
    repository.addTarget('file.txt', Buffer.from('two!'));
    repository.publish();
    const good = new Map(repository.files);
    for (const [name] of repository.files) {
      if (name.startsWith('targets/')) repository.files.set(name, Buffer.from('bad!'));
    }
    assert.equal(await suite.download('file.txt'), 1);
    assert.deepEqual(suite.downloaded(), ['one']);
    for (const [name, bytes] of good) repository.files.set(name, bytes);
    assert.equal(await suite.download('file.txt'), 0, suite.output());
    assert.deepEqual(suite.downloaded(), ['two!']);
  });

  it('fails with exit code 1 for a target that is not listed, an expired role, and unknown arguments', async () => {
    const repository = new RepositorySimulator({ nowMs });
    await using suite = await suiteOf(repository);
    await suite.init();
    assert.equal(await suite.download('nowhere.txt'), 1);
    repository.timestamp.expires = isoTime(nowMs - 1000);
    delete repository.timestamp.writ;
    repository.bumpTimestamp();
    assert.equal(await suite.refresh(), 1);
    assert.equal(await suite.download(), 1);
    assert.equal(await suite.run('frobnicate'), 1);
    assert.ok((statSync(executable).mode & 0o111) !== 0, 'the suite runs it as a program');
  });
});
