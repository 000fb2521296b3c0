// Stages and packs the npm package: the program without its maps, a lock of the packages of an install, and a package.json
// without scripts and development packages. Two runs give the same bytes.
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.js';

const forDevelopment = ['scripts', 'devDependencies'];

/**
 * @param {string} root of a built checkout
 * @param {string} folder to stage in, created again
 */
export function stageNpmPackage(root, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const manifest = readJson(join(root, 'package.json'));
  const [{ files }] = Object.values(
    JSON.parse(run('npm', ['pack', '--dry-run', '--json', '--silent', '--ignore-scripts', root])),
  );
  for (const { path } of files) cpSync(join(root, path), join(folder, path));
  for (const name of forDevelopment) delete manifest[name];
  // The package has all files of the folder.
  manifest.files = ['**'];
  writeJson(join(folder, 'package.json'), manifest);
  writeJson(join(folder, 'npm-shrinkwrap.json'), shrinkwrap(readJson(join(root, 'package-lock.json'))));
  dropMapLines(join(folder, 'dist/writ'));
}

/** @returns the tarball's path */
export function packNpmPackage(folder, destination) {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', destination, folder];
  const packed = join(destination, run('npm', args).trim());
  const named = join(destination, packed.slice(destination.length + 1).replace(/^writ-/, 'writ-npm-'));
  renameSync(packed, named);
  return named;
}

/** The lock without development packages, and without the registry of each package. */
function shrinkwrap({ packages, ...lock }) {
  const kept = Object.entries(packages).filter(([, { dev }]) => dev !== true);
  const [[, { devDependencies: _dropped, ...own }], ...others] = kept;
  return { ...lock, packages: Object.fromEntries([['', own], ...others]) };
}

/** The maps lead to sources that are not in the package. */
function dropMapLines(folder) {
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.js'))) {
    const path = join(folder, name);
    const code = readFileSync(path, 'utf8');
    writeFileSync(path, code.replace(/\/\/# sourceMappingURL=.*\n$/, ''));
  }
}

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const writeJson = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
