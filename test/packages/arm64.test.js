// Compares the Debian packages of arm64 with those of this machine: the same files, each program for the right processor. The
// test starts none of them, because this machine has another processor.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

const processors = { amd64: 62, arm64: 183 };
const built = { amd64: process.env.WRIT_PACKAGES, arm64: process.env.WRIT_PACKAGES_ARM64 };
const folder = mkdtempSync('/var/tmp/writ-arm64-');
after(() => rmSync(folder, { recursive: true, force: true }));

const tool = (...args) => execFileSync('dpkg-deb', args, { encoding: 'utf8', maxBuffer: 10_000_000 });
const debOf = (name, architecture) =>
  join(
    built[architecture],
    readdirSync(built[architecture]).find((one) => one.startsWith(`${name}_`) && one.endsWith('.deb')),
  );

/** @returns the processor of a program or library; undefined for another file */
function processorOf(path) {
  const head = Buffer.alloc(20);
  const file = openSync(path, 'r');
  readSync(file, head);
  closeSync(file);
  return head.subarray(0, 4).equals(Buffer.from('\x7fELF')) ? head.readUInt16LE(18) : undefined;
}

/** @returns the files of a package, each with its processor */
function filesOf(name, architecture) {
  const tree = join(folder, `${name}-${architecture}`);
  tool('--extract', debOf(name, architecture), tree);
  return readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .map((path) => ({
      path: path.slice(tree.length),
      processor: path.includes('/usr/bin/') ? undefined : processorOf(path),
    }))
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** Packages with native code name the processor as npm does. */
const ofAmd64 = (path) => path.replaceAll('linux-arm64', 'linux-x64');

for (const name of ['writ', 'writ-fleet'])
  describe(`${name} for arm64`, () => {
    let files;
    before(() => {
      files = { amd64: filesOf(name, 'amd64'), arm64: filesOf(name, 'arm64') };
    });

    it('has the files of amd64', () => {
      const [one, other] = [files.amd64, files.arm64].map((all) => all.map(({ path }) => ofAmd64(path)));
      assert.deepEqual(other.sort(), one.sort());
    });

    it('has programs and libraries only for its processor', () => {
      for (const [architecture, all] of Object.entries(files)) {
        const native = all.filter(({ processor }) => processor !== undefined);
        assert.ok(native.length > 0, 'Node, or the library of libsql');
        assert.deepEqual(
          native.filter(({ processor }) => processor !== processors[architecture]),
          [],
        );
      }
    });

    it('differs in its control file only in architecture and size', () => {
      const fields = (architecture) =>
        tool('-f', debOf(name, architecture)).replace(/^Installed-Size: \d+\n/m, '');
      assert.match(fields('arm64'), /^Architecture: arm64$/m);
      assert.equal(fields('arm64').replace('Architecture: arm64', 'Architecture: amd64'), fields('amd64'));
    });
  });
