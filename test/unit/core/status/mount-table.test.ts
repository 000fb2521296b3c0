// Which generation or tree a mount or a path belongs to, on real lines of the kernel (proc(5), mountinfo).
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type FilePlace,
  type Held,
  heldAt,
  parseMountInfo,
  placeOf,
} from '../../../../src/core/status/mount-table.js';

const table = (...lines: string[]) => parseMountInfo(`${lines.join('\n')}\n`);

describe('parseMountInfo', () => {
  it('reads device, root and mount point, with any number of optional fields', () => {
    const mounts = table(
      '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard',
      '90 27 254:0 /var/lib/writ/policy /srv/p ro,nosuid shared:7 master:1 - ext4 /dev/vda rw',
    );
    assert.deepEqual(mounts, [
      { device: '254:0', root: '/', mountPoint: '/', lowerDirectories: [] },
      { device: '254:0', root: '/var/lib/writ/policy', mountPoint: '/srv/p', lowerDirectories: [] },
    ]);
  });

  it('reads octal escapes', () => {
    const [mount] = table('9 1 0:4 /a\\040b\\011c /x\\012y\\134z\\043 rw - tmpfs none rw');
    assert.deepEqual([mount?.root, mount?.mountPoint], ['/a b\tc', '/x\ny\\z#']);
  });

  it('leaves out what is no line: empty, cut off, without its dash', () => {
    assert.deepEqual(parseMountInfo(''), []);
    assert.deepEqual(parseMountInfo('27 1 254:0 / / rw,relatime\n27 1 254'), []);
  });

  it('puts the mount points of a process under its root', () => {
    const text = '1 0 254:0 /jail / rw - ext4 x rw\n2 1 0:9 / /proc rw - proc proc rw\n';
    assert.deepEqual(
      parseMountInfo(text, '/srv/jail').map((one) => one.mountPoint),
      ['/srv/jail', '/srv/jail/proc'],
    );
  });

  it('reads what lies below an overlay', () => {
    const [mount] = table(
      '9 1 0:44 / /merged rw - overlay overlay rw,lowerdir=/a\\134:b:/c\\040d::/data,upperdir=/u,workdir=/w',
    );
    assert.deepEqual(mount?.lowerDirectories, ['/a:b', '/c d', '/data']);
    const [added] = table('9 1 0:44 / /merged rw - overlay overlay rw,lowerdir+=/a,lowerdir+=/b');
    assert.deepEqual(added?.lowerDirectories, ['/a', '/b'], 'one by one');
    const [other] = table('9 1 0:44 / /x rw - ext4 /dev/vda rw,lowerdir=/a');
    assert.deepEqual(other?.lowerDirectories, []);
  });
});

describe('placeOf', () => {
  const mounts = table(
    '27 1 254:0 / / rw - ext4 /dev/vda rw',
    '28 27 254:3 /@state /var/lib/writ rw - btrfs /dev/vdb rw,subvol=/@state',
    '29 27 254:0 /var/data /var/lib/writer rw - ext4 /dev/vda rw',
    '30 28 0:50 / /var/lib/writ/x rw - tmpfs none rw',
    '31 28 254:9 /later /var/lib/writ/x rw - ext4 /dev/vdc rw',
  );

  const cases: readonly (readonly [path: string, place: string])[] = [
    ['/', '254:0 /'],
    ['/etc/passwd', '254:0 /etc/passwd'],
    ['/var/lib/writ', '254:3 /@state'],
    ['/var/lib/writ/policy/a', '254:3 /@state/policy/a'],
    ['/var/lib/writer/a', '254:0 /var/data/a'],
    ['/var/lib/write', '254:0 /var/lib/write'],
    ['/var/lib/writ/x/y', '254:9 /later/y'],
  ];
  for (const [path, expected] of cases) {
    it(`says of ${path}: ${expected}`, () => {
      const place = placeOf(path, mounts);
      assert.equal(`${place?.device} ${place?.path}`, expected);
    });
  }

  it('says nothing of a path that no mount has', () => {
    assert.equal(placeOf('/etc', []), undefined);
    assert.equal(placeOf('/etc', table('2 1 0:9 / /proc rw - proc proc rw')), undefined);
  });
});

describe('heldAt', () => {
  const policy: FilePlace = { device: '254:0', path: '/var/lib/writ/policy' };
  const generation = (number: number): Held => ({ kind: 'generation', generation: number });
  const tree: Held = { kind: 'tree', bundle: 'access', tree: '3-abc.7' };

  const cases: readonly (readonly [rest: string, held: Held | undefined])[] = [
    ['', undefined],
    ['/current', undefined],
    ['/generations', undefined],
    ['/generations/', undefined],
    ['/generations/41', generation(41)],
    ['/generations/41/access', generation(41)],
    ['/generations/41//deleted', generation(41)],
    ['/generations/41 (deleted)', generation(41)],
    ['/generations/041', undefined],
    ['/generations/.tmp', undefined],
    ['/bundles', undefined],
    ['/bundles/access', undefined],
    ['/bundles/access/', undefined],
    ['/bundles/access/3-abc.7', tree],
    ['/bundles/access/3-abc.7/views/a b', tree],
    ['/bundles/access/3-abc.7/gone (deleted)', tree],
    ['-old/generations/41', undefined],
  ];
  for (const [rest, held] of cases) {
    it(`says of policy${rest}: ${held === undefined ? 'nobody holds by it' : JSON.stringify(held)}`, () => {
      assert.deepEqual(heldAt({ device: '254:0', path: `${policy.path}${rest}` }, policy), held);
    });
  }

  it('knows the file system apart, and finds policy at its root', () => {
    assert.equal(heldAt({ device: '254:1', path: `${policy.path}/generations/1` }, policy), undefined);
    const own = { device: '0:9', path: '/' };
    assert.deepEqual(heldAt({ device: '0:9', path: '/generations/2' }, own), generation(2));
  });
});
