// Names that would leave the staged tree, or be two files on another file system, at each place of a name in an archive.
import { describe, it } from 'node:test';
import { manifestName } from '../../../../src/core/release/manifest.js';
import { assertRefused } from '../../../kit/host/stage-harness.js';
import {
  type BundleFile,
  endOfArchive,
  fileEntry,
  manifestOf,
  paxEntry,
  tarEntry,
} from '../../../kit/repository/archive-builder.js';

const honest: BundleFile = { path: 'a', content: 'honest' };
const manifest = manifestOf([honest]);
const head = tarEntry({ path: manifestName, content: manifest });

/** The entry lies behind the manifest, before and after the one honest file. */
async function refusedEverywhere(entry: Buffer, code: string): Promise<void> {
  const file = fileEntry(honest);
  await assertRefused({ tar: Buffer.concat([head, entry, file, endOfArchive]), manifest }, code);
  await assertRefused({ tar: Buffer.concat([head, file, entry, endOfArchive]), manifest }, code);
  await assertRefused({ tar: Buffer.concat([entry, head, file, endOfArchive]), manifest }, code);
}

const hostilePaths: Readonly<Record<string, string | Buffer>> = {
  'parent at the start': '../victim',
  'parent in the middle': 'd/../../victim',
  'parent at the end': 'd/..',
  'lone parent': '..',
  'many parents': `${'../../../'.repeat(20)}tmp/victim`,
  'absolute path': '/etc/cron.d/victim',
  'double slash at the start': '//victim',
  'double slash inside': 'd//victim',
  'lone dot': '.',
  'dot at the start': './victim',
  'dot inside': 'd/./victim',
  'trailing slash': 'd/',
  backslash: '..\\victim',
  'drive letter': 'C:victim',
  'drive letter and parent': 'C:../victim',
  'control character': 'a\u0007b',
  newline: 'a\nb',
  'bidirectional override': 'a\u202etxt.b',
  'zero-width joiner': 'a\u200db',
  'decomposed form': 'u\u0308',
  'invalid UTF-8': Buffer.from([0x61, 0xff, 0xfe]),
  'overlong slash': Buffer.from([0x2e, 0x2e, 0xc0, 0xaf, 0x61]),
  'encoded surrogate': Buffer.from([0xed, 0xa0, 0x80]),
  'trailing dot': 'a.',
  'trailing space': 'a ',
  'the manifest once more': manifestName,
  'the manifest in other letters': '.WRIT-manifest.json',
};

describe('a hostile path in the header', () => {
  for (const [name, path] of Object.entries(hostilePaths)) {
    // At the first position, the name of the manifest is only a second manifest.
    const once = path === manifestName;
    it(`refuses ${name}`, async () => {
      const entry = tarEntry({ path, content: 'evil' });
      if (once) {
        const tar = Buffer.concat([head, entry, fileEntry(honest), endOfArchive]);
        await assertRefused({ tar, manifest }, 'ENTRY_REFUSED');
      } else {
        await refusedEverywhere(entry, 'ENTRY_REFUSED');
      }
    });
  }

  it('refuses an empty path', async () => {
    await refusedEverywhere(tarEntry({ path: '', content: 'evil' }), 'ENTRY_REFUSED');
  });

  it('refuses a parent directory that prefix and name form together', async () => {
    const entry = tarEntry({
      path: '../victim',
      content: 'evil',
      patch: [{ at: 345, bytes: Buffer.from('d/..') }],
    });
    await refusedEverywhere(entry, 'ENTRY_REFUSED');
  });

  it('refuses bytes after a NUL', async () => {
    const path = Buffer.from('a\0/../../victim');
    await refusedEverywhere(tarEntry({ path, content: 'evil' }), 'ARCHIVE_MALFORMED');
  });
});

describe('a hostile path in a PAX header', () => {
  const cases: Readonly<Record<string, string | Buffer>> = {
    ...hostilePaths,
    NUL: 'a\0b',
    empty: '',
    'a name of 256 bytes': 'n'.repeat(256),
    'a path over its bound': `${'d/'.repeat(10)}${'n'.repeat(200)}/`.repeat(5).slice(0, 1025),
    '33 levels': `${'d/'.repeat(32)}a`,
  };
  for (const [name, path] of Object.entries(cases)) {
    it(`refuses ${name}`, async () => {
      const entry = tarEntry({ path: 'a', content: honest.content });
      const tar = Buffer.concat([head, paxEntry([['path', path]]), entry, endOfArchive]);
      await assertRefused({ tar, manifest }, 'ENTRY_REFUSED');
    });
  }

  it('refuses a path of ten megabytes without storing it', async () => {
    const pax = paxEntry([['path', 'x'.repeat(10_000_000)]]);
    const tar = Buffer.concat([head, pax, fileEntry(honest), endOfArchive]);
    await assertRefused({ tar, manifest }, 'ARCHIVE_MALFORMED');
  });

  it('refuses a number that another reader parses as a path', async () => {
    const tar = Buffer.concat([head, paxEntry([['path', '1234']]), fileEntry(honest), endOfArchive]);
    await assertRefused({ tar, manifest }, 'MANIFEST_MISMATCH');
  });
});

describe('a hostile path in a signed manifest', () => {
  // The holder of the targets key can sign any manifest, so a host does not trust a path because it is signed.
  const cases: Readonly<Record<string, readonly string[]>> = {
    parent: ['../victim'],
    absolute: ['/etc/victim'],
    'its own name': [manifestName],
    duplicate: ['a', 'a'],
    'file and directory of one name': ['a', 'a/b'],
    'twins by case': ['A', 'a'],
    'twins by folding': ['stra\u00dfe', 'strasse'],
    'a path too deep': [`${'d/'.repeat(32)}a`],
  };
  for (const [name, paths] of Object.entries(cases)) {
    it(`refuses ${name}`, async () => {
      const files = paths.map((path) => ({ path, content: 'x' }));
      const bytes = manifestOf(files);
      const tar = Buffer.concat([
        tarEntry({ path: manifestName, content: bytes }),
        ...files.map(fileEntry),
        endOfArchive,
      ]);
      await assertRefused({ tar, manifest: bytes }, 'MANIFEST_MALFORMED');
    });
  }
});
