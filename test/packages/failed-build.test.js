// A failed build of the images leaves no mount and no container. One target builds and is mounted, the next one fails;
// the base is empty, so it takes seconds.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, it } from 'node:test';
import { buildImages } from '../../scripts/packaging/images.js';

const folder = mkdtempSync('/var/tmp/writ-failed-');
const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')];
const buildah = (...args) => execFileSync('buildah', [...storage, ...args], { encoding: 'utf8' });
after(() => {
  buildah('rm', '--all');
  rmSync(folder, { recursive: true, force: true });
});

const mounts = () =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(folder));

it('a build that fails leaves no mount and no container', () => {
  const [root, debian] = ['root', 'debian'].map((name) => join(folder, name));
  mkdirSync(root);
  mkdirSync(join(debian, 'usr/local/bin'), { recursive: true });
  const stages = ['node:26-slim AS build', 'build AS agent\nCOPY good /', 'build AS server\nCOPY missing /'];
  writeFileSync(join(root, 'Dockerfile'), stages.map((one) => `FROM ${one}\n`).join('\n'));
  writeFileSync(join(root, 'good'), '');

  assert.throws(() => buildImages({ root, node: process.execPath, debian, folder }), /writ-server.*missing/s);

  assert.deepEqual(mounts(), []);
  assert.equal(buildah('containers', '--quiet'), '');
  assert.match(buildah('images'), /writ-agent/);
});
