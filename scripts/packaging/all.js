// `npm run package:all`: the files of `npm run package`, for amd64 and arm64, and the three images; each is tested, with the
// time that it took. Needs root, debootstrap and buildah; `-- --only images` or `-- --only packages` does one half.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { debootstrap } from '../../test/packages/clean-root.js';
import { buildImages } from './images.js';
import { fetchNode } from './node-runtime.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({ options: { only: { type: 'string' } } });
const release = join(root, 'release');
const folder = mkdtempSync('/var/tmp/writ-all-');

function node(args, env = {}) {
  const options = { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } };
  const { status } = spawnSync(process.execPath, args, options);
  if (status !== 0) throw new Error(`node ${args.join(' ')}: exit ${status}`);
}

function timed(what, work) {
  const began = Date.now();
  work();
  process.stdout.write(`== ${what}: ${Math.round((Date.now() - began) / 1000)} s\n`);
}

function packages() {
  const [amd64, arm64] = [release, join(release, 'arm64')];
  const recipe = 'scripts/packaging/package.js';
  timed('packages of amd64', () => node([recipe, '--architecture', 'amd64', '--to', amd64]));
  timed('packages of arm64', () => node([recipe, '--architecture', 'arm64', '--to', arm64]));
  const where = { WRIT_PACKAGES: amd64, WRIT_PACKAGES_ARM64: arm64 };
  timed('arm64 beside amd64', () => node(['--test', 'test/packages/arm64.test.js'], where));
}

function images() {
  timed('a build that fails', () => node(['--test', 'test/packages/failed-build.test.js']));
  const debian = join(folder, 'debian');
  const needed = 'ca-certificates,libatomic1,libstdc++6';
  timed('a base by debootstrap', () => debootstrap(debian, 'bookworm', needed));
  const work = join(folder, 'work');
  mkdirSync(work);
  const { program } = fetchNode(root, 'amd64', join(folder, 'node'));
  let made;
  timed('images by buildah', () => {
    made = buildImages({ root, node: program, debian, folder });
  });
  try {
    for (const { name, size } of made.images)
      process.stdout.write(`writ-${name}: ${size}, with a base of ${made.baseSize}\n`);
    const described = join(folder, 'images.json');
    writeFileSync(described, JSON.stringify({ ...made, work }));
    timed('images started', () =>
      node(['--test', 'test/packages/images.test.js'], { WRIT_IMAGES: described }),
    );
  } finally {
    made.release();
  }
}

process.stdout.write(`${new Date().toISOString()} npm run package:all\n`);
try {
  if (values.only !== 'images') packages();
  if (values.only !== 'packages') images();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
