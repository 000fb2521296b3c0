import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createDurableFs, type OperationObserver } from '../../src/platform/durable-fs.js';
import { openRepositoryClient, type RepositoryClient } from '../../src/trust/repository-client.js';
import { openTrustStore } from '../../src/trust/trust-store.js';
import { rejectsCode, throwsCode } from '../support/assert-code.js';
import { fakeClock } from '../support/fake-clock.js';
import { RepositorySimulator } from '../support/repository-simulator.js';
import { tempDir } from '../support/temp-dir.js';

const startMs = Date.UTC(2026, 10, 1);

interface Host {
  readonly path: string;
  readonly trust: string;
  readonly repository: RepositorySimulator;
  readonly operations: string[];
  /** A new process on this host; what fails may be injected. */
  boot(observer?: OperationObserver): RepositoryClient;
  bootstrap(bytes: Uint8Array): void;
  files(): string[];
  read(name: string): Buffer;
  damage(name: string): void;
  [Symbol.dispose](): void;
}

function host(): Host {
  const dir = tempDir();
  const trust = dir.join('trust');
  const repository = new RepositorySimulator({ nowMs: startMs });
  const operations: string[] = [];
  const bootstrapRoot = dir.join('root.json');
  writeFileSync(bootstrapRoot, repository.bootstrapRoot);
  return {
    path: dir.path,
    trust,
    repository,
    operations,
    boot: (observer = {}) => {
      const fs = createDurableFs({
        before: (operation) => {
          operations.push(operation.op);
          observer.before?.(operation);
        },
      });
      const store = openTrustStore({ directory: trust, bootstrapRoot, fs });
      return openRepositoryClient({
        source: repository.source(),
        store,
        clock: fakeClock({ nowMs: startMs }),
      });
    },
    bootstrap: (bytes) => writeFileSync(bootstrapRoot, bytes),
    files: () => readdirSync(trust, { recursive: true }).map(String).sort(),
    read: (name) => readFileSync(join(trust, name)),
    damage: (name) => truncateSync(join(trust, name), Math.floor(statSync(join(trust, name)).size / 2)),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

async function rotatedHost(rotations: number): Promise<Host> {
  const it = host();
  await it.boot().refresh();
  for (let count = 0; count < rotations; count += 1) it.repository.rotate('root');
  if (rotations > 0) await it.boot().refresh();
  it.operations.length = 0;
  return it;
}

describe('trust store: what lies on disk', () => {
  it('keeps every file byte for byte, private, with the history of roots beside them', async () => {
    using it = await rotatedHost(2);
    assert.deepEqual(it.files(), [
      'root.json',
      'roots',
      'roots/1.root.json',
      'roots/2.root.json',
      'roots/3.root.json',
      'snapshot.json',
      'targets.json',
      'timestamp.json',
    ]);
    assert.deepEqual(it.read('root.json'), it.repository.file('3.root.json'));
    assert.deepEqual(it.read('roots/1.root.json'), it.repository.bootstrapRoot);
    assert.deepEqual(it.read('timestamp.json'), it.repository.file('timestamp.json'));
    assert.deepEqual(it.read('snapshot.json'), it.repository.file('1.snapshot.json'));
    assert.deepEqual(it.read('targets.json'), it.repository.file('1.targets.json'));
    assert.equal(statSync(it.trust).mode & 0o777, 0o700);
    assert.equal(statSync(join(it.trust, 'roots')).mode & 0o777, 0o700);
    assert.equal(statSync(join(it.trust, 'timestamp.json')).mode & 0o777, 0o600);
  });

  it('writes through the durable layer, the history before root.json, and nothing when nothing is new', async () => {
    using it = host();
    const client = it.boot();
    await client.refresh();
    assert.deepEqual(
      it.operations.filter((op) => !op.includes(':flush')),
      [
        'trust.directory',
        'trust.roots',
        'trust.root-history:write',
        'trust.root-history:rename',
        'trust.root:write',
        'trust.root:rename',
        'trust.timestamp:write',
        'trust.timestamp:rename',
        'trust.snapshot:write',
        'trust.snapshot:rename',
        'trust.targets:write',
        'trust.targets:rename',
      ],
    );
    it.operations.length = 0;
    await client.refresh();
    await it.boot().refresh();
    assert.equal(it.operations.length, 0);
    it.repository.bumpTimestamp();
    await client.refresh();
    assert.deepEqual(new Set(it.operations.map((op) => op.split(':')[0])), new Set(['trust.timestamp']));
  });

  it('writes nothing when it is only looked at', async () => {
    using it = host();
    assert.equal(it.boot().status(), undefined);
    assert.equal(existsSync(it.trust), false);
    await it.boot().refresh();
    it.damage('root.json');
    it.operations.length = 0;
    assert.equal(it.boot().status()?.roles.targets?.version, 1);
    assert.deepEqual(it.operations, []);
  });

  it('stores nothing of a refresh that refused its first file', async () => {
    using it = host();
    it.repository.serve('timestamp.json', Buffer.from('<html>'));
    await rejectsCode('METADATA_MALFORMED', it.boot().refresh());
    assert.deepEqual(it.files(), ['root.json', 'roots', 'roots/1.root.json']);
  });
});

describe('trust store: healing', () => {
  for (const [role, requests] of [
    ['timestamp', ['GET metadata/timestamp.json']],
    ['snapshot', ['GET metadata/timestamp.json', 'GET metadata/1.snapshot.json']],
    ['targets', ['GET metadata/timestamp.json', 'GET metadata/1.targets.json']],
  ] as const) {
    it(`fetches a truncated ${role} again, and nothing else`, async () => {
      using it = await rotatedHost(0);
      it.damage(`${role}.json`);
      it.repository.takeRequests();
      await it.boot().refresh();
      assert.deepEqual(it.repository.takeRequests(), ['GET metadata/2.root.json', ...requests]);
      const name = role === 'timestamp' ? 'timestamp.json' : `1.${role}.json`;
      assert.deepEqual(it.read(`${role}.json`), it.repository.file(name));
    });
  }

  it('rebuilds a truncated or missing root.json from the history', async () => {
    for (const harm of [
      (it: Host) => it.damage('root.json'),
      (it: Host) => rmSync(join(it.trust, 'root.json')),
      (it: Host) => writeFileSync(join(it.trust, 'root.json'), it.repository.file('timestamp.json')),
    ]) {
      using it = await rotatedHost(3);
      harm(it);
      it.repository.takeRequests();
      await it.boot().refresh();
      assert.equal(it.repository.takeRequests()[0], 'GET metadata/5.root.json');
      assert.deepEqual(it.read('root.json'), it.repository.file('4.root.json'));
    }
  });

  it('rebuilds as far as the history holds, and fetches the rest', async () => {
    using it = await rotatedHost(3);
    it.damage('root.json');
    it.damage('roots/3.root.json');
    it.repository.takeRequests();
    await it.boot().refresh();
    assert.deepEqual(it.repository.takeRequests().slice(0, 3), [
      'GET metadata/3.root.json',
      'GET metadata/4.root.json',
      'GET metadata/5.root.json',
    ]);
    assert.deepEqual(it.read('roots/3.root.json'), it.repository.file('3.root.json'));
  });

  it('goes on after a power loss between any two steps of any write', async () => {
    using it = host();
    it.repository.rotate('root');
    for (let fatal = 1; ; fatal += 1) {
      rmSync(it.trust, { recursive: true, force: true });
      let step = 0;
      const cut: OperationObserver = {
        before: () => {
          step += 1;
          if (step >= fatal) throw Object.assign(new Error('power'), { code: 'EIO' });
        },
      };
      const first = await it
        .boot(cut)
        .refresh()
        .catch((error: unknown) => error);
      if (!(first instanceof Error)) break;
      const result = await it.boot().refresh();
      assert.equal(result.roles.root.version, 2, `cut before step ${fatal}`);
      assert.deepEqual(it.read('targets.json'), it.repository.file('1.targets.json'));
    }
  });

  it('passes on what the disk says', async () => {
    using it = host();
    const full: OperationObserver = {
      before: ({ op }) => {
        if (op === 'trust.timestamp:write') throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      },
    };
    await rejectsCode('DISK_FULL', it.boot(full).refresh());
    await it.boot().refresh();
  });

  it('says so when neither root.json nor the history can be used', async () => {
    using it = await rotatedHost(0);
    it.damage('root.json');
    it.damage('roots/1.root.json');
    await rejectsCode('TRUST_STORE_DAMAGED', it.boot().refresh());
  });

  it('denies a store that cannot be read', { skip: process.getuid?.() === 0 }, async () => {
    using it = await rotatedHost(0);
    chmodSync(join(it.trust, 'timestamp.json'), 0);
    await rejectsCode('DISK_DENIED', it.boot().refresh());
  });
});

describe('trust store: links', () => {
  const places = ['root.json', 'timestamp.json', 'roots/1.root.json', 'roots', '.'];

  for (const place of places) {
    it(`that lead in a circle are named with what to move away: ${place}`, async () => {
      using it = await rotatedHost(0);
      const path = join(it.trust, place);
      rmSync(path, { recursive: true });
      symlinkSync(path, path);
      const { facts } = await rejectsCode('TRUST_STORE_DAMAGED', it.boot().refresh());
      assert.equal(join(String(facts['path'])), path.replace(/\/$/, ''));
      rmSync(path);
      await it.boot().refresh();
    });
  }

  for (const place of ['roots', '.']) {
    it(`to nowhere are not made a directory behind them: ${place}`, async () => {
      using it = await rotatedHost(0);
      const path = join(it.trust, place);
      rmSync(path, { recursive: true });
      symlinkSync(join(it.path, 'nowhere'), path);
      const { facts } = await rejectsCode('TRUST_STORE_DAMAGED', it.boot().refresh());
      assert.equal(join(String(facts['path'])), path.replace(/\/$/, ''));
      assert.equal(existsSync(join(it.path, 'nowhere')), false);
    });
  }
});

describe('trust store: the bootstrap root', () => {
  it('is a file of a size that metadata may have, and nothing that never ends', {
    timeout: 5000,
  }, async () => {
    using it = host();
    const path = join(it.path, 'root.json');
    for (const harm of [
      () => execFileSync('mkfifo', [path]),
      () => symlinkSync('/dev/zero', path),
      () => mkdirSync(path),
      () => {
        writeFileSync(path, '');
        truncateSync(path, 2 ** 34);
      },
    ]) {
      rmSync(path, { recursive: true });
      harm();
      await rejectsCode('ROOT_MISSING', it.boot().refresh());
    }
  });

  it('must be there, and be a root that signs itself', async () => {
    using it = host();
    it.bootstrap(Buffer.from('{}'));
    await rejectsCode('METADATA_MALFORMED', it.boot().refresh());
    const { signed } = JSON.parse(it.repository.bootstrapRoot.toString());
    it.bootstrap(Buffer.from(JSON.stringify({ signatures: [], signed })));
    await rejectsCode('SIGNATURE_THRESHOLD', it.boot().refresh());
    rmSync(join(it.path, 'root.json'));
    await rejectsCode('ROOT_MISSING', it.boot().refresh());
    assert.deepEqual(it.repository.takeRequests(), []);
    assert.equal(existsSync(it.trust), false);
  });

  it('may be replaced by any root of the history, and by the next one', async () => {
    using it = await rotatedHost(3);
    for (const version of [2, 3, 4]) {
      it.bootstrap(it.repository.file(`${version}.root.json`));
      assert.equal((await it.boot().refresh()).roles.root.version, 4);
    }
    it.repository.rotate('root');
    it.bootstrap(it.repository.file('5.root.json'));
    assert.equal((await it.boot().refresh()).roles.root.version, 5);
  });

  it('may be the one right before the history', async () => {
    using it = await rotatedHost(1);
    rmSync(join(it.trust, 'roots', '1.root.json'));
    assert.equal((await it.boot().refresh()).roles.root.version, 2);
  });

  it('may be far ahead of the history if the chain of the server leads to it', async () => {
    using it = await rotatedHost(0);
    for (let count = 0; count < 4; count += 1) it.repository.rotate('root');
    it.bootstrap(it.repository.file('5.root.json'));
    assert.equal((await it.boot().refresh()).roles.root.version, 5);
  });

  it('of another repository is refused, whatever its version, and trust is kept', async () => {
    using it = await rotatedHost(0);
    const other = new RepositorySimulator({ nowMs: startMs });
    it.bootstrap(other.bootstrapRoot);
    it.repository.takeRequests();
    await rejectsCode('ROOT_NOT_LINKED', it.boot().refresh());
    throwsCode('ROOT_NOT_LINKED', () => it.boot().status());
    assert.deepEqual(it.repository.takeRequests(), []);

    for (let count = 0; count < 3; count += 1) other.rotate('root');
    it.bootstrap(other.file('4.root.json'));
    await rejectsCode('ROOT_NOT_LINKED', it.boot().refresh());
    assert.equal(it.repository.takeRequests().includes('GET metadata/timestamp.json'), false);

    it.bootstrap(it.repository.bootstrapRoot);
    assert.equal((await it.boot().refresh()).changed, false);
  });

  it('ignores files of other names in the history', async () => {
    using it = await rotatedHost(1);
    mkdirSync(join(it.trust, 'roots', '0.root.json'));
    for (const name of ['01.root.json', '.writ-tmp-1', 'x.root.json', '99999999999999999.root.json']) {
      writeFileSync(join(it.trust, 'roots', name), 'left over');
    }
    it.damage('root.json');
    assert.equal((await it.boot().refresh()).roles.root.version, 2);
  });
});
