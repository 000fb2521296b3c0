import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { isWritError } from '../../../../src/core/errors.js';
import { createDurableFs, type FileOperation } from '../../../../src/platform/disk/durable-fs.js';
import { withRepository } from '../../../../src/publisher/repository/repository-writer.js';
import {
  type ExportOptions,
  type ExportResult,
  exportRepository,
} from '../../../../src/publisher/upkeep/export-repository.js';
import { openRepositoryClient } from '../../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../../src/trust/sources/source.js';
import { memoryTrustStore } from '../../../../src/trust/store/trust-store.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { memory, type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { publishedByTeam } from '../../../kit/repository/delegated-repository.js';
import {
  noReport,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

function exportTo(
  repository: SampleRepository,
  directory: string,
  more: Partial<ExportOptions> = {},
): Promise<ExportResult> {
  return exportRepository({
    repository: repository.directory,
    directory,
    clock: repository.clock,
    durableFs: createDurableFs(),
    lockWaitMs: 0,
    report: noReport,
    ...more,
  });
}

/**
 * The serial a host without a network takes from the directory, its archive read whole.
 * @param between called before each file is opened
 */
async function serialAt(
  { rootPath, clock }: SampleRepository,
  directory: string,
  between: () => Promise<void> = async () => undefined,
): Promise<number | undefined> {
  const opened = openRepositorySource(pathToFileURL(directory).href, { clock, version: 'test' });
  const source: RepositorySource = {
    ...opened,
    fetch: async (path, options) => {
      await between();
      return opened.fetch(path, options);
    },
    stream: async function* (path, options) {
      await between();
      yield* opened.stream(path, options);
    },
  };
  const client = openRepositoryClient({ source, store: memoryTrustStore(fs.readFileSync(rootPath)), clock });
  await client.refresh();
  const target = await client.target('dns-edge', 'stable');
  if (target === undefined) return undefined;
  for await (const _chunk of client.streamTarget(target));
  return target.release.serial;
}

async function published(dir: TempDir): Promise<SampleRepository> {
  const repository = sampleRepository(dir);
  await repository.publish({ file: 'one' });
  await repository.publish({ file: 'two' });
  await repository.publish({ rule: '' }, { bundle: 'access' });
  return repository;
}

describe('exportRepository', () => {
  it('writes nothing through a link of another user', {
    skip: process.getuid?.() === 0 ? false : 'only root can',
  }, async () => {
    for (const name of ['', '/metadata', '/targets', '/targets/access']) {
      using dir = tempDir();
      const repository = await published(dir);
      const link = `${dir.join('stick')}${name}`;
      fs.mkdirSync(dir.join('victim'));
      fs.mkdirSync(dirname(link), { recursive: true });
      fs.symlinkSync(dir.join('victim'), link);
      fs.lchownSync(link, 65_534, 65_534);
      const error = await rejectsCode('PATH_UNSAFE', exportTo(repository, dir.join('stick')));
      assert.equal(error.facts['path'], link);
      assert.deepEqual(fs.readdirSync(dir.join('victim')), []);
    }
  });

  it('makes a directory that a host takes under the same rules, with current archives only', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const stick = dir.join('stick', 'policy');
    const result = await exportTo(repository, stick);
    assert.equal(await serialAt(repository, stick), 2);
    assert.deepEqual([result.releases.length, result.copied, result.expires.role], [2, 2, 'timestamp']);
    assert.deepEqual(fs.readdirSync(`${stick}/metadata`).sort(), [
      '1.root.json',
      '4.snapshot.json',
      '4.targets.json',
      'timestamp.json',
    ]);
    assert.equal(fs.readdirSync(`${stick}/targets/dns-edge`).length, 1);
    assert.ok(!fs.existsSync(`${stick}/.lock`));
  });

  it('replaces an older export, copies new files, and removes old ones', longCase, async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const stick = dir.join('stick');
    await exportTo(repository, stick);
    await repository.publish({ file: 'three' });
    const result = await exportTo(repository, stick);
    assert.deepEqual([result.copied, await serialAt(repository, stick)], [1, 3]);
    assert.equal(fs.readdirSync(`${stick}/targets/dns-edge`).length, 1);
    assert.equal(fs.readdirSync(`${stick}/metadata`).length, 4);
  });

  it('removes no file of another name beside its own', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const stick = dir.join('stick');
    await exportTo(repository, stick);
    const others = ['metadata/notes.txt', 'targets/dns-edge/notes.txt'].map((name) => `${stick}/${name}`);
    for (const path of others) fs.writeFileSync(path, 'of a person');
    await repository.publish({ file: 'three' });
    await exportTo(repository, stick);
    assert.deepEqual(
      others.map((path) => fs.existsSync(path)),
      [true, true],
    );
  });

  it('replaces an archive of the export with other bytes than the signed ones', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const stick = dir.join('stick');
    await exportTo(repository, stick);
    const [name = ''] = fs.readdirSync(`${stick}/targets/dns-edge`);
    const path = `${stick}/targets/dns-edge/${name}`;
    fs.writeFileSync(path, Buffer.alloc(fs.statSync(path).size));
    assert.equal((await exportTo(repository, stick)).copied, 1);
    // A link to the right bytes, whose text is as long as they are.
    const length = fs.statSync(path).size;
    fs.rmSync(path);
    const own = `${repository.directory}/targets/dns-edge/${name}`;
    fs.symlinkSync(own.padStart(length, '/'), path);
    assert.equal((await exportTo(repository, stick)).copied, 1);
    assert.ok(fs.lstatSync(path).isFile());
  });

  it('interrupted at any write is never accepted as complete: it is no repository at first, the older one later', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const operations: FileOperation[] = [];
    const watch = createDurableFs({ before: (operation) => operations.push(operation) });
    const old = dir.join('old');
    await exportTo(repository, old);
    await repository.publish({ file: 'three' });
    await exportTo(repository, dir.join('watched'), { durableFs: watch });
    const until = operations.findIndex(({ op }) => op === 'export.timestamp:rename');
    assert.ok(until > 10);
    for (let at = 0; at <= until; at += 1) {
      const fresh = dir.join(`fresh-${at}`);
      const again = dir.join(`again-${at}`);
      fs.cpSync(old, again, { recursive: true });
      for (const directory of [fresh, again]) {
        let count = 0;
        const durableFs = createDurableFs({
          before: () => {
            if (count === at) throw new Error('cut off');
            count += 1;
          },
        });
        await exportTo(repository, directory, { durableFs }).catch(() => undefined);
      }
      assert.ok(!fs.existsSync(`${fresh}/metadata/timestamp.json`), `cut off at ${at}`);
      assert.ok([2, 3].includes((await serialAt(repository, again)) ?? 0), `cut off at ${at}`);
      await exportTo(repository, again);
      assert.equal(await serialAt(repository, again), 3);
      for (const directory of [fresh, again]) fs.rmSync(directory, { recursive: true, force: true });
    }
  });

  it(
    'shows a reader the older release, the new one, or an error with a code, wherever an export comes between',
    longCase,
    async () => {
      using dir = tempDir(memory());
      const repository = await published(dir);
      const old = dir.join('old');
      await exportTo(repository, old);
      await repository.publish({ file: 'three' });
      const seen: unknown[] = [];
      let requests = Number.POSITIVE_INFINITY;
      for (let at = 0; at < requests; at += 1) {
        const stick = dir.join(`stick-${at}`);
        fs.cpSync(old, stick, { recursive: true });
        let count = 0;
        const between = async (): Promise<void> => {
          if (count === at) await exportTo(repository, stick);
          count += 1;
        };
        const read = serialAt(repository, stick, between);
        seen.push(await read.catch((error: unknown) => (isWritError(error) ? error.code : error)));
        assert.equal(await serialAt(repository, stick), 3);
        // A reader that fails ends before its last request.
        requests = Math.min(requests, seen.at(-1) === 3 || seen.at(-1) === 2 ? count : requests);
      }
      assert.deepEqual(seen, [3, 3, 'METADATA_MISSING', 'METADATA_MISSING', 'TARGET_MISSING']);
    },
  );

  it('interrupted while it removes old files shows the new release, and the next export removes the rest', async () => {
    using dir = tempDir(memory());
    const repository = await published(dir);
    const stick = dir.join('stick');
    await exportTo(repository, stick);
    await repository.publish({ file: 'three' });
    const before = ({ op }: FileOperation): void => {
      if (op.startsWith('export.remove')) throw new Error('cut off');
    };
    await assert.rejects(exportTo(repository, stick, { durableFs: createDurableFs({ before }) }), /cut off/);
    assert.equal(await serialAt(repository, stick), 3);
    assert.equal(fs.readdirSync(`${stick}/targets/dns-edge`).length, 2);
    await exportTo(repository, stick);
    assert.equal(fs.readdirSync(`${stick}/targets/dns-edge`).length, 1);
  });

  it('waits for a publish at most for the given time, and copies the published state', async () => {
    using dir = tempDir(memory());
    const repository = await published(dir);
    const stick = dir.join('stick');
    let during: unknown;
    const before = async (): Promise<void> => {
      during ??= await exportTo(repository, stick).catch((error: unknown) => error);
    };
    await withRepository(
      {
        repository: repository.directory,
        lockWaitMs: 0,
        holder: 'publish',
        durableFs: createDurableFs(),
        clock: repository.clock,
      },
      before,
    );
    assert.ok(isWritError(during) && during.code === 'REPOSITORY_LOCKED', String(during));
    assert.equal(fs.existsSync(stick), false);
  });

  it('copies the archives of chosen bundles only; the metadata is always complete', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const stick = dir.join('stick');
    await exportTo(repository, stick, { bundles: ['dns-edge'] });
    assert.deepEqual(fs.readdirSync(`${stick}/targets`), ['dns-edge']);
    assert.equal(await serialAt(repository, stick), 2);
    await rejectsCode('RELEASE_UNKNOWN', exportTo(repository, stick, { bundles: ['none'] }));
  });

  it('takes the bundles of teams along', async () => {
    using dir = tempDir();
    const { repository } = await publishedByTeam(dir);
    await exportTo(repository, dir.join('stick'));
    assert.equal(await serialAt(repository, dir.join('stick')), 1);
  });

  it('goes over nothing else: a foreign directory, another repository, a newer export, the repository itself', async () => {
    using dir = tempDir();
    using other = tempDir();
    const repository = await published(dir);
    fs.mkdirSync(dir.join('photos'));
    fs.writeFileSync(dir.join('photos', 'cat.jpg'), '');
    await rejectsCode('REPOSITORY_EXISTS', exportTo(repository, dir.join('photos')));
    const foreign = sampleRepository(other, { signers: 'own' });
    await rejectsCode('REPOSITORY_EXISTS', exportTo(repository, foreign.directory));
    await rejectsCode('USAGE', exportTo(repository, `${repository.directory}/export`));
    await rejectsCode('USAGE', exportTo(repository, repository.directory));
    // A directory of which the repository is the only content, under a name that an export has too.
    fs.cpSync(repository.directory, dir.join('around', 'targets'), { recursive: true });
    await rejectsCode(
      'USAGE',
      exportTo({ ...repository, directory: dir.join('around', 'targets') }, dir.join('around')),
    );
    fs.cpSync(repository.directory, dir.join('copy'), { recursive: true });
    await repository.refresh();
    await exportTo(repository, dir.join('stick'));
    await rejectsCode(
      'REPOSITORY_EXISTS',
      exportTo({ ...repository, directory: dir.join('copy') }, dir.join('stick')),
    );
  });

  it('exports no archive that is not the signed one, and nothing that has expired', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const directory = `${repository.directory}/targets/access`;
    const [name = ''] = fs.readdirSync(directory);
    fs.appendFileSync(`${directory}/${name}`, ' ');
    await rejectsCode('REPOSITORY_INVALID', exportTo(repository, dir.join('stick')));
    assert.ok(!fs.existsSync(dir.join('stick', 'metadata', 'timestamp.json')));
  });
});
