// Everything in a tar that is not a regular file with one of two modes: links, devices, directories, set-uid.
import { describe, it } from 'node:test';
import { manifestName } from '../../../../src/core/release/manifest.js';
import { assertRefused } from '../../../kit/host/stage-harness.js';
import {
  endOfArchive,
  fileEntry,
  manifestOf,
  paxEntry,
  tarEntry,
} from '../../../kit/repository/archive-builder.js';

const files = [
  { path: 'a', content: 'honest' },
  { path: 'b', content: '' },
];
const manifest = manifestOf(files);
const head = tarEntry({ path: manifestName, content: manifest });

function between(entry: Buffer): { tar: Buffer; manifest: Buffer } {
  return { tar: Buffer.concat([head, ...files.slice(0, 1).map(fileEntry), entry, endOfArchive]), manifest };
}

describe('an entry that is not a regular file', () => {
  const cases: Readonly<Record<string, Parameters<typeof tarEntry>[0]>> = {
    'a symbolic link out of the jail': { path: 'b', type: '2', link: '../../victim' },
    'an absolute symbolic link': { path: 'b', type: '2', link: '/etc' },
    'a symbolic link inside': { path: 'b', type: '2', link: 'a' },
    'a symbolic link to itself': { path: 'b', type: '2', link: 'b' },
    'a symbolic link without target': { path: 'b', type: '2' },
    'a hard link out of the jail': { path: 'b', type: '1', link: '../victim' },
    'an absolute hard link': { path: 'b', type: '1', link: '/etc/passwd' },
    'a hard link inside': { path: 'b', type: '1', link: 'a' },
    'a hard link ahead of its target': { path: 'b', type: '1', link: 'c' },
    'a character device': { path: 'b', type: '3' },
    'a block device': { path: 'b', type: '4' },
    'a directory': { path: 'b', type: '5', mode: 0o777 },
    'a directory with a slash': { path: 'b/', type: '5', mode: 0o755 },
    'a FIFO': { path: 'b', type: '6' },
    'a contiguous file': { path: 'b', type: '7' },
    'a GNU sparse file': { path: 'b', type: 'S' },
    'a GNU long name': { path: '././@LongLink', type: 'L', content: '../../victim\0' },
    'a GNU long link name': { path: '././@LongLink', type: 'K', content: '/etc/passwd\0' },
    'a global PAX header': { path: 'pax', type: 'g', content: '14 path=../../v\n' },
    'an unknown type': { path: 'b', type: '\u00ff' },
    'a file with a link target': { path: 'b', link: '../victim' },
  };
  for (const [name, fields] of Object.entries(cases)) {
    it(`refuses ${name}`, async () => {
      await assertRefused(between(tarEntry(fields)), 'ENTRY_REFUSED');
    });
  }

  it('refuses a file after a symbolic link with the same path', async () => {
    const link = tarEntry({ path: 'b', type: '2', link: '../../../..' });
    const through = tarEntry({ path: 'b/victim', content: 'evil' });
    await assertRefused(
      { tar: Buffer.concat([head, link, through, endOfArchive]), manifest },
      'ENTRY_REFUSED',
    );
  });

  it('refuses a sparse file announced in a PAX header', async () => {
    const pax = paxEntry([
      ['GNU.sparse.major', '1'],
      ['GNU.sparse.realsize', '99999999'],
    ]);
    await assertRefused(between(Buffer.concat([pax, tarEntry({ path: 'b' })])), 'ARCHIVE_MALFORMED');
  });

  it('refuses extended attributes and access lists', async () => {
    for (const key of ['SCHILY.xattr.security.capability', 'SCHILY.acl.access']) {
      const pax = paxEntry([[key, 'x']]);
      await assertRefused(between(Buffer.concat([pax, tarEntry({ path: 'b' })])), 'ARCHIVE_MALFORMED');
    }
  });
});

describe('the mode of an entry', () => {
  for (const mode of [0o4755, 0o2755, 0o1755, 0o6644, 0o777, 0o666, 0o664, 0o600, 0o000, 0o100644]) {
    it(`refuses ${mode.toString(8)}`, async () => {
      await assertRefused(between(tarEntry({ path: 'b', mode })), 'ENTRY_REFUSED');
    });
  }

  it('refuses a set-uid manifest', async () => {
    const tar = Buffer.concat([
      tarEntry({ path: manifestName, content: manifest, mode: 0o4755 }),
      ...files.map(fileEntry),
      endOfArchive,
    ]);
    await assertRefused({ tar, manifest }, 'ENTRY_REFUSED');
  });

  it('refuses an executable bit that the manifest lacks', async () => {
    await assertRefused(between(tarEntry({ path: 'b', mode: 0o755 })), 'MANIFEST_MISMATCH');
  });
});
