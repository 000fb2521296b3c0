// The packages that the program loads at run time, as the lock has them, in two trees: what every host needs, and what
// `writ fleet serve` needs beside it. Decides no version.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.js';

const npmArchitecture = { amd64: 'x64', arm64: 'arm64' };
/** No host reads them: of a package only what runs and its license is shipped. */
const unread =
  /\.(?:d\.[cm]?ts|map|md|markdown|ts|flow|html|yml|yaml|editorconfig|npmignore)$|\.sh$|^\.|^(?:integration|scripts|test|tests|benchmarks?|example|examples|docs|\.github|types)$/i;

/**
 * @param {string} npm folder staged for npm
 * @param {string} folder to install in
 * @returns folders `node_modules`: of every host, and what the fleet server adds
 */
export function installModules(npm, architecture, folder) {
  const all = install(npm, architecture, join(folder, 'all'), []);
  const host = install(npm, architecture, join(folder, 'host'), ['--omit=optional']);
  const fleet = join(folder, 'fleet/node_modules');
  mkdirSync(fleet, { recursive: true });
  for (const name of packagesIn(all).filter((one) => !existsSync(join(host, one))))
    cpSync(join(all, name), join(fleet, name), { recursive: true });
  return { host, fleet };
}

function install(npm, architecture, folder, omitted) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ['package.json', 'npm-shrinkwrap.json']) cpSync(join(npm, name), join(folder, name));
  const machine = ['--os=linux', `--cpu=${npmArchitecture[architecture]}`, '--libc=glibc'];
  run('npm', ['ci', '--omit=dev', ...omitted, ...machine, '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
  });
  const modules = join(folder, 'node_modules');
  for (const name of ['.package-lock.json', '.bin', '@types', 'undici-types'])
    rmSync(join(modules, name), { recursive: true, force: true });
  for (const name of packagesIn(modules)) {
    // npm installs the libraries for both C libraries if the lock does not name the C library.
    if (name.endsWith('-musl')) rmSync(join(modules, name), { recursive: true });
    else dropUnread(join(modules, name), 0);
  }
  return modules;
}

/** Names, with their scope; a package in a package goes with it. */
function packagesIn(modules) {
  return readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((one) => `${name}/${one}`) : [name],
  );
}

function dropUnread(folder, depth) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const isUnread = unread.test(entry.name) && (entry.isFile() || depth === 0);
    if (isUnread && !/^licen[cs]e/i.test(entry.name)) rmSync(path, { recursive: true });
    else if (entry.isDirectory()) dropUnread(path, depth + 1);
    else if (entry.name === 'package.json') keepWhatRuns(path);
  }
}

/** npm writes into some what differs between two installs. */
function keepWhatRuns(path) {
  const text = readFileSync(path, 'utf8');
  try {
    const own = Object.entries(JSON.parse(text)).filter(([name]) => !name.startsWith('_'));
    writeFileSync(path, `${JSON.stringify(Object.fromEntries(own))}\n`);
  } catch {
    writeFileSync(path, text);
  }
}
