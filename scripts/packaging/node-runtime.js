// The Node that Debian packages carry: fetched from npm's registry by name and version, and taken only with the digest
// that packaging/node-runtime.json pins. Runs nothing of it.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.js';

/**
 * @param {'amd64' | 'arm64'} architecture
 * @param {string} folder to unpack in
 * @returns paths of the program and of its license
 */
export function fetchNode(root, architecture, folder) {
  const { version, packages } = JSON.parse(readFileSync(join(root, 'packaging/node-runtime.json'), 'utf8'));
  const { name, integrity } = packages[architecture];
  mkdirSync(folder, { recursive: true });
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder, `${name}@${version}`];
  const tarball = join(folder, run('npm', args).trim());
  const actual = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  if (actual !== integrity) throw new Error(`${name}@${version} is ${actual}, and ${integrity} is pinned`);
  run('tar', ['-xzf', tarball, '-C', folder, '--no-same-owner']);
  return { program: join(folder, 'package/bin/node'), license: join(folder, 'package/LICENSE') };
}
