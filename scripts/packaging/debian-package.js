// One Debian package from a staged tree: control files from packaging/debian, modes, times and owners that do not depend on who
// builds, and dpkg-deb. It does not depend on the content of the tree.

import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { run } from './run.js';

const { author, homepage } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

const scripts = ['config', 'preinst', 'postinst', 'prerm', 'postrm'];

/**
 * @param {{ name: string, architecture: string, version: string, epochSeconds: number, source: string, tree: string,
 *   destination: string }} wanted `source` is the folder of its control files
 * @returns the path of the .deb
 */
export function makeDebianPackage({ name, architecture, version, epochSeconds, source, tree, destination }) {
  const files = filesOf(tree).map((path) => relative(tree, path));
  const bytes = files.reduce((sum, path) => sum + lstatSync(join(tree, path)).size, 0);
  const size = String(Math.ceil(bytes / 1024));
  const values = {
    ...{ VERSION: version, ARCH: architecture, SIZE: size },
    ...{ MAINTAINER: author, HOMEPAGE: homepage },
  };
  const filled = (file) =>
    readFileSync(join(source, file), 'utf8').replace(/@([A-Z]+)@/g, (_, key) => values[key]);
  const control = join(tree, 'DEBIAN');
  mkdirSync(control);
  for (const file of ['control', 'templates', ...scripts].filter((one) => existsSync(join(source, one))))
    writeFileSync(join(control, file), filled(file));
  const conffiles = files.filter((path) => path.startsWith('etc/'));
  if (conffiles.length > 0)
    writeFileSync(join(control, 'conffiles'), conffiles.map((one) => `/${one}\n`).join(''));
  const plain = files.filter(
    (path) => !path.startsWith('etc/') && !lstatSync(join(tree, path)).isSymbolicLink(),
  );
  writeFileSync(
    join(control, 'md5sums'),
    plain.map((path) => `${md5(join(tree, path))}  ${path}\n`).join(''),
  );
  settle(tree, epochSeconds);
  const architectureOf = /^Architecture: (.*)$/m.exec(filled('control'))[1];
  const deb = join(destination, `${name}_${version}_${architectureOf}.deb`);
  // One thread: the bytes of xz depend on how many there are.
  run('dpkg-deb', ['--root-owner-group', '-Zxz', '-z3', '--threads-max=1', '--build', tree, deb], {
    env: { SOURCE_DATE_EPOCH: String(epochSeconds) },
  });
  return deb;
}

/** What can be started, by its place: everything else is only read. */
const startable =
  /^(?:DEBIAN\/(?:config|preinst|postinst|prerm|postrm)|usr\/lib\/writ\/(?:bin\/node|dist\/writ\/main\.js))$/;

/** May contain a password, in the URL of a database. The package's postinst gives it to the group of the service. */
const secret = /^etc\/writ\/fleet\.env$/;

/** @param {string} path in the package @returns {number} */
export function modeInPackage(path, isDirectory) {
  if (isDirectory || startable.test(path)) return 0o755;
  return secret.test(path) ? 0o640 : 0o644;
}

/** Modes and times are those of the recipe, whatever umask and clock made the tree. */
function settle(tree, epochSeconds) {
  const folders = readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  for (const path of [...filesOf(tree), ...folders.sort().reverse(), tree]) {
    const stat = lstatSync(path);
    if (!stat.isSymbolicLink()) chmodSync(path, modeInPackage(relative(tree, path), stat.isDirectory()));
    lutimesSync(path, epochSeconds, epochSeconds);
  }
}

const filesOf = (tree) =>
  readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();

const md5 = (path) => createHash('md5').update(readFileSync(path)).digest('hex');
