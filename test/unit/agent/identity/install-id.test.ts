import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { type InstallSource, openInstallId, thisMachine } from '../../../../src/agent/identity/install-id.js';
import type { Marks } from '../../../../src/agent/identity/install-id-rules.js';
import { createDurableFs, type OperationObserver } from '../../../../src/platform/disk/durable-fs.js';
import { logLines } from '../../../kit/assert/log-lines.js';
import { Killed, operationTrap } from '../../../kit/disk/operation-trap.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const machine: Marks = { machineId: '0'.repeat(32), productUuid: 'uuid-1' };
const file = 'install-id.json';

interface Opened {
  readonly id: string;
  readonly log: string;
}

let count = 0;
const source = (marks: Marks = machine): InstallSource => ({
  newId: () => String(++count).padStart(32, '0'),
  readMarks: () => marks,
});

/** A start of an agent. */
function open(dir: TempDir, marks?: Marks, observer?: OperationObserver): Opened {
  const lines = logLines();
  const durable = createDurableFs(observer);
  const host = { paths: { installId: dir.join(file) }, durable, log: lines.log };
  const id = openInstallId(host, source(marks));
  return { id, log: JSON.stringify(lines.lines) };
}

const text = (dir: TempDir): string => fs.readFileSync(dir.join(file), 'utf8');

describe('the install id of a host', () => {
  it('is created at the first start, for its owner alone, and is the same from then on', () => {
    using dir = tempDir();
    const { id } = open(dir);
    assert.match(id, /^[0-9a-f]{32}$/);
    assert.equal(fs.statSync(dir.join(file)).mode & 0o777, 0o600);
    const before = fs.statSync(dir.join(file), { bigint: true });
    assert.equal(open(dir).id, id);
    assert.equal(fs.statSync(dir.join(file), { bigint: true }).ino, before.ino, 'nothing is written again');
    assert.equal(text(dir).includes(machine.machineId ?? ''), false);
  });

  it('changes once in a clone of the image of the host', () => {
    using dir = tempDir();
    using clone = tempDir();
    const { id } = open(dir);
    fs.copyFileSync(dir.join(file), clone.join(file));
    const other = { ...machine, productUuid: 'uuid-2' };
    const cloned = open(clone, other);
    assert.notEqual(cloned.id, id);
    assert.match(cloned.log, /"changed":\["productUuid"\]/);
    assert.equal(open(clone, other).id, cloned.id);
    assert.equal(open(dir).id, id);
  });

  it('is kept in a container, and for a user without the right to read a mark', () => {
    using dir = tempDir();
    const { id } = open(dir);
    assert.equal(open(dir, {}).id, id);
    assert.equal(open(dir, { machineId: machine.machineId ?? '' }).id, id);
    assert.equal(open(dir).id, id);
  });

  const damages: [string, (dir: TempDir) => void][] = [
    ['is empty', (dir) => fs.writeFileSync(dir.join(file), '')],
    ['has a bit turned', (dir) => fs.writeFileSync(dir.join(file), text(dir).replace('"id":"0', '"id":"1'))],
    [
      'has an id that is none',
      (dir) => fs.writeFileSync(dir.join(file), '{"writ":1,"id":"../x","marks":{}}\n'),
    ],
    [
      'is a directory',
      (dir) => {
        fs.rmSync(dir.join(file));
        fs.mkdirSync(dir.join(file));
      },
    ],
  ];
  for (const [name, damage] of damages)
    it(`is created again if its file ${name}, and the file is set aside`, () => {
      using dir = tempDir();
      const { id } = open(dir);
      damage(dir);
      const anew = open(dir);
      assert.notEqual(anew.id, id);
      assert.match(anew.log, /STATE_DAMAGED/);
      assert.equal(open(dir).id, anew.id);
      assert.ok(fs.existsSync(dir.join(`${file}.damaged`)));
    });

  it('is that of a later version at every start after a downgrade, and the file stays unchanged', () => {
    using dir = tempDir();
    const later = `{"writ":2,"id":"${'a'.repeat(32)}","marks":{"chassis":7}}\n`;
    fs.writeFileSync(dir.join(file), later);
    const { id, log } = open(dir);
    assert.equal(id, 'a'.repeat(32));
    assert.match(log, /STATE_TOO_NEW/);
    assert.equal(open(dir).id, id);
    assert.equal(text(dir), later);
    assert.deepEqual(fs.readdirSync(dir.path), [file]);
  });

  it('lasts for one process if the file of a later version has no known id, and the file stays unchanged', () => {
    for (const named of ['"../x"', '7', `"${'a'.repeat(70_000)}"`]) {
      using dir = tempDir();
      const later = `{"writ":2,"id":${named},"marks":{}}\n`;
      fs.writeFileSync(dir.join(file), later);
      assert.match(open(dir).id, /^[0-9]{32}$/);
      assert.equal(text(dir), later);
    }
  });

  it('lasts for one process if the disk cannot be written, and the agent starts', () => {
    using dir = tempDir();
    const full: OperationObserver = {
      before: () => {
        throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', errno: -28, syscall: 'write' });
      },
    };
    const { id, log } = open(dir, machine, full);
    assert.match(id, /^[0-9a-f]{32}$/);
    assert.match(log, /DISK_FULL/);
    assert.equal(fs.existsSync(dir.join(file)), false);
    // A stored id stays although a new mark cannot be recorded.
    const kept = open(dir).id;
    assert.equal(open(dir, { ...machine, instanceId: 'i-1' }, full).id, kept);
  });

  it('is absent, old or new after a kill before or after each step', () => {
    for (const before of ['nothing', 'a clone', 'damage'] as const) {
      const prepare = (dir: TempDir): string | undefined => {
        if (before === 'nothing') return undefined;
        const { id } = open(dir, { machineId: 'before' });
        if (before === 'damage') fs.writeFileSync(dir.join(file), '{}');
        return id;
      };
      using first = tempDir();
      prepare(first);
      const { seen, ...observer } = operationTrap();
      open(first, machine, observer);
      assert.ok(seen.includes('install-id:write') && seen.includes('install-id:rename'), seen.join());
      for (const index of seen.keys()) {
        for (const when of ['before', 'after'] as const) {
          using dir = tempDir();
          const old = prepare(dir);
          const trap = operationTrap();
          trap.arm(index, when);
          assert.throws(() => open(dir, machine, trap), Killed);
          const { id } = open(dir);
          assert.notEqual(id, old, `${before}: ${when} ${seen[index]}`);
          assert.equal(open(dir).id, id);
        }
      }
    }
  });

  it('is random on a real machine', () => {
    const ids = Array.from({ length: 100 }, () => thisMachine.newId());
    assert.equal(new Set(ids).size, 100);
    for (const id of ids) assert.match(id, /^[0-9a-f]{32}$/);
  });
});
