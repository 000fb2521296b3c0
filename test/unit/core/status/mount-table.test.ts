// Which generation or tree a mount or a path belongs to, on real lines of the kernel (proc(5), mountinfo).
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type CollectableDirectory,
  type FileLocation,
  findCollectableDirectory,
  locateFile,
  parseMountInfo,
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

  it('skips a malformed line: empty, truncated, without its dash', () => {
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

  it('reads the lower directories of an overlay', () => {
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

describe('locateFile', () => {
  const mounts = table(
    '27 1 254:0 / / rw - ext4 /dev/vda rw',
    '28 27 254:3 /@state /var/lib/writ rw - btrfs /dev/vdb rw,subvol=/@state',
    '29 27 254:0 /var/data /var/lib/writer rw - ext4 /dev/vda rw',
    '30 28 0:50 / /var/lib/writ/x rw - tmpfs none rw',
    '31 28 254:9 /later /var/lib/writ/x rw - ext4 /dev/vdc rw',
  );

  const cases: readonly (readonly [path: string, location: string])[] = [
    ['/', '254:0 /'],
    ['/etc/passwd', '254:0 /etc/passwd'],
    ['/var/lib/writ', '254:3 /@state'],
    ['/var/lib/writ/policy/a', '254:3 /@state/policy/a'],
    ['/var/lib/writer/a', '254:0 /var/data/a'],
    ['/var/lib/write', '254:0 /var/lib/write'],
    ['/var/lib/writ/x/y', '254:9 /later/y'],
  ];
  for (const [path, expected] of cases) {
    it(`locates ${path} at ${expected}`, () => {
      const location = locateFile(path, mounts);
      assert.equal(`${location?.device} ${location?.path}`, expected);
    });
  }

  it('returns undefined for a path outside every mount', () => {
    assert.equal(locateFile('/etc', []), undefined);
    assert.equal(locateFile('/etc', table('2 1 0:9 / /proc rw - proc proc rw')), undefined);
  });
});

describe('findCollectableDirectory', () => {
  const policy: FileLocation = { device: '254:0', path: '/var/lib/writ/policy' };
  const generation = (number: number): CollectableDirectory => ({ kind: 'generation', generation: number });
  const tree: CollectableDirectory = { kind: 'tree', bundle: 'access', tree: '3-abc.7' };

  const cases: readonly (readonly [rest: string, directory: CollectableDirectory | undefined])[] = [
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
  for (const [rest, directory] of cases) {
    it(`finds for policy${rest}: ${directory === undefined ? 'no directory' : JSON.stringify(directory)}`, () => {
      assert.deepEqual(
        findCollectableDirectory({ device: '254:0', path: `${policy.path}${rest}` }, policy),
        directory,
      );
    });
  }

  it('compares the file system, and finds policy at its root', () => {
    assert.equal(
      findCollectableDirectory({ device: '254:1', path: `${policy.path}/generations/1` }, policy),
      undefined,
    );
    const own = { device: '0:9', path: '/' };
    assert.deepEqual(findCollectableDirectory({ device: '0:9', path: '/generations/2' }, own), generation(2));
  });
});
