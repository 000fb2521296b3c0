// The three images of the Dockerfile, built by buildah without an engine and without a registry of images: the base that the Dockerfile
// names is made by debootstrap and has the Node of the packages. All files are in one folder, which is removed at the end.
import { chmodSync, copyFileSync, cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.js';

export const targets = ['agent', 'server', 'fleet'];

/**
 * @param {{ root: string, node: string, debian: string, folder: string }} given `node` is the program that the packages have, `debian` a
 *   root by debootstrap, `folder` where storage and mounts are
 * @returns per target its image: configuration as Docker reads it, its size, and the folder where it is mounted until `release`
 */
export function buildImages({ root, node, debian, folder }) {
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')];
  const buildah = (...args) => run('buildah', [...storage, ...args]).trim();
  const release = () => buildah('rm', '--all');
  addNode(debian, node);
  try {
    const base = nameOfBase(root);
    makeBase(buildah, debian, base);
    const trust = trustOf(folder);
    const images = targets.map((name) => makeImage(buildah, { root, name, trust }));
    return { baseSize: sizeOf(buildah, base), images, release };
  } catch (error) {
    // A remaining mount would prevent the removal of the folder.
    release();
    throw error;
  }
}

function makeBase(buildah, debian, base) {
  const scratch = buildah('from', 'scratch');
  buildah('add', scratch, debian, '/');
  buildah('commit', '--quiet', '--rm', scratch, base);
}

/** In Docker's format: OCI's has no HEALTHCHECK. */
function makeImage(buildah, { root, name, trust }) {
  const image = `localhost/writ-${name}`;
  const how = ['--isolation=chroot', '--network=host', '--format=docker', '--layers', '--pull=false'];
  buildah('bud', ...how, ...trust, '--target', name, '--tag', image, root);
  const container = buildah('from', '--pull=false', image);
  const { config } = JSON.parse(buildah('inspect', container)).Docker;
  return { name, config, size: sizeOf(buildah, image), mounted: buildah('mount', container) };
}

/** The base image has node and npm; npm is this machine's. */
function addNode(debian, node) {
  copyFileSync(node, join(debian, 'usr/local/bin/node'));
  chmodSync(join(debian, 'usr/local/bin/node'), 0o755);
  const modules = join(debian, 'usr/local/lib/node_modules');
  mkdirSync(modules, { recursive: true });
  cpSync(join(run('npm', ['root', '-g']).trim(), 'npm'), join(modules, 'npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(debian, 'usr/local/bin/npm'));
  rmSync(join(debian, 'var/cache/apt/archives'), { recursive: true, force: true });
}

/** @returns the image that the Dockerfile starts from, which buildah finds without a registry */
function nameOfBase(root) {
  const text = run('cat', [join(root, 'Dockerfile')]);
  return `localhost/${/^FROM (\S+) AS build$/m.exec(text)[1]}`;
}

/** Authorities that this machine's npm trusts beside its own: for the build, and in no image. */
function trustOf(folder) {
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  if (authorities === undefined) return [];
  copyFileSync(authorities, join(folder, 'authorities.pem'));
  writeFileSync(join(folder, 'npmrc'), 'cafile=/run/build/authorities.pem\n');
  return [
    ...['--volume', `${join(folder, 'authorities.pem')}:/run/build/authorities.pem:ro`],
    ...['--volume', `${join(folder, 'npmrc')}:/usr/local/etc/npmrc:ro`],
  ];
}

/** @returns with its unit, and with what the base has */
function sizeOf(buildah, image) {
  const [{ size }] = JSON.parse(buildah('images', '--json', image));
  return size;
}
