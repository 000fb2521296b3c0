import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { describe, it } from 'node:test';
import { thisMachine } from '../../../../src/agent/identity/install-id.js';
import { readInstallMarks } from '../../../../src/agent/identity/install-marks.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const marks = {
  machineId: '0123456789abcdef0123456789abcdef',
  productUuid: '4c4c4544-0042-3510-8053-b4c04f4d3432',
  instanceId: 'i-0abc1',
};
const places = {
  machineId: 'etc/machine-id',
  productUuid: 'sys/class/dmi/id/product_uuid',
  instanceId: 'var/lib/cloud/data/instance-id',
} as const;

function put(dir: TempDir, path: string, text: string): void {
  fs.mkdirSync(dirname(dir.join(path)), { recursive: true });
  fs.writeFileSync(dir.join(path), text);
}

function link(dir: TempDir, path: string, to: string): void {
  fs.mkdirSync(dirname(dir.join(path)), { recursive: true });
  fs.symlinkSync(to, dir.join(path));
}

/** A machine that is no container. */
function machine(): TempDir {
  const dir = tempDir();
  for (const name of ['machineId', 'productUuid', 'instanceId'] as const)
    put(dir, places[name], `${marks[name]}\n`);
  link(dir, 'proc/self/ns/pid', 'pid:[4026531836]');
  link(dir, 'proc/1/root', dir.path);
  return dir;
}

describe('the marks of a machine', () => {
  it('are its machine id, the uuid of its firmware, and its id in the cloud', () => {
    using dir = machine();
    assert.deepEqual(readInstallMarks(dir.path), marks);
    put(dir, places.productUuid, `${marks.productUuid.toUpperCase()}\n`);
    assert.deepEqual(readInstallMarks(dir.path), marks);
  });

  it('are each omitted if they cannot be read or are empty', () => {
    using dir = machine();
    const { machineId: _, ...rest } = marks;
    for (const text of ['uninitialized\n', '', '\n', 'x'.repeat(2000)]) {
      put(dir, places.machineId, text);
      assert.deepEqual(readInstallMarks(dir.path), rest);
    }
    fs.rmSync(dir.join(places.machineId));
    fs.mkdirSync(dir.join(places.machineId));
    fs.rmSync(dir.join(places.productUuid));
    put(dir, places.instanceId, 'two words\n');
    assert.deepEqual(readInstallMarks(dir.path), {});
  });

  it('are read if /proc is empty', () => {
    using dir = machine();
    fs.rmSync(dir.join('proc'), { recursive: true });
    assert.deepEqual(readInstallMarks(dir.path), marks);
  });

  const containers: [string, (dir: TempDir) => void][] = [
    ['Docker', (dir) => put(dir, '.dockerenv', '')],
    ['Podman', (dir) => put(dir, 'run/.containerenv', '')],
    ['systemd-nspawn or LXC', (dir) => put(dir, 'run/systemd/container', 'lxc\n')],
    [
      'an unknown runtime, with its own pid namespace',
      (dir) => {
        fs.rmSync(dir.join('proc/self/ns/pid'));
        link(dir, 'proc/self/ns/pid', 'pid:[4026532201]');
      },
    ],
    [
      'an unknown runtime, with another root than that of process 1',
      (dir) => {
        fs.rmSync(dir.join('proc/1/root'));
        link(dir, 'proc/1/root', '/');
      },
    ],
  ];
  for (const [name, make] of containers)
    it(`do not count in a container of ${name}`, () => {
      using dir = machine();
      make(dir);
      assert.deepEqual(readInstallMarks(dir.path), {});
    });

  it('of this machine are read without an error', () => {
    assert.ok(Object.keys(thisMachine.readMarks()).length <= 3);
  });
});
