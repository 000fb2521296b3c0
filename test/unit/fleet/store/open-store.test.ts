// The meaning of a location, and the permissions of the files there. The cases that hold for any store are in test/kit/fleet.
import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { openFleetStore } from '../../../../src/fleet/store/open-store.js';
import { toNumber } from '../../../../src/fleet/store/postgres-dialect.js';
import {
  asStoreError,
  isDuplicate,
  isPassing,
  storeError,
} from '../../../../src/fleet/store/store-errors.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const open = (location: string, more: { readonly busyTimeoutMs?: number } = {}) =>
  openFleetStore(location, { clock: fakeClock(), log: silentLog(), ...more });
const asRoot = { skip: process.getuid?.() === 0 ? false : 'only root can give files to another user' };
const modeOf = (path: string): number => statSync(path).mode & 0o777;

describe('a store in a directory', () => {
  it('is readable by its owner alone, also where the directory was open before', longCase, async () => {
    using dir = tempDir();
    mkdirSync(dir.join('store'), { mode: 0o755 });
    const store = await open(dir.join('store'));
    const names = readdirSync(dir.join('store'));
    assert.ok(names.includes('fleet.db-wal'));
    assert.deepEqual(
      names.map((name) => modeOf(dir.join('store', name))),
      names.map(() => 0o600),
    );
    assert.equal(modeOf(dir.join('store')), 0o700);
    await store.close();
  });

  it('is one whole file when it is closed: each connection is closed when the one before it has ended', async (context) => {
    using dir = tempDir();
    const order: string[] = [];
    const postMessage = Worker.prototype.postMessage;
    // Connections that close at the same time leave the WAL beside the file in one of six closings.
    context.mock.method(Worker.prototype, 'postMessage', function (this: Worker, message: unknown) {
      if (message === 'end') {
        order.push('asked to end');
        this.once('exit', () => order.push('ended'));
      }
      postMessage.call(this, message);
    });
    const store = await open(dir.join('store'));
    await store.close();
    assert.deepEqual(order, ['asked to end', 'ended', 'asked to end', 'ended']);
    assert.deepEqual(readdirSync(dir.join('store')), ['fleet.db']);
  });

  it('flushes each commit', async () => {
    using dir = tempDir();
    const store = await open(dir.join('store'));
    const pragma = async (name: string) =>
      (await store.db.executeQuery<object>({ sql: `pragma ${name}`, parameters: [] } as never)).rows;
    assert.deepEqual(await pragma('synchronous'), [{ synchronous: 2 }]);
    assert.deepEqual(await pragma('journal_mode'), [{ journal_mode: 'wal' }]);
    await store.close();
  });

  it('is no directory that holds something else, which stays as it is', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('etc'), { mode: 0o755 });
    writeFileSync(dir.join('etc', 'passwd'), '');
    await rejectsCode('FLEET_STORE_LOCATION', open(dir.join('etc')));
    assert.equal(modeOf(dir.join('etc')), 0o755);
    await rejectsCode('FLEET_STORE_LOCATION', open(dir.join('etc', 'passwd')));
    symlinkSync('nowhere', dir.join('link'));
    await rejectsCode('FLEET_STORE_LOCATION', open(dir.join('link')));
    const error = await rejectsCode('FLEET_STORE_LOCATION', open('mysql://me:hush@host/db'));
    assert.equal(JSON.stringify([error, error.message]).includes('hush'), false);
  });

  it(
    'is refused where another user owns it, and the hint names the command as that user',
    asRoot,
    async () => {
      using dir = tempDir();
      mkdirSync(dir.join('store'), { mode: 0o755 });
      writeFileSync(dir.join('store', 'fleet.db'), '', { mode: 0o644 });
      chownSync(dir.join('store'), 65_534, 65_534);
      const error = await rejectsCode('PATH_UNSAFE', open(dir.join('store')));
      assert.deepEqual([error.facts['path'], error.facts['uid']], [dir.join('store'), 65_534]);
      assert.match(error.hint ?? '', /runuser -u nobody -- writ fleet \.\.\./);
      assert.deepEqual([modeOf(dir.join('store')), modeOf(dir.join('store', 'fleet.db'))], [0o755, 0o644]);
      chownSync(dir.join('store'), 0, 0);
      chownSync(dir.join('store', 'fleet.db'), 65_534, 65_534);
      await rejectsCode('PATH_UNSAFE', open(dir.join('store')));
      assert.equal(modeOf(dir.join('store', 'fleet.db')), 0o644);
    },
  );

  for (const name of ['fleet.db', 'fleet.db-wal', 'fleet.db-shm', 'fleet.db-journal']) {
    it(`is refused where ${name} is a link, and the target keeps its mode and content`, async () => {
      using dir = tempDir();
      writeFileSync(dir.join('victim'), 'of root', { mode: 0o644 });
      await (await open(dir.join('store'))).close();
      const path = dir.join('store', name);
      renameSync(dir.join('store', 'fleet.db'), dir.join('kept'));
      if (name !== 'fleet.db') renameSync(dir.join('kept'), dir.join('store', 'fleet.db'));
      symlinkSync(dir.join('victim'), path);
      const error = await rejectsCode('PATH_UNSAFE', open(dir.join('store')));
      assert.equal(error.facts['path'], path);
      assert.deepEqual(
        [modeOf(dir.join('victim')), readFileSync(dir.join('victim'), 'utf8')],
        [0o644, 'of root'],
      );
    });
  }

  it('is refused if its file is a link to a missing file, which is not created', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('store'));
    symlinkSync(dir.join('victim'), dir.join('store', 'fleet.db'));
    await rejectsCode('PATH_UNSAFE', open(dir.join('store')));
    assert.equal(readdirSync(dir.path).includes('victim'), false);
  });

  it('is opened through a link of this user, and refused through a link of another one', asRoot, async () => {
    using dir = tempDir();
    symlinkSync('disk', dir.join('store'));
    mkdirSync(dir.join('disk'), { mode: 0o755 });
    await (await open(dir.join('store'))).close();
    assert.equal(modeOf(dir.join('disk')), 0o700);
    lchownSync(dir.join('store'), 65_534, 65_534);
    await rejectsCode('PATH_UNSAFE', open(dir.join('store')));
  });

  it('is refused below a directory that all users can write, and nothing is created', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('open'));
    chmodSync(dir.join('open'), 0o777);
    const error = await rejectsCode('PATH_UNSAFE', open(dir.join('open', 'new', 'store')));
    assert.match(error.hint ?? '', /chmod go-w /);
    assert.deepEqual(readdirSync(dir.join('open')), []);
  });

  it('is FLEET_STORE_DAMAGED where the file is another one', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('store'));
    writeFileSync(dir.join('store', 'fleet.db'), 'x'.repeat(8192));
    await rejectsCode('FLEET_STORE_DAMAGED', open(dir.join('store')));
  });

  it('is FLEET_STORE_BUSY where another process writes for too long, and readable meanwhile', async () => {
    using dir = tempDir();
    const [one, two] = [await open(dir.join('store')), await open(dir.join('store'), { busyTimeoutMs: 20 })];
    const writes = (store: typeof one) => store.db.updateTable('leases').set({ until_ms: 1 }).execute();
    await one.db.transaction().execute(async (trx) => {
      await trx.updateTable('leases').set({ until_ms: 2 }).execute();
      await rejectsCode('FLEET_STORE_BUSY', writes(two));
      const rows = await two.db.selectFrom('leases').select('until_ms').execute();
      assert.deepEqual(new Set(rows.map(({ until_ms }) => until_ms)), new Set([0]));
      const readOnly = two.db.transaction().setAccessMode('read only');
      assert.equal(
        (await readOnly.execute((own) => own.selectFrom('leases').selectAll().execute())).length,
        rows.length,
      );
    });
    await writes(two);
    await Promise.all([one.close(), two.close()]);
  });
});

describe('an error of a database', () => {
  it('gets one code of Writ, and keeps the code of the database in its facts', () => {
    const cases = [
      ['SQLITE_BUSY_SNAPSHOT', 'FLEET_STORE_BUSY'],
      ['40001', 'FLEET_STORE_BUSY'],
      ['40P01', 'FLEET_STORE_BUSY'],
      ['SQLITE_CORRUPT_INDEX', 'FLEET_STORE_DAMAGED'],
      ['XX001', 'FLEET_STORE_DAMAGED'],
      ['08006', 'FLEET_STORE_UNREACHABLE'],
      ['57P01', 'FLEET_STORE_UNREACHABLE'],
      ['ECONNREFUSED', 'FLEET_STORE_UNREACHABLE'],
      ['57014', 'FLEET_STORE_UNREACHABLE'],
      ['SQLITE_FULL', 'FLEET_STORE_UNWRITABLE'],
      ['SQLITE_IOERR_WRITE', 'FLEET_STORE_UNWRITABLE'],
      ['SQLITE_READONLY_DBMOVED', 'FLEET_STORE_UNWRITABLE'],
      ['53100', 'FLEET_STORE_UNWRITABLE'],
      ['25006', 'FLEET_STORE_UNWRITABLE'],
      ['ENOSPC', 'FLEET_STORE_UNWRITABLE'],
      ['22P05', 'FLEET_STORE_FAILED'],
      ['', 'FLEET_STORE_FAILED'],
    ] as const;
    for (const [databaseCode, code] of cases) {
      const error = asStoreError(Object.assign(new Error('text'), { code: databaseCode }));
      assert.deepEqual([error.code, error.facts.actual], [code, databaseCode]);
    }
    assert.equal(
      asStoreError(new Error('Connection terminated unexpectedly')).code,
      'FLEET_STORE_UNREACHABLE',
    );
    const ours = storeError('40001', 'x');
    assert.equal(asStoreError(ours), ours);
  });

  it('is a passing conflict, a duplicate, or neither', () => {
    const all = ['40001', 'SQLITE_BUSY', 'SQLITE_CONSTRAINT_PRIMARYKEY', '23505', 'SQLITE_FULL'].map((code) =>
      storeError(code, ''),
    );
    assert.deepEqual(all.map(isPassing), [true, true, false, false, false]);
    assert.deepEqual(all.map(isDuplicate), [false, false, true, true, false]);
    assert.deepEqual([isPassing(new Error('x')), isDuplicate(new Error('x'))], [false, false]);
  });

  it('in whole numbers is exact, or an error', () => {
    assert.equal(toNumber('9007199254740991'), 9007199254740991);
    assert.equal(toNumber('-5'), -5);
    for (const text of ['9007199254740992', '1.5', 'NaN'])
      throwsCode('FLEET_STORE_DAMAGED', () => toNumber(text));
  });
});
