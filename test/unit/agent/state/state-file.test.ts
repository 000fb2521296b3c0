import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { withAccepted } from '../../../../src/agent/select/accepted-releases.js';
import { clearJournal, readJournal, writeJournal } from '../../../../src/agent/state/journal.js';
import { emptyLedger } from '../../../../src/agent/state/ledger.js';
import { openLedger } from '../../../../src/agent/state/ledger-file.js';
import { hostPaths } from '../../../../src/agent/state/paths.js';
import type { Journal } from '../../../../src/agent/state/recovery-rules.js';
import { openRefusals } from '../../../../src/agent/state/refusals-file.js';
import { sealed } from '../../../../src/agent/state/sealed-json.js';
import type { StateFile } from '../../../../src/agent/state/state-file.js';
import { WritError } from '../../../../src/core/errors.js';
import type { Digest } from '../../../../src/core/names.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { ledgerWith, setLedger } from '../../../kit/host/set-ledger.js';

const durable = createDurableFs();
const isRoot = process.getuid?.() === 0;
const digestOf = (digit: number): Digest => `sha256:${String(digit).repeat(64)}` as Digest;

describe('a state file', () => {
  it('has its initial document on a new host, and is not written', () => {
    using dir = tempDir();
    const ledger = openLedger(dir.join('ledger.json'), durable);
    assert.equal(ledger.read().nextGeneration, 1);
    ledger.write(ledger.read());
    assert.deepEqual(openRefusals(dir.join('rejected.json'), durable).read(), { writ: 1, refusals: [] });
    assert.equal(fs.existsSync(dir.join('rejected.json')), false);
  });

  it('keeps a written document for the next start, readable only by its owner', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    const ledger = openLedger(path, durable);
    setLedger(ledger, { nextGeneration: 7 });
    assert.equal(fs.statSync(path).mode & 0o777, 0o600);
    assert.equal(openLedger(path, durable).read().nextGeneration, 7);
    assert.equal(ledger.read().nextGeneration, 7);
  });

  it('is not written when its document has not changed', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    const operations: string[] = [];
    const observed = createDurableFs({ before: ({ op }) => void operations.push(op) });
    setLedger(openLedger(path, durable), { nextGeneration: 2 });
    const ledger = openLedger(path, observed);
    ledger.write(ledgerWith(ledger.read(), {}));
    assert.deepEqual(operations, []);
    setLedger(ledger, { nextGeneration: 3 });
    assert.equal(operations[0], 'ledger:write');
  });

  it('keeps the old document when a write fails', () => {
    using dir = tempDir();
    let fails = true;
    const failing = createDurableFs({
      before: () => {
        if (fails) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      },
    });
    const ledger = openLedger(dir.join('ledger.json'), failing);
    const next = ledgerWith(ledger.read(), { nextGeneration: 2 });
    throwsCode('DISK_FULL', () => ledger.write(next));
    assert.equal(ledger.read().nextGeneration, 1);
    fails = false;
    ledger.write(next);
    assert.equal(openLedger(dir.join('ledger.json'), durable).read().nextGeneration, 2);
  });

  it('reports its damage, and rejects a write while it is damaged', () => {
    const damaged = ['', '{', 'null', '[]', '{"writ":"2"}', '{"writ":1,"nextGeneration":0}'];
    for (const text of damaged) {
      using dir = tempDir();
      const path = dir.join('file.json');
      fs.writeFileSync(path, text);
      for (const file of [openLedger(path, durable), openRefusals(path, durable)] as StateFile<unknown>[]) {
        const found = file.condition();
        assert.ok(found instanceof WritError);
        assert.deepEqual([found.code, found.facts['path']], ['STATE_DAMAGED', path]);
        throwsCode('STATE_DAMAGED', () => file.write(file.read()));
        assert.equal(fs.readFileSync(path, 'utf8'), text);
      }
    }
  });

  it('of a later format is not opened, and does not count as damaged', () => {
    using dir = tempDir();
    const path = dir.join('file.json');
    for (const text of [sealed({ writ: 2, kept: 'elsewhere' }), '{"writ":3}']) {
      fs.writeFileSync(path, text);
      for (const open of [openLedger, openRefusals]) {
        const { facts, kind } = throwsCode('STATE_TOO_NEW', () => open(path, durable));
        assert.deepEqual([facts['path'], facts['expected'], kind], [path, 1, 'config']);
      }
      assert.deepEqual([fs.readFileSync(path, 'utf8'), fs.readdirSync(dir.path)], [text, ['file.json']]);
    }
  });

  it('counts as damaged when a flipped bit makes its format a later one', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    fs.writeFileSync(path, sealed({ ...emptyLedger() }).replace('"writ":1', '"writ":3'));
    const found = openLedger(path, durable).condition();
    assert.equal(found instanceof WritError && found.code, 'STATE_DAMAGED');
  });

  it('is set aside and replaced when it is damaged, and its path always exists', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    fs.writeFileSync(path, '{');
    const operations: string[] = [];
    const observed = createDurableFs({
      after: ({ op }) => {
        operations.push(op);
        assert.ok(fs.existsSync(path), op);
      },
    });
    const ledger = openLedger(path, observed);
    ledger.replace(ledgerWith(ledger.read(), { nextGeneration: 9 }));
    assert.ok(operations.includes('recover.keep-broken:rename') && operations.includes('ledger:rename'));
    assert.equal(fs.readFileSync(`${path}.damaged`, 'utf8'), '{');
    assert.equal(ledger.condition(), 'intact');
    setLedger(ledger, { nextGeneration: 10 });
    assert.equal(openLedger(path, durable).read().nextGeneration, 10);
  });

  it('stays damaged when its replacement fails', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    fs.writeFileSync(path, '{');
    const full = createDurableFs({
      before: ({ op }) => {
        if (op.startsWith('ledger')) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      },
    });
    const ledger = openLedger(path, full);
    throwsCode('DISK_FULL', () => ledger.replace(ledgerWith(ledger.read(), { nextGeneration: 9 })));
    throwsCode('STATE_DAMAGED', () => ledger.write(ledger.read()));
    assert.equal(fs.readFileSync(path, 'utf8'), '{');
  });

  it('is absent until it is written', () => {
    using dir = tempDir();
    const ledger = openLedger(dir.join('ledger.json'), durable);
    assert.equal(ledger.condition(), 'absent');
    setLedger(ledger, { nextGeneration: 2 });
    assert.equal(openLedger(dir.join('ledger.json'), durable).condition(), 'intact');
  });

  it('counts as damaged when it exceeds 16 MB', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('ledger.json'), '');
    fs.truncateSync(dir.join('ledger.json'), 16_000_001);
    const found = openLedger(dir.join('ledger.json'), durable).condition();
    assert.equal(found instanceof WritError && found.code, 'STATE_DAMAGED');
  });

  it('fails with a disk error and its path when it cannot be read', {
    skip: isRoot ? 'root reads everything' : false,
  }, () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    fs.writeFileSync(path, '{}', { mode: 0o200 });
    const error = throwsCode('DISK_FAILED', () => openLedger(path, durable));
    assert.equal(error.facts['path'], path);
  });

  const obstacles: Readonly<Record<string, (path: string) => void>> = {
    directory: (path) => fs.mkdirSync(path),
    FIFO: (path) => execFileSync('mkfifo', [path]),
    'link to itself': (path) => fs.symlinkSync(path, path),
  };
  for (const [name, create] of Object.entries(obstacles)) {
    it(`counts as damaged when a ${name} is at its path, which is set aside`, () => {
      using dir = tempDir();
      const path = dir.join('ledger.json');
      for (const round of [1, 2]) {
        fs.rmSync(path, { force: true });
        create(path);
        const ledger = openLedger(path, durable);
        const found = ledger.condition();
        assert.equal(found instanceof WritError && found.code, 'STATE_DAMAGED');
        throwsCode('STATE_DAMAGED', () => setLedger(ledger, { nextGeneration: 7 }));
        ledger.replace(ledgerWith(ledger.read(), { nextGeneration: 7 + round }));
        assert.equal(openLedger(path, durable).read().nextGeneration, 7 + round);
        assert.equal(fs.lstatSync(`${path}.damaged`).isFile(), false);
      }
    });
  }

  it('counts as damaged when any one bit is flipped', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    setLedger(openLedger(path, durable), { nextGeneration: 7, lastKnownGood: 6, previous: 5 });
    const bytes = fs.readFileSync(path);
    const written = openLedger(path, durable).read();
    for (let bit = 0; bit < (bytes.length - 1) * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      fs.writeFileSync(path, flipped);
      const ledger = openLedger(path, durable);
      assert.ok(ledger.condition() instanceof WritError, `bit ${bit}: ${flipped.toString('latin1')}`);
    }
    fs.writeFileSync(path, bytes);
    assert.deepEqual(openLedger(path, durable).read(), written);
  });

  it('of a former version without a digest is read, and gets a digest at its next write', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    fs.writeFileSync(path, `${JSON.stringify(ledgerWith(emptyLedger(), { nextGeneration: 7 }))}\n`);
    const ledger = openLedger(path, durable);
    assert.equal(ledger.read().nextGeneration, 7);
    setLedger(ledger, { nextGeneration: 8 });
    assert.match(fs.readFileSync(path, 'utf8'), /,"digest":"sha256:[0-9a-f]{64}"\}\n$/);
  });

  it('is not created by a write when it existed before and is missing', () => {
    using dir = tempDir();
    const path = dir.join('ledger.json');
    const ledger = openLedger(path, durable, () => false);
    assert.ok(ledger.condition() instanceof WritError);
    const error = throwsCode('STATE_DAMAGED', () => setLedger(ledger, { nextGeneration: 7 }));
    assert.match(error.message, /ledger\.json is gone/);
    assert.equal(fs.existsSync(path), false);
    ledger.replace(ledgerWith(ledger.read(), { nextGeneration: 1007 }));
    setLedger(ledger, { nextGeneration: 1008 });
    assert.equal(openLedger(path, durable).read().nextGeneration, 1008);
  });
});

describe('the ledger', () => {
  it('keeps accepted serials in order, each once', () => {
    using dir = tempDir();
    let ledger = openLedger(dir.join('ledger.json'), durable).read();
    for (const serial of [3, 1, 2, 3]) {
      ledger = withAccepted(ledger, {
        bundle: 'access',
        channel: 'stable',
        serial,
        manifest: { digest: digestOf(serial), length: 1 },
      });
    }
    assert.deepEqual(
      ledger.accepted['access/stable']?.map((one) => one.serial),
      [1, 2, 3],
    );
  });
});

describe('the journal', () => {
  const journal: Journal = {
    writ: 1,
    cycle: 'c-1',
    from: 1,
    to: 2,
    direction: 'forward',
    startedAtMs: 5,
    kind: 'update',
  };

  it('exists from its write to its removal', () => {
    using dir = tempDir();
    const paths = hostPaths({ state: dir.path, policy: dir.path, run: dir.path, socket: '' });
    assert.equal(readJournal(paths), undefined);
    writeJournal(paths, durable, journal);
    assert.deepEqual(readJournal(paths), journal);
    assert.equal(fs.statSync(paths.journal).mode & 0o777, 0o600);
    clearJournal(paths, durable);
    assert.equal(readJournal(paths), undefined);
  });

  it('of a later format is rejected, and does not count as damaged', () => {
    using dir = tempDir();
    const paths = hostPaths({ state: dir.path, policy: dir.path, run: dir.path, socket: '' });
    fs.writeFileSync(paths.journal, sealed({ ...journal, writ: 2 }));
    const { facts } = throwsCode('STATE_TOO_NEW', () => readJournal(paths));
    assert.deepEqual(facts, { path: paths.journal, expected: 1, actual: 2 });
  });

  it('counts as damaged when it is invalid, and is never interpreted', () => {
    using dir = tempDir();
    const paths = hostPaths({ state: dir.path, policy: dir.path, run: dir.path, socket: '' });
    const wrong = [
      '{',
      'null',
      '7',
      JSON.stringify({ ...journal, writ: '2' }),
      JSON.stringify({ ...journal, to: '2' }),
      JSON.stringify({ ...journal, from: 1.5 }),
      JSON.stringify({ ...journal, direction: 'sideways' }),
      JSON.stringify({ ...journal, kind: 'other' }),
      `${JSON.stringify(journal)}${' '.repeat(70_000)}`,
    ];
    for (const text of wrong) {
      fs.writeFileSync(paths.journal, text);
      throwsCode('STATE_DAMAGED', () => readJournal(paths));
    }
    // A read of a FIFO would wait for a writer for ever.
    fs.rmSync(paths.journal);
    execFileSync('mkfifo', [paths.journal]);
    throwsCode('STATE_DAMAGED', () => readJournal(paths));
  });
});
